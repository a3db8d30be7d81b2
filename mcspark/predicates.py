"""User conditions: one checked boolean expression over columns, rendered anew for Spark.

The text a user writes never reaches Spark. It is parsed, every node of the syntax tree is compared with a
list of the harmless ones, and what Spark runs is rendered from that tree with every column in backticks and
every nested operation in parentheses, so that this parser and Spark's cannot disagree about its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from mcspark.identifiers import quote_identifier, unrendered

if TYPE_CHECKING:
    from sqlglot.expressions import Expr
    from sqlglot.tokenizer_core import Token

MAX_LENGTH = 4000
MAX_NESTING = 50

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_TESTS = (*_COMPARISONS, exp.In, exp.Between, exp.Is, exp.Like, exp.ILike, exp.Escape)
_LOGIC = (exp.And, exp.Or, exp.Not)
_BOOLEAN_FUNCTIONS = (exp.StartsWith, exp.EndsWith, exp.Contains, exp.IsNan)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg)
_CHOICES = (exp.Coalesce, exp.If, exp.Case)
_CASTS = (exp.Cast, exp.TryCast)
_ALLOWED = frozenset((
    *_TESTS, *_LOGIC, *_BOOLEAN_FUNCTIONS, *_ARITHMETIC, *_CHOICES, *_CASTS,
    exp.Abs, exp.Ceil, exp.Floor, exp.Round, exp.Greatest, exp.Least, exp.Nullif, exp.Lower, exp.Upper,
    exp.Trim, exp.Length, exp.Substring, exp.Left, exp.Right, exp.Pad,
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren,
    exp.DataType, exp.DataTypeParam,
))  # fmt: skip
_CAST_TYPES = frozenset(
    exp.DataType.Type[name]
    for name in (
        "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "TEXT", "DATE",
    )
)  # fmt: skip
_OPERATIONS = (*_TESTS, *_LOGIC, *_ARITHMETIC)
_SUB_QUERIES = (exp.Query, exp.Exists)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ODD_ESCAPE = re.compile(r"""\\[^\\'"%_]""", re.DOTALL)
_PLAIN_ESCAPE = re.compile(r"""\\[\\'"%_]""")
_ESCAPES = r"""\\ \' \" \% \_"""
_HELP = (
    "a condition is made of columns, literals, comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL, CASE, "
    "CAST to a plain type, arithmetic, and the functions abs, ceil, floor, round, greatest, least, coalesce, "
    "nullif, if, lower, upper, trim, length, substring, left, right, lpad, rpad, startswith, endswith, "
    "contains, isnan"
)


@lru_cache(maxsize=1024)
def check_predicate(text: str) -> tuple[str, frozenset[str]]:
    """Check a user's condition and render it for Spark.

    Parameters
    ----------
    text : str
        One Spark SQL boolean expression over columns, at most 4,000 characters; ``true`` is everyone.

    Returns
    -------
    sql : str
        The condition rendered from the checked syntax tree; the only text to hand to Spark.
    columns : frozenset of str
        The columns it reads, spelt as in the text.

    Raises
    ------
    ValueError
        One sentence on what is not allowed and how to mend it.

    Examples
    --------
    >>> check_predicate("SEX = 2 and AGEP >= 65")[0]
    '(`SEX` = 2) AND (`AGEP` >= 65)'
    """
    if not text.strip():
        raise ValueError("the condition is empty; write one, or true for everyone")
    if len(text) > MAX_LENGTH:
        raise ValueError(f"the condition has {len(text)} characters, more than {MAX_LENGTH}; shorten it")
    _check_text(text)
    try:
        tree = _parse(text)
        for node in tree.walk():
            _check_node(node)
        _check_depth(tree)
        _check_boolean(tree, "the condition")
        rendered = _render(tree)
        stable = _render(_parse(rendered)) == rendered
    except RecursionError:
        raise ValueError(_too_deep()) from None
    if not stable:
        raise ValueError(
            "the condition cannot be rendered without changing its meaning; write it more simply"
        )
    return rendered, frozenset(column.name for column in tree.find_all(exp.Column))


def computed(where: str) -> str:
    """A checked condition in which what cannot be computed is null, and no error nor a wrapped number.

    Examples
    --------
    >>> computed("(`a` + 1) > CAST(`b` AS INT)")
    '(TRY_ADD(`a`, 1)) > TRY_CAST(`b` AS INT)'
    >>> computed("(`a` % `b`) = 0")
    '(IF(TRY_CAST(`b` AS DOUBLE) = 0, NULL, `a` % `b`)) = 0'
    """
    tree = _parse(where)
    for node in list(tree.find_all(exp.Cast, exp.Neg, *_TRIED, *_REMAINDERS)):
        if isinstance(node, exp.Cast):
            node.set("safe", True)
        elif isinstance(node, exp.Neg):
            if not isinstance(node.this, exp.Literal):
                node.replace(_function("TRY_SUBTRACT", exp.Literal.number(0), node.this))
        elif isinstance(node, _DIVISIONS) and _never_zero(node.args["expression"]):
            continue
        elif type(node) in _TRIED:
            node.replace(_function(_TRIED[type(node)], node.this, node.args["expression"]))
        else:
            # Spark 3.5 tries no remainders. A divisor of text is compared as the number that it spells.
            divisor = exp.TryCast(
                this=node.args["expression"].copy(), to=exp.DataType.build("double"), safe=True
            )
            guarded = exp.If(this=exp.EQ(this=divisor, expression=exp.Literal.number(0)), true=exp.null())
            node.replace(guarded)
            guarded.set("false", node)
    return tree.sql(dialect="spark", identify=True)


def _never_zero(divisor: Expr) -> bool:
    return isinstance(divisor, exp.Literal) and not divisor.is_string and float(divisor.this) != 0


def _function(name: str, *operands: Expr) -> Expr:
    return exp.Anonymous(this=name, expressions=list(operands))


_TRIED: dict[type[Expr], str] = {
    exp.Add: "TRY_ADD", exp.Sub: "TRY_SUBTRACT", exp.Mul: "TRY_MULTIPLY", exp.Div: "TRY_DIVIDE",
}  # fmt: skip
_REMAINDERS = (exp.IntDiv, exp.Mod)
_DIVISIONS = (exp.Div, *_REMAINDERS)


def _check_text(text: str) -> None:
    """Refuse what the syntax tree does not show, or what Spark replaces before it parses."""
    if _CONTROL.search(text):
        raise ValueError("the condition holds a control character; remove it")
    if mark := unrendered(text):
        raise ValueError(f"the condition holds {mark!r}, a template or variable; write the value itself")


def _parse(text: str) -> Expr:
    dialect = Spark()
    try:
        tokens = dialect.tokenize(text)
        _check_tokens(tokens, text)
        trees = dialect.parser().parse_into(exp.Condition, tokens, text)
    except SqlglotError as error:
        raise ValueError(f"the condition is not valid Spark SQL{_where(error, text)}; correct it") from None
    if len(trees) != 1 or trees[0] is None:
        raise ValueError("the condition holds nothing but comments; write one, or true for everyone")
    return trees[0]


def _where(error: SqlglotError, text: str) -> str:
    """The line and column of the first error where the parser tells them."""
    cause: BaseException | None = error
    while cause is not None:
        for detail in getattr(cause, "errors", []):
            if detail.get("line") and detail.get("col"):
                return f" near line {detail['line']}, column {detail['col']}"
        cause = cause.__cause__
    odd = next((quote for quote in ("'", '"', "`") if text.count(quote) % 2), None)
    return f" (a {odd} is never closed)" if odd else ""


def _check_tokens(tokens: list[Token], text: str) -> None:
    depth = 0
    for token in tokens:
        source = text[token.start : token.end + 1]
        kind = token.token_type.name
        if kind == "SEMICOLON":
            raise ValueError("the condition holds a semicolon; write one expression")
        if kind == "STRING" and _ODD_ESCAPE.search(_PLAIN_ESCAPE.sub("", source)):
            raise ValueError(f"a text in the condition has a backslash escape; known are {_ESCAPES}")
        depth += {"L_PAREN": 1, "R_PAREN": -1}.get(kind, 0)
        if depth > MAX_NESTING:
            raise ValueError(_too_deep())


def _check_node(node: Expr) -> None:
    if isinstance(node, exp.Column):
        if not isinstance(node.this, exp.Identifier):
            raise ValueError("the condition uses *; name the columns")
        if len(node.parts) > 1:
            name = ".".join(part.name for part in node.parts)
            raise ValueError(
                f"{name} reads inside a struct or another table; a column whose name has a dot is written "
                f"{quote_identifier(name)}"
            )
    elif isinstance(node, exp.DataType):
        if node.this not in _CAST_TYPES:
            raise ValueError(
                f"a cast to {node.sql('spark')} is not allowed; cast to a number, string or date"
            )
    elif isinstance(node, exp.In) and not node.expressions and not node.args.get("query"):
        raise ValueError("IN has no values; list at least one")
    elif type(node) not in _ALLOWED:
        raise ValueError(f"{_word_for(node)} is not allowed; {_HELP}")


def _word_for(node: Expr) -> str:
    if isinstance(node, _SUB_QUERIES) or node.find(exp.Query):
        return "a sub-query"
    if isinstance(node, exp.Window):
        return "a window"
    if isinstance(node, exp.Concat):
        return r"concat(), or two texts side by side (write a quote in a text as \'),"
    if isinstance(node, exp.Anonymous):
        return f"the function {node.name.lower()}()"
    if isinstance(node, exp.Func):
        return f"the function {node.sql_name().lower()}()"
    return f"{node.sql('spark', comments=False)[:60]!r} ({node.key})"


def _check_depth(tree: Expr) -> None:
    level = [tree]
    depth = 0
    while level:
        depth += 1
        if depth > MAX_NESTING:
            raise ValueError(_too_deep())
        level = [child for node in level for child in _operands(node)]


def _operands(node: Expr) -> Iterator[Expr]:
    """The children, with a chain of the same AND or OR counted as one node."""
    if isinstance(node, exp.Connector):
        pending = [node.left, node.right]
        while pending:
            child = pending.pop()
            if type(child) is type(node):
                pending += [child.left, child.right]
            else:
                yield child
    else:
        yield from node.iter_expressions()


def _too_deep() -> str:
    return f"the condition is nested more than {MAX_NESTING} deep; write it flatter"


def _check_boolean(node: Expr, what: str) -> None:
    """Refuse what cannot be true or false; a column's type is known only when its table is read."""
    node = node.unnest()
    if isinstance(node, _LOGIC):
        for operand in _operands(node):
            _check_boolean(operand, f"what stands beside {node.key.upper()}")
        return
    if isinstance(node, exp.Case):
        branches = [branch.args["true"] for branch in node.args["ifs"]]
        branches.append(node.args.get("default") or exp.null())
    elif isinstance(node, exp.If):
        branches = [node.args["true"], node.args.get("false") or exp.null()]
    elif isinstance(node, exp.Coalesce):
        branches = [node.this, *node.expressions]
    elif _is_boolean(node):
        return
    else:
        raise ValueError(
            f"{what} is {node.sql('spark', comments=False)[:60]!r}, which is neither true nor false; "
            "write a comparison"
        )
    for branch in branches:
        if not isinstance(branch.unnest(), exp.Null):
            _check_boolean(branch, what)


def _is_boolean(node: Expr) -> bool:
    if isinstance(node, _CASTS):
        return bool(node.to.this == exp.DataType.Type.BOOLEAN)
    return isinstance(node, (*_TESTS, *_BOOLEAN_FUNCTIONS, exp.Boolean, exp.Column))


def _render(tree: Expr) -> str:
    """Spark SQL with every column in backticks and every operation inside another in parentheses."""
    tree = tree.copy()
    for node in list(tree.find_all(*_OPERATIONS)):
        parent = node.parent
        chained = isinstance(node, exp.Connector) and type(parent) is type(node)
        escaped = isinstance(parent, exp.Escape)
        if isinstance(parent, _OPERATIONS) and not chained and not escaped:
            parenthesis = exp.Paren()
            node.replace(parenthesis)
            parenthesis.set("this", node)
    return tree.sql(dialect="spark", identify=True, comments=False)
