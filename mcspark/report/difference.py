"""What differs between two models, or two runs: groups, corrections, metrics, and how far scores move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from mcspark.core.calibrator import SignatureCalibrator
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.core.cells.readable import readable_names
from mcspark.core.metrics.score_metrics import SCORE_METRICS
from mcspark.core.saved import SavedModel
from mcspark.errors import ContractError
from mcspark.report.metrics_table import MetricsTable
from mcspark.scorer import Scorer

SCORES = (np.arange(400) + 0.5) / 400
"""Where the corrections are compared."""
BANDS = (0.001, 0.01, 0.05, 0.1, 0.2)
"""Bounds of the distances by which scores move."""
FAR = 0.01
"""A score that moves by more than this has moved."""
NOBODY = "(in no group)"


@dataclass(frozen=True)
class Side:
    """One of the two.

    Attributes
    ----------
    name : str
    model : SavedModel, optional
    metrics : MetricsTable, optional
    """

    name: str
    model: SavedModel | None = None
    metrics: MetricsTable | None = None


@dataclass(frozen=True)
class CurveChange:
    """What members of one group alone get, in B less in A: on average over the scores, and at most."""

    group: str
    mean: float
    largest: float
    at: float


@dataclass(frozen=True)
class MetricChange:
    """One metric of the last score of each run, with the ends of its interval where they were measured."""

    metric: str
    a: float | None
    a_interval: tuple[float, float] | None
    b: float | None
    b_interval: tuple[float, float] | None


@dataclass(frozen=True)
class LevelChange:
    """Shares of the held-out rows of a group (None: all) by level, and the least mean move they prove."""

    group: str | None
    a: tuple[float, ...]
    b: tuple[float, ...]
    least_move: float


@dataclass
class Moves:
    """Rows by the distance of their two calibrated scores.

    Attributes
    ----------
    rows : int
    bands : list of int
        Rows that move by less than each of :data:`BANDS`, and by more than the last.
    up, down : int
        Rows that move by more than :data:`FAR`.
    mean, mean_distance, largest : float
    groups : list of tuple
        Group of B, its rows, their mean move, and the share of them that moves by more than :data:`FAR`.
    """

    rows: int = 0
    bands: list[int] = field(default_factory=lambda: [0] * (len(BANDS) + 1))
    up: int = 0
    down: int = 0
    mean: float = 0.0
    mean_distance: float = 0.0
    largest: float = 0.0
    groups: list[tuple[str, int, float, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Difference:
    """All that differs; a part that could not be compared is None, and ``notes`` say why."""

    a: str
    b: str
    groups_of_both: tuple[str, ...] | None
    groups_of_a: tuple[str, ...] | None
    groups_of_b: tuple[str, ...] | None
    curves: tuple[CurveChange, ...] | None
    metrics: tuple[MetricChange, ...] | None
    levels: tuple[LevelChange, ...] | None
    moves: Moves | None
    notes: tuple[str, ...]
    names: dict[str, str] = field(default_factory=dict)
    """What people read for the ids of groups, where a model has titles and labels."""
    same: bool = False
    """Whether both models have the same groups and the same numbers, and so the same scores."""

    def words(self, group: str) -> str:
        """What people read for a group."""
        return self.names.get(group, group)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return asdict(self)


def difference(a: Side, b: Side, moves: Moves | None = None, notes: Iterable[str] = ()) -> Difference:
    """Compare two sides by all that both have."""
    first, second = _group_names(a), _group_names(b)
    both = only_a = only_b = None
    if first is not None and second is not None:
        both = tuple(name for name in first if name in set(second))
        only_a = tuple(name for name in first if name not in set(second))
        only_b = tuple(name for name in second if name not in set(first))
    measured = a.metrics is not None and b.metrics is not None
    return Difference(
        a.name,
        b.name,
        both,
        only_a,
        only_b,
        _curves(a.model, b.model) if a.model and b.model else None,
        tuple(_metrics(a.metrics, b.metrics)) if measured else None,  # type: ignore[arg-type]
        tuple(_levels(a.metrics, b.metrics)) if measured else None,  # type: ignore[arg-type]
        moves,
        tuple(notes),
        {**_names(a), **_names(b)},
        same=a.model is not None and b.model is not None and _same(a.model, b.model),
    )


_MOST_SEGMENTS = 10


def _same(a: SavedModel, b: SavedModel) -> bool:
    if a is b:
        return True
    known = (a.method, a.groups, a.columns["scoreCol"]) == (b.method, b.groups, b.columns["scoreCol"])
    alike = [part.groups for part in a.parts] == [part.groups for part in b.parts]
    return known and alike and a.scoring.calibrator.to_dict() == b.scoring.calibrator.to_dict()


def segments_told(a: SavedModel | None, b: SavedModel | None) -> list[str]:
    """Which segments both models have, in sentences; nothing where none has any."""
    tables = [model.table if model is not None else None for model in (a, b)]
    if not any(table is not None for table in tables):
        return []
    one, two = (set(table.names) if table is not None else set() for table in tables)
    counts = f"{len(one)} in A, {len(two)} in B, {len(one & two)} in both"
    reported = [f"Segments with a calibrator of their own: {counts}."]
    for letter, names in (("A", sorted(one - two)), ("B", sorted(two - one))):
        if names and one and two:
            more = f" and {len(names) - _MOST_SEGMENTS} more" if names[_MOST_SEGMENTS:] else ""
            reported.append(f"Only in {letter}: {', '.join(names[:_MOST_SEGMENTS])}{more}.")
    return [
        *reported,
        "Groups and corrections are those of the pooled calibrators, moves of rows those of all.",
    ]


def _group_names(side: Side) -> tuple[str, ...] | None:
    if side.model:
        return side.model.groups.names
    return tuple(map(str, side.metrics.by_group(side.metrics.last, "share").index)) if side.metrics else None


def _names(side: Side) -> dict[str, str]:
    if side.model is None:
        return {}
    names = readable_names(side.model.groups.families, side.model.groups.names)
    return {name: words for name, words in names.items() if words != name}


def change_of_group(model: SavedModel, group: str | None) -> FloatArray:
    """Calibrated score less score at :data:`SCORES`, of whoever is in this group alone (None: in none)."""
    groups = model.groups
    place = None if group is None else groups.names.index(group)
    places = () if place is None else (place, *_parents(groups, place))
    if groups.features:
        base = [groups.base_names[i] for i in places if i < len(groups.base_names)]
        member = np.array([sorted(map(groups.learned_names.index, base))], dtype=np.int64)
    else:
        member = np.zeros((1, len(groups.names)), dtype=bool)
        member[0, list(places)] = True
    return _calibrated(model.calibrator, member) - SCORES


def _calibrated(calibrator: SignatureCalibrator, member: Any) -> FloatArray:
    return calibrator.apply_signatures(SCORES, np.zeros(len(SCORES), dtype=np.int64), member)


def _parents(groups: FittedGroups, place: int) -> tuple[int, ...]:
    base = len(groups.base_names)
    return groups.pairs[place - base] if place >= base else ()


def _curves(a: SavedModel, b: SavedModel) -> tuple[CurveChange, ...]:
    found = []
    known = set(b.groups.names)
    for group in (None, *(name for name in a.groups.names if name in known)):
        moved = change_of_group(b, group) - change_of_group(a, group)
        at = int(np.abs(moved).argmax())
        mean = float(np.abs(moved).mean())
        found.append(CurveChange(group or NOBODY, mean, float(moved[at]), float(SCORES[at])))
    return (found[0], *sorted(found[1:], key=lambda c: (-c.mean, c.group)))


def _metrics(a: MetricsTable, b: MetricsTable) -> Iterator[MetricChange]:
    grids = [m for m in b.grids if m in a.grids]
    wanted: list[tuple[str, str, int | None]] = [(f"MC error, {m} levels", "mc_error", m) for m in grids]
    wanted += [(f"noise floor, {m} levels", "noise_floor", m) for m in grids]
    wanted += [("worst group's smECE", "worst_group_smece", None), ("MA error", "ma_error", None)]
    wanted += [(m.name, m.key, None) for m in SCORE_METRICS]
    for words, metric, levels in wanted:
        values = [side.value(side.last, metric, levels) for side in (a, b)]
        if values != [None, None]:
            ends = [_interval(side, metric, levels) for side in (a, b)]
            yield MetricChange(words, values[0], ends[0], values[1], ends[1])


def _interval(table: MetricsTable, metric: str, levels: int | None) -> tuple[float, float] | None:
    low, high = (table.value(table.last, f"{metric}_{end}", levels) for end in ("low", "high"))
    return None if low is None or high is None else (low, high)


def _levels(a: MetricsTable, b: MetricsTable) -> Iterator[LevelChange]:
    """Of all rows, then of the groups whose scores have moved most."""
    if a.grid != b.grid:
        return
    names = [str(n) for n in b.by_group(b.last, "share").index]
    found = []
    for group in (None, *names):
        shares = [_shares(side, group) for side in (a, b)]
        if all(s.sum() > 0 for s in shares):
            one, two = (s / s.sum() for s in shares)
            # Nobody moves less on average than the whole distribution does.
            least = float(np.abs(np.cumsum(two - one)).sum() / b.grid)
            found.append(LevelChange(group, tuple(one.tolist()), tuple(two.tolist()), least))
    yield from found[:1]
    yield from sorted(found[1:], key=lambda c: -c.least_move)


def _shares(table: MetricsTable, group: str | None) -> FloatArray:
    levels = table.by_level(table.last, group)["share"]
    return np.asarray(levels.reindex(range(table.grid)).fillna(0.0), dtype=np.float64)


def moves_of_rows(a: Scorer, b: Scorer, batches: Iterable[Any]) -> Moves:
    """Score every batch of a table with both.

    Raises
    ------
    ContractError
        If a row cannot be scored, or there is none.
    """
    total, groups = Moves(), _ByGroup(b.groups)
    signed = distance = 0.0
    for batch in batches:
        before = a.score(batch)
        score, signature, words = b.signatures(batch)
        moved = b.calibrator.apply_signatures(score, signature, b.groups.members(words)) - before
        far = np.abs(moved)
        bands = np.bincount(np.searchsorted(BANDS, far, side="right"), minlength=len(BANDS) + 1)
        total.rows += len(moved)
        total.bands = [n + m for n, m in zip(total.bands, bands.tolist(), strict=True)]
        total.up += int((moved > FAR).sum())
        total.down += int((moved < -FAR).sum())
        total.largest = max(total.largest, float(far.max(initial=0.0)))
        signed, distance = signed + float(moved.sum()), distance + float(far.sum())
        groups.add(moved, signature, words)
    if not total.rows:
        raise ContractError("there is no row to score with both models")
    total.mean, total.mean_distance = signed / total.rows, distance / total.rows
    total.groups = groups.rows()
    return total


class _ByGroup:
    """Sums of the moves by group."""

    def __init__(self, groups: FittedGroups) -> None:
        self._groups = groups
        self._sums = np.zeros((3, len(groups.names)))

    def add(self, moved: FloatArray, signature: IntArray, words: IntArray) -> None:
        far = (np.abs(moved) > FAR).astype(np.float64)
        sums = [
            np.bincount(signature, weights=w, minlength=len(words)) for w in (np.ones(len(far)), moved, far)
        ]
        self._sums += np.array(sums) @ self._groups.membership(words).astype(np.float64)

    def rows(self) -> list[tuple[str, int, float, float]]:
        """By group with rows: rows, mean move, share that moves by more than :data:`FAR`; most first."""
        found = [
            (name, int(n), float(moved / n), float(far / n))
            for name, n, moved, far in zip(self._groups.names, *self._sums, strict=True)
            if n
        ]
        return sorted(found, key=lambda row: (-abs(row[2]), row[0]))
