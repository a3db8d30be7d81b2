"""Where settings come from, and which wins: ``--set`` > environment > file > defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mcspark.config.clashes import clashes
from mcspark.config.feature_clashes import feature_problems
from mcspark.config.models import Config
from mcspark.config.name_clashes import name_clashes
from mcspark.config.problems import Place, Problem, problems_of, raise_problems
from mcspark.config.remote import remote_address
from mcspark.config.score_clashes import score_problems
from mcspark.config.secrets import redact_uri
from mcspark.config.section import FOLDER
from mcspark.config.segment_clashes import segment_problems
from mcspark.config.window_clashes import window_problems
from mcspark.config.yaml_text import parse_yaml
from mcspark.errors import ConfigurationError

PREFIX = "MCSPARK_"
MAX_FILE_BYTES = 2**20


@dataclass(frozen=True)
class _Assignment:
    """One value for one place, and the words that say who gave it."""

    place: Place
    text: str
    origin: str


def load_config(
    path: str | None,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
    *,
    needs: Sequence[str] = (),
) -> Config:
    """The resolved configuration of a job.

    Parameters
    ----------
    path : str or None
        YAML file; ``None`` for the environment, ``overrides`` and defaults alone.
    overrides : sequence of str
        ``a.b=value``, as given to ``--set``; list positions count from 0 (``attributes.0.path=…``), later
        ones win, and the value is YAML.
    environ : mapping
        ``MCSPARK_SECTION__KEY=value`` settings, two underscores for each step down; the value is YAML.
        Variables of the prefix that are one word and no key of the configuration are left alone.
    needs : sequence of str
        Dotted places that this job cannot do without, such as ``("output", "model")``; with ``output`` it
        is also checked that the job does not write over what it reads, nor, with ``model``, adds a column
        that is there.

    Raises
    ------
    ConfigurationError
        One error that lists every problem found.
    """
    plain = {} if path is None else _read_file(path)
    problems: list[Problem] = []
    origins: dict[Place, str] = {}
    assignments = [*_from_environment(environ, problems), *_from_overrides(overrides, problems)]
    for assignment in assignments:
        if wrong := _apply(plain, assignment):
            problems.append(Problem(assignment.place, wrong, assignment.text, assignment.origin))
        else:
            origins[assignment.place] = assignment.origin
    config: Config | None = None
    try:
        # A Spark elsewhere works in another folder than this process.
        context = {FOLDER: str(Path.cwd())} if remote_address(environ) else None
        config = Config.model_validate(plain, context=context)
    except ValidationError as error:
        problems.extend(problems_of(error, Config))
    problems.extend(_missing(plain, needs, [problem.place for problem in problems]))
    if config is not None:
        problems.extend(name_clashes(config))
        problems.extend(window_problems(config))
        problems.extend(segment_problems(config))
        compares = "compare.output" in needs
        problems.extend(score_problems(config, compares=compares))
        problems.extend(feature_problems(config, compares=compares))
        if "output" in needs:
            problems.extend(clashes(config, adds_scores="model" in needs, file=path))
    reported = [
        p if p.origin is not None else replace(p, origin=_origin_of(p.place, origins, path)) for p in problems
    ]
    raise_problems(reported)
    assert config is not None  # every failed validation has raised above
    return config


def _read_file(path: str) -> dict[str, Any]:
    shown = redact_uri(path)
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigurationError(
            f"The configuration file {shown} cannot be read: {reason}; name a YAML file on this machine"
        ) from None
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigurationError(
            f"The configuration file {shown} is larger than {MAX_FILE_BYTES} bytes; name the right file"
        )
    try:
        plain = parse_yaml(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ConfigurationError(
            f"The configuration file {shown} is not UTF-8 text; save it as such"
        ) from None
    except ValueError as error:
        raise ConfigurationError(f"The configuration file {shown} is not usable YAML: {error}") from None
    if plain is None:
        return {}
    if not isinstance(plain, dict):
        raise ConfigurationError(
            f"The configuration file {shown} holds a {_word(plain)}, not sections of key: value lines; "
            "start from the example"
        )
    return plain


def _word(value: Any) -> str:
    return "list" if isinstance(value, list) else "single value"


def _from_environment(environ: Mapping[str, str], problems: list[Problem]) -> list[_Assignment]:
    found = []
    for name, text in environ.items():
        if not name.startswith(PREFIX):
            continue
        place = tuple(name[len(PREFIX) :].lower().split("__"))
        origin = f"from the environment variable {name}"
        if len(place) == 1 and place[0] not in Config.model_fields:
            continue
        if not all(place):
            problems.append(Problem((name,), f"must be written {PREFIX}SECTION__KEY", text, "environment"))
        else:
            found.append(_Assignment(place, text, origin))
    # A whole section comes before its keys, whatever the order of the environment.
    return sorted(found, key=lambda a: (len(a.place), a.place))


def _from_overrides(overrides: Sequence[str], problems: list[Problem]) -> list[_Assignment]:
    found = []
    for override in overrides:
        name, equals, text = override.partition("=")
        place = tuple(part.strip() for part in name.split("."))
        if not equals or not all(place):
            problems.append(
                Problem(("--set",), "must be written section.key=value", override, "command line")
            )
        else:
            found.append(_Assignment(place, text, "from --set"))
    return found


def _apply(plain: dict[str, Any], assignment: _Assignment) -> str | None:
    """Make the assignment, or say why it cannot be made."""
    try:
        _assign(plain, assignment.place, parse_yaml(assignment.text))
    except ValueError as error:
        return str(error)
    return None


def _assign(plain: dict[str, Any], place: Place, value: Any) -> None:
    """Put ``value`` at ``place``, making the sections on the way."""
    container: Any = plain
    for depth, part in enumerate(place[:-1]):
        below = _get(container, part, place[:depth])
        if not isinstance(below, (dict, list)):
            if below is not None:
                raise ValueError(f"{'.'.join(place[: depth + 1])} is a single value and has no keys")
            below = [] if place[depth + 1].isdecimal() else {}
        # A copy, since two places of a file may share one value by a YAML alias.
        below = below.copy()
        _put(container, part, below)
        container = below
    _get(container, place[-1], place[:-1])
    _put(container, place[-1], value)


def _get(container: dict[str, Any] | list[Any], part: str, above: Place) -> Any:
    if isinstance(container, dict):
        return container.get(part)
    if not part.isdecimal() or int(part) > len(container):
        where = ".".join(above)
        raise ValueError(
            f"{where} is a list of {len(container)}; write {where}.0 to {where}.{len(container)}"
        )
    return container[int(part)] if int(part) < len(container) else None


def _put(container: dict[str, Any] | list[Any], part: str, value: Any) -> None:
    if isinstance(container, dict):
        container[part] = value
    elif int(part) < len(container):
        container[int(part)] = value
    else:
        container.append(value)


def _missing(plain: dict[str, Any], needs: Sequence[str], known: Sequence[Place]) -> list[Problem]:
    problems = []
    for need in needs:
        place = tuple(need.split("."))
        value: Any = plain
        for part in place:
            value = value.get(part) if isinstance(value, dict) else None
        if value is None and place not in known:
            problems.append(Problem(place, "is missing, and this job needs it; add it", origin=""))
    return problems


def _origin_of(place: Place, origins: Mapping[Place, str], path: str | None) -> str | None:
    """Who gave the value at ``place``, or the section around it, or something inside it."""
    around = [origin for known, origin in origins.items() if place[: len(known)] == known]
    inside = [origin for known, origin in origins.items() if known[: len(place)] == place]
    if around or inside:
        return (around or inside)[-1]
    return f"from {redact_uri(path)}" if path is not None else None
