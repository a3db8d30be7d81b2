"""YAML read safely, and without surprises: what is not plainly a number, true, false or null stays text."""

from __future__ import annotations

import re
from typing import Any

import yaml

MAX_VALUES = 100_000
MAX_DEPTH = 50


class _Loader(yaml.SafeLoader):
    """The safe loader, refusing repeated keys, with the scalars of YAML 1.2.

    YAML 1.1 reads ``01`` as 1, ``no`` as false, ``2026-11-26`` as a date and ``1e-3`` as text; codes with
    leading zeros, partition values and learning rates need the opposite.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            mark = key_node.start_mark
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


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), _first)


def parse_yaml(text: str) -> Any:
    """The value of one YAML document; ``ValueError`` with one sentence where it has none.

    Text, whole numbers, numbers, true, false, null, lists and mappings with text keys are known. A document
    of more than 100,000 values, counting those repeated by aliases, or nested more than 50 deep is refused.
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
    return f"{what} (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else what


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
            if isinstance(item, (list, dict)):
                below.extend(item.values() if isinstance(item, dict) else item)
                if len(below) > MAX_VALUES:
                    break
        level = below
