"""The reference of the configuration, written from the models themselves.

``python -m mcspark.config.reference docs/configuration.md`` writes it anew; a test compares.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mcspark.config.models import Config

_HEAD = """\
# Configuration reference

<!-- Written by `python -m mcspark.config.reference docs/configuration.md`; do not edit. -->

A configuration is one YAML file. Any key can be given on the command line, `--set split.seed=3`, or by an
environment variable, `MCSPARK_SPLIT__SEED=3`; the command line wins over the environment, the environment
over the file, the file over the defaults. Unknown keys are errors, and all problems are reported at once.
`mcspark init SCORED ATTRIBUTES` writes a first one; `mcspark check --config FILE` checks it against the
tables.
"""

_LIMITS = (
    ("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"),
)  # fmt: skip
_PLURALS = {"string": "texts", "number": "numbers", "integer": "whole numbers"}
_WORDS = {
    "string": "text",
    "number": "number",
    "integer": "whole number",
    "boolean": "true or false",
    "null": "null",
}


def reference() -> str:
    """The reference, in Markdown."""
    schema = Config.model_json_schema()
    definitions = schema["$defs"]
    parts = [_HEAD, *_section("", schema, definitions)]
    return "\n".join(parts)


def _section(place: str, section: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[str]:
    """The section's own table, then the sections in it."""
    required = set(section.get("required", ()))
    inner = []
    rows = []
    for name, key in section["properties"].items():
        found = _definition(key, definitions)
        default = "required" if name in required else _default(key, is_section=found is not None)
        words = key.get("description") or (found[0].get("description", "") if found else "")
        rows.append(f"| `{name}` | {_kind(key)} | {default} | {_plain(words)} |")
        if found is not None:
            inner.append((f"{place}.{name}".lstrip(".") + ("[]" if found[1] else ""), found[0]))
    title = f"`{place}`" if place else "The sections"
    words = f"\n{_plain(section['description'])}\n" if place and section.get("description") else ""
    yield f"## {title}\n{words}\n| key | value | default | what it is |\n|---|---|---|---|"
    yield "\n".join(rows) + "\n"
    for where, found_section in inner:
        yield from _section(where, found_section, definitions)


def _definition(
    key: Mapping[str, Any], definitions: Mapping[str, Any]
) -> tuple[Mapping[str, Any], bool] | None:
    """The section that a key holds, and whether it holds a list of them."""
    for option in key.get("anyOf", [key]):
        if "$ref" in option:
            return definitions[option["$ref"].rpartition("/")[2]], False
        if "$ref" in option.get("items", {}):
            return definitions[option["items"]["$ref"].rpartition("/")[2]], True
    return None


def _kind(key: Mapping[str, Any]) -> str:
    """Values that a key takes, in words."""
    if "anyOf" in key:
        return " or ".join(map(_kind, key["anyOf"]))
    if choices := key.get("enum", [key["const"]] if "const" in key else None):
        return ", ".join(f"`{value}`" for value in choices)
    if key.get("type") == "array":
        items = key["items"]
        plural = _PLURALS.get(items.get("type"), "sections")
        return f"list of {_kind(items) if 'enum' in items else plural}"
    if "$ref" in key or "additionalProperties" in key:
        return "section" if "$ref" in key else "key: value"
    limits = ", ".join(f"{sign} {key[name]:g}" for name, sign in _LIMITS if name in key)
    return _WORDS[key["type"]] + (f" {limits}" if limits else "")


def _default(key: Mapping[str, Any], *, is_section: bool) -> str:
    value = key.get("default")
    if is_section and (value is None or isinstance(value, dict)):
        return "" if isinstance(value, dict) else "`null`"
    return f"`{json.dumps(value)}`" if not isinstance(value, str) else f"`{value}`"


def _plain(words: str) -> str:
    return " ".join(words.split()).replace("|", "\\|")


def main(arguments: list[str]) -> int:
    """Write the reference to a file."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m mcspark.config.reference FILE", file=sys.stderr)  # noqa: T201
        return 2
    Path(arguments[0]).write_text(reference(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
