"""YAML read safely, and without surprises: what is not plainly a number, true, false or null stays text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml

MAX_VALUES = 100_000
MAX_DEPTH = 50
_MAX_MERGED = 100
_PREFIX = "tag:yaml.org,2002:"
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


class _Loader(yaml.SafeLoader):
    """The safe loader, refusing repeated keys, with the scalars of YAML 1.2.

    YAML 1.1 reads ``01`` as 1, ``no`` as false, ``2026-11-26`` as a date and ``1e-3`` as text; codes with
    leading zeros, partition values and learning rates need the opposite. A key that is a whole
    number is text.
    """

    def compose_scalar_node(self, anchor: dict[str, yaml.Node]) -> yaml.ScalarNode:
        # JSON is YAML, and writes a character beyond U+FFFF as two escapes.
        node = super().compose_scalar_node(anchor)
        node.value = _PAIR.sub(lambda m: m[0].encode("utf-16", "surrogatepass").decode("utf-16"), node.value)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            mark = key_node.start_mark
            if key_node.tag == f"{_PREFIX}int" and isinstance(key_node, yaml.ScalarNode):
                key_node.tag = f"{_PREFIX}str"  # a code that has a label
            if key_node.tag != "tag:yaml.org,2002:str":
                raise yaml.constructor.ConstructorError(
                    None, None, "a key is not text; put it in quotes", mark
                )
            if key_node.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key_node.value!r} stands twice; keep one of the two", mark
                )
            seen.add(key_node.value)
        return super().construct_mapping(node, deep=deep)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        # A merge repeats what it merges, and a merge of merges multiplies it.
        merged = sum(len(value.value) for key, value in node.value if key.tag == f"{_PREFIX}merge")
        if merged > _MAX_MERGED:
            what = f"a section merges more than {_MAX_MERGED} others; write the keys out"
            raise yaml.constructor.ConstructorError(None, None, what, node.start_mark)
        super().flatten_mapping(node)


_SCALARS = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
    "float": (
        r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    "merge": (r"<<", ["<"]),
}


def _checked(tag: str, construct: Callable[[Any, yaml.Node], Any]) -> Callable[[Any, yaml.Node], Any]:
    """The scalar of a tag, which may be written out beside a text that is none: ``!!int ""``."""
    pattern = re.compile(rf"(?:{_SCALARS[tag][0]})\Z")

    def checked(loader: _Loader, node: yaml.Node) -> Any:
        if not isinstance(node, yaml.ScalarNode) or not pattern.match(node.value):
            raise yaml.constructor.ConstructorError(
                None, None, f"what stands beside !!{tag} is none; take the tag out", node.start_mark
            )
        return construct(loader, node)

    return checked


_Loader.yaml_implicit_resolvers = {}
for _tag, (_pattern, _first) in _SCALARS.items():
    _Loader.add_implicit_resolver(f"{_PREFIX}{_tag}", re.compile(rf"(?:{_pattern})\Z"), _first)
# The tags of other types (!!timestamp, !!binary, !!set, …) are unknown, like those of any language.
_CONSTRUCTORS: Any = {
    f"{_PREFIX}{tag}": yaml.SafeLoader.yaml_constructors[f"{_PREFIX}{tag}"] for tag in ("str", "seq", "map")
} | {
    f"{_PREFIX}{tag}": _checked(tag, yaml.SafeLoader.yaml_constructors[f"{_PREFIX}{tag}"])
    for tag in ("null", "bool", "int", "float")
}
_Loader.yaml_constructors = _CONSTRUCTORS | {None: yaml.SafeLoader.construct_undefined}


def parse_yaml(text: str) -> Any:
    """The value of one YAML document; ``ValueError`` with one sentence where it has none.

    Text, whole numbers, numbers, true, false, null, lists and mappings with text keys (of whole
    numbers, their text) are known; other tags,
    NUL characters and halves of surrogate pairs are refused. So is a document of more than 100,000 values,
    counting those repeated by aliases, or nested more than 50 deep.
    """
    try:
        value = yaml.load(text, Loader=_Loader)  # the safe loader's subclass
    except yaml.YAMLError as error:
        raise ValueError(_one_sentence(error)) from None
    except RecursionError:
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep; write it flatter") from None
    except ValueError:
        raise ValueError("it holds a number too long to read; put it in quotes") from None
    _check_size(value)
    return value


def _one_sentence(error: yaml.YAMLError) -> str:
    parts = [getattr(error, "context", None), getattr(error, "problem", None)]
    what = ", ".join(part.strip() for part in parts if part) or "it cannot be read"
    mark = getattr(error, "problem_mark", None)
    if isinstance(error, yaml.reader.ReaderError):
        # The reader tells neither line nor column.
        what = f"it holds the character U+{_code(error.character):04X}, which no text has; take it out"
    return f"{what} (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else what


def _code(character: str | int | bytes) -> int:
    return character if isinstance(character, int) else ord(character)


def _check_size(value: Any) -> None:
    level = [value]
    count = depth = 0
    while level:
        depth += 1
        count += len(level)
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} deep; write it flatter")
        if count > MAX_VALUES:
            raise ValueError(f"it holds more than {MAX_VALUES} values; take out repeated aliases")
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item)
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            elif isinstance(item, str) and (found := _NO_TEXT.search(item)):
                raise ValueError(
                    f"it holds the character U+{ord(found[0]):04X}, which no text has; take it out"
                )
            if len(below) > MAX_VALUES:
                break
        level = below
