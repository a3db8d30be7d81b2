"""A first configuration, guessed from the columns of the tables, with words about every guess."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from mcspark.config import load_config
from mcspark.data.csv_sample import with_decimal_commas
from mcspark.data.guess import GroupGuess, Roles, Sample, guess_groups, guess_roles, read_sample, shortest
from mcspark.errors import ConfigurationError, ContractError


def write_configuration(
    scored: str, attributes: Sequence[str], output: str, *, force: bool = False
) -> list[str]:
    """Write it, and tell what was guessed.

    Parameters
    ----------
    scored : str
        The scored table.
    attributes : sequence of str
        The attribute tables.
    output : str
        File to write.
    force : bool
        Replace what is there.

    Raises
    ------
    ConfigurationError
        If the file is there already, or there is no attribute table.
    ContractError
        If a table cannot be read, or lacks a key or a score.
    """
    place = Path(output)
    if place.exists() and not force:
        raise ConfigurationError(f"{output} is there already; choose another --output, or --force")
    if not attributes:
        raise ConfigurationError(
            "name an attribute table too: mcspark init SCORED ATTRIBUTES; where the attributes stand in the "
            "scored table, write them with the key to a table of their own"
        )
    if same := [path for path in attributes if Path(path).resolve() == Path(scored).resolve()]:
        raise ConfigurationError(
            f"{same[0]} is the scored table too, and a job would not know which of its columns is meant; "
            "write the attributes with the key to a table of their own, without the score and the label"
        )
    table, others = read_sample(scored), [read_sample(path) for path in attributes]
    roles = guess_roles(table, others)
    if roles.key is None or roles.score is None:
        raise ContractError(f"{scored}: {_missing(table, others, roles)}")
    guesses = [
        _told_apart(guess_groups(o, roles), [t for t in (table, *others) if t is not o]) for o in others
    ]
    text = _yaml(table, others, roles, [g for found in guesses for g in found])
    with TemporaryDirectory() as folder:  # what no job takes is not written
        trial = Path(folder) / place.name
        trial.write_text(text, encoding="utf-8")
        load_config(str(trial), environ={})
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    return [
        *_told(table, roles, guesses),
        "",
        f"Wrote {output}. Read it, then: mcspark check --config {output}",
    ]


def _told_apart(guesses: Sequence[GroupGuess], others: Sequence[Sample]) -> list[GroupGuess]:
    """Leave out what another table has too: a job refuses a column that is in two tables."""
    taken = {name.casefold(): table.path for table in others for name in table.columns}
    return [
        replace(group, used=False, why=f"also in {taken[group.column.casefold()]}; rename one of the two")
        if group.column.casefold() in taken
        else group
        for group in guesses
    ]


def _missing(table: Sample, others: Sequence[Sample], roles: Roles) -> str:
    problems = []
    if roles.key is None:
        shared = [n for n in table.columns if all(n in other.columns for other in others)]
        problems.append(
            f"no columns that name each row once and are in every table (shared: {shared or 'none'}); give "
            "the tables a common key"
        )
    if roles.score is None:
        commas = with_decimal_commas(table.rows)
        problems.append(
            f"no numeric column within [0, 1] to be the score, of {table.columns}"
            + (f"; {commas} have decimal commas: write numbers with a point" if commas else "")
        )
    return "; ".join(problems)


def _told(table: Sample, roles: Roles, guesses: Sequence[Sequence[GroupGuess]]) -> list[str]:
    assert roles.key is not None
    rows = f"{len(table.rows):,}"
    lines = [
        f"Guessed from the first {rows} rows of {table.path}:",
        f"  key     {', '.join(roles.key)}: together they name each of these rows once",
        f"  score   {roles.score}: numbers within [0, 1]",
        f"  label   {roles.label}: numbers within [0, 1]" if roles.label else "  label   none found: name it",
        f"  weight  {roles.weight}: numbers, none negative" if roles.weight else "  weight  none",
    ]
    for group in (g for found in guesses for g in found):
        cut = f", cut at {', '.join(shortest(b) for b in group.bins)}" if group.bins else ""
        lines.append(f"  {'groups ' if group.used else 'left out'} {group.column}: {group.why}{cut}")
    return lines


def _yaml(table: Sample, others: Sequence[Sample], roles: Roles, groups: Sequence[GroupGuess]) -> str:
    key = json.dumps(roles.key, ensure_ascii=False)
    lines = [
        "# Written by mcspark init: guesses to be read and changed. Every key: docs/configuration.md",
        "scored:",
        f"  path: {_word(table.path)}",
        f"  format: {table.format}",
        *_csv(table, "  "),
        f"  key: {key}            # together they name a row once",
        f"  score: {_word(roles.score)}        # in [0, 1]",
        f"  label: {_word(roles.label)}        # in [0, 1]; rows without one are scored, not learned from",
    ]
    lines.append(
        f"  weight: {_word(roles.weight)}"
        if roles.weight
        else "  # weight: a column of weights, if there is one"
    )
    lines.append("attributes:")
    for other in others:
        lines += [f"  - path: {_word(other.path)}", f"    format: {other.format}"]
        lines += [*_csv(other, "    "), f"    key: {key}"]
    lines += [
        "groups:",
        "  min_share: 0.01          # a category is a group above this share of the labelled rows",
    ]
    lines.append("  columns:")
    for group in groups:
        bins = f", bins: [{', '.join(shortest(edge) for edge in group.bins)}]" if group.bins else ""
        entry = f"- {{column: {_word(group.column)}{bins}}}"
        lines.append(f"    {entry if group.used else '# ' + entry}    # {_one_line(group.why)}")
    if not any(group.used for group in groups):
        lines[-1 - len(groups)] = "  columns: []"
    lines += [
        "  # predicates:",
        "  #   - {name: a_group_by_condition, where: \"COLUMN = 'x' AND OTHER >= 65\"}",
        "split:",
        "  test: 0.4                # share of the labelled rows that only the report looks at",
        "output:",
        "  path: mcspark-run/calibrated",
        "model: {path: mcspark-run/model}",
        "report: {path: mcspark-run/report.html}",
    ]
    return "\n".join(lines) + "\n"


def _csv(table: Sample, indent: str) -> list[str]:
    given = table.csv.model_dump(mode="json", exclude_defaults=True) if table.csv else {}
    return [f"{indent}csv: {json.dumps(given, ensure_ascii=False)}"] if given else []


def _word(text: str | None) -> str:
    """Text as YAML reads it back, whatever is in it."""
    return "null" if text is None else json.dumps(text, ensure_ascii=False)


def _one_line(text: str) -> str:
    return " ".join(text.split())
