"""A difference as tables, for a terminal and for a page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from mcspark.report.difference import BANDS, FAR, NOBODY, Difference, Side, change_of_group
from mcspark.report.facts import MISSING, count, number
from mcspark.report.page import environment
from mcspark.report.svg import Picture

MOST = 10
DRAWN = 3
"""Groups whose change is drawn."""


@dataclass(frozen=True)
class Table:
    """A table of text."""

    caption: str
    head: tuple[str, ...]
    body: tuple[tuple[str, ...], ...]


def tables(found: Difference, most: int = MOST) -> list[Table]:
    """What there is, in its order; ``most`` rows of what grows with the groups."""
    return list(_tables(found, most))


def _tables(found: Difference, most: int) -> Iterator[Table]:
    body: tuple[tuple[str, ...], ...]
    if found.moves:
        yield _bands(found)
        rows = [
            (found.words(name), count(n), f"{mean:+.4f}", _percent(far))
            for name, n, mean, far in found.moves.groups[:most]
            if mean or far
        ]
        head = ("group", "rows", "mean move", f"moved by more than {FAR:g}")
        if rows:
            yield Table("Groups whose scores move most, B less A", head, tuple(rows))
    if found.curves is not None and not found.same:
        body = tuple(
            (found.words(c.group), number(c.mean), f"{c.largest:+.4f}", f"{c.at:.2f}")
            for c in found.curves[: most + 1]
            if c.mean or c.group == NOBODY
        )
        yield Table(
            "Corrections that differ most: what members of one group alone get, B less A",
            ("group", "mean distance", "largest", "at score"),
            body,
        )
    if found.metrics is not None:
        body = tuple(
            (m.metric, _value(m.a, m.a_interval), _value(m.b, m.b_interval), _change(m.a, m.b))
            for m in found.metrics
        )
        yield Table("Metrics on held-out rows, with 90 % intervals", ("metric", "A", "B", "change"), body)
    if found.levels:
        body = tuple(
            (found.words(c.group or "all rows"), number(c.least_move)) for c in found.levels[: most + 1]
        )
        yield Table(
            "By how much the held-out scores of a group have moved on average, at least",
            ("group", "mean move"),
            body,
        )
        every = found.levels[0]
        body = tuple(
            (f"{i / len(every.a):.3g} to {(i + 1) / len(every.a):.3g}", *map(_percent, pair))
            for i, pair in enumerate(zip(every.a, every.b, strict=True))
        )
        yield Table("Held-out rows by calibrated score", ("score", "A", "B"), body)


def sentences(found: Difference) -> list[str]:
    """What the tables are headed by."""
    said = []
    if found.groups_of_both is not None:
        said.append(f"{len(found.groups_of_both)} groups are in both.")
        for side, names in (("A", found.groups_of_a), ("B", found.groups_of_b)):
            if names:
                more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
                said.append(f"Only in {side}: {', '.join(map(found.words, names[:MOST]))}{more}.")
    if found.same:
        said.append("The two models give every row the same score.")
    if (moves := found.moves) is not None:
        said.append(
            f"Of {count(moves.rows)} rows, {count(moves.up + moves.down)} move by more than {FAR:g}: "
            f"{count(moves.up)} up, {count(moves.down)} down. A score moves by "
            f"{number(moves.mean_distance)} on average, and by {number(moves.largest)} at most."
        )
    return [*said, *found.notes]


def html(found: Difference, a: Side, b: Side, most: int = 50) -> str:
    """The page: one self-contained file."""
    return (
        environment()
        .get_template("difference.html.j2")
        .render(
            found=found, sentences=sentences(found), tables=tables(found, most), picture=_picture(found, a, b)
        )
    )


def _picture(found: Difference, a: Side, b: Side) -> Picture | None:
    if not (found.curves and a.model and b.model):
        return None
    from mcspark.report.plots.difference import corrections_of_two  # noqa: PLC0415  (slow to import)
    from mcspark.report.svg import picture  # noqa: PLC0415

    models = (a.model, b.model)
    names = [c.group for c in found.curves[1 : DRAWN + 1] if c.mean > 0]
    pairs = {
        name: tuple(change_of_group(model, None if name == NOBODY else name) for model in models)
        for name in (NOBODY, *names)
    }
    pairs = {found.words(name): lines for name, lines in pairs.items()}
    words = (
        "Calibrated score less score, over the score, in A (dashed) and in B (solid), of whoever is in no "
        f"group, and in these alone: {', '.join(list(pairs)[1:]) or 'none'}."
    )
    return picture(corrections_of_two(pairs), "curves", words)


def _bands(found: Difference) -> Table:
    assert found.moves is not None
    edges = ("0", *(f"{edge:g}" for edge in BANDS))
    words = [f"{low} to {high}" for low, high in pairwise(edges)] + [f"{edges[-1]} or more"]
    body = tuple(
        (word, count(n), _percent(n / found.moves.rows))
        for word, n in zip(words, found.moves.bands, strict=True)
    )
    return Table("Rows by how far their score moves", ("distance", "rows", "share"), body)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _value(value: float | None, ends: Any) -> str:
    known = f" ({number(ends[0])} to {number(ends[1])})" if ends else ""
    return f"{number(value)}{known}"


def _change(a: float | None, b: float | None) -> str:
    return MISSING if a is None or b is None else f"{b - a:+.4f}"
