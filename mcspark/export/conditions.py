"""Conditions of groups in the words of other databases: those that mean the same in all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcspark.core.cells.groups import Family
from mcspark.errors import ConfigurationError

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_EVERYWHERE = {
    "and", "or", "not", "paren", "eq", "neq", "gt", "gte", "lt", "lte", "in", "between", "is", "null",
    "boolean", "column", "identifier", "literal", "neg", "add", "sub", "mul", "coalesce", "case", "if",
}  # fmt: skip
_CASE_BLIND = ("sqlite",)
"""Whose LIKE tells no capitals apart."""


def condition(family: Family, dialect: str) -> Expr:
    """The condition of a group as a syntax tree.

    Raises
    ------
    ConfigurationError
        If it uses what the dialect lacks, or has with another meaning.
    """
    from sqlglot import parse_one  # noqa: PLC0415

    tree = parse_one(str(family.where), dialect="spark")
    for node in tree.walk():
        if node.key not in _EVERYWHERE and not (node.key == "like" and dialect not in _CASE_BLIND):
            raise ConfigurationError(
                f"the condition of group {family.column!r}, {family.where}, uses {node.key.upper()}, which "
                f"does not mean the same in {dialect}; leave the group out, or make it a column"
            )
    return tree
