"""Problems of a configuration in words: where, what is wrong, the value, and how to mend it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from mcspark.config.secrets import redact
from mcspark.errors import ConfigurationError

_MISSING = object()
_MAX_SHOWN = 80

Place = tuple[str, ...]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with the configuration.

    Parameters
    ----------
    place : tuple of str
        Keys and list positions from the top, such as ``("attributes", "0", "path")``.
    what : str
        What is wrong and how to mend it.
    value : object, optional
        What stands there.
    origin : str, optional
        Words on who gave the value; empty where nobody did; looked up by the place if ``None``.
    """

    place: Place
    what: str
    value: Any = _MISSING
    origin: str | None = None

    def line(self) -> str:
        """One line for people; secrets in the value are hidden."""
        facts = [] if self.value is _MISSING else [f"given {_shown(self.value)}"]
        facts += [self.origin] if self.origin else []
        end = f" ({', '.join(facts)})" if facts else ""
        return f"{'.'.join(self.place) or 'configuration'}: {self.what}{end}"


def raise_problems(problems: Sequence[Problem]) -> None:
    """Raise one :class:`ConfigurationError` that lists all problems; nothing if there are none."""
    lines = list(dict.fromkeys(problem.line() for problem in problems))
    if len(lines) == 1:
        raise ConfigurationError(f"The configuration is wrong at {lines[0]}")
    if lines:
        listed = "\n".join(f"  {line}" for line in lines)
        raise ConfigurationError(f"The configuration has {len(lines)} problems:\n{listed}")


def problems_of(error: ValidationError, schema: type[BaseModel]) -> list[Problem]:
    """The problems that pydantic found, in words."""
    problems = []
    for detail in error.errors(include_url=False):
        place = tuple(str(part) for part in detail["loc"])
        kind, value = detail["type"], detail.get("input", _MISSING)
        context = detail.get("ctx", {})
        if kind == "missing":
            problems.append(Problem(place, "is missing; add it", origin=""))
        elif kind == "extra_forbidden":
            problems.append(Problem(place, f"unknown key; {_did_you_mean(place, schema)}"))
        elif kind == "value_error":
            problems.append(Problem(place, str(context["error"]), value))
        elif kind in _WORDS:
            words = _WORDS[kind].format(**context)
            if kind == "literal_error":
                words = _one_of(str(context["expected"]), value)
            problems.append(Problem(place, words, value))
        else:
            problems.append(Problem(place, detail["msg"], value))
    return problems


_SECTION = "must be a section of key: value lines"
_WORDS = {
    "string_type": "must be text; put it in quotes",
    "int_type": "must be a whole number, without quotes",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number, without quotes",
    "bool_type": "must be true or false, without quotes",
    "tuple_type": "must be a list, such as [a, b]",
    "dict_type": _SECTION,
    "model_type": _SECTION,
    "model_attributes_type": _SECTION,
    "literal_error": "must be {expected}",
    "finite_number": "must be a finite number",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:g}",
}


def _one_of(expected: str, value: Any) -> str:
    words = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    close = get_close_matches(str(value), words, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"must be {' | '.join(words)}{hint}"


def _did_you_mean(place: Place, schema: type[BaseModel]) -> str:
    """The nearest key of the same section, or the place of the very key in another section."""
    here = _fields_at(schema, place[:-1])
    close = get_close_matches(place[-1].lower(), here, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]}?"
    elsewhere = [known for known in _all_places(schema) if known[-1] == place[-1].lower()]
    if elsewhere:
        return f"did you mean {'.'.join(elsewhere[0])}?"
    return f"known here are {', '.join(here)}"


def _fields_at(schema: type[BaseModel], place: Place) -> list[str]:
    for part in place:
        if part in schema.model_fields:
            schema = _section_in(schema.model_fields[part].annotation) or schema
    return list(schema.model_fields)


def _all_places(schema: type[BaseModel], above: Place = ()) -> list[Place]:
    places: list[Place] = []
    for name, field in schema.model_fields.items():
        places.append((*above, name))
        section = _section_in(field.annotation)
        if section is not None:
            places.extend(_all_places(section, (*above, name)))
    return places


def _section_in(annotation: Any) -> type[BaseModel] | None:
    """The section that an annotation such as ``tuple[Section, ...] | None`` is about."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _section_in(part))), None)


def _shown(value: Any) -> str:
    text = json.dumps(redact(value), ensure_ascii=False, default=repr)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"
