"""Calibrators by segment: from the labelled rows of all segments to a model for each that is large enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import DataFrame

from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.cells.levels import IntArray, ScoreBins, base_levels
from mcspark.core.training.growing import Growing
from mcspark.core.training.recipe import RecipeFit
from mcspark.errors import ContractError
from mcspark.ml.cells.cells import MAX_DRIVER_CELLS, ScoredColumns
from mcspark.ml.cells.census import Census
from mcspark.ml.cells.fixed_point import FixedPoint
from mcspark.ml.cells.groups import GroupSet
from mcspark.ml.cells.segment_cells import Placing, SegmentCells, segment_bins
from mcspark.ml.fit_summary import FitSummary, trees_of
from mcspark.ml.multicalibrator import Multicalibrator, MulticalibratorModel
from mcspark.ml.training import driver_training
from mcspark.ml.training.side_by_side import side_by_side
from mcspark.runtime.process.progress import tell

NOT_JUDGED = "none of its rows is held out, so its own calibrator could not be judged"


@dataclass
class Segments:
    """What becomes of each segment.

    Parameters
    ----------
    census : Census
    models : dict of int to MulticalibratorModel
        By their numbers, the calibrators of the segments that have one of their own.
    reasons : dict of int to str
        Why a segment that is large enough has none.
    test : dict of int to Cells
        Held-out cells of each segment, and of the rows of none, whose number is that of the segments.
    groups : dict of int to FittedGroups
        Of these cells.
    """

    census: Census
    models: dict[int, MulticalibratorModel] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)
    test: dict[int, Cells] = field(default_factory=dict)
    groups: dict[int, FittedGroups] = field(default_factory=dict)

    @property
    def pooled(self) -> int:
        """Segments that share the pooled calibrator."""
        return self.census.pooled + self.census.own - len(self.models)

    def model(self, pooled: MulticalibratorModel) -> MulticalibratorModel:
        """The pooled calibrator with those of the segments."""
        table = self.census.table.take(sorted(self.models))
        return pooled.with_segments(table, [self.models[number] for number in sorted(self.models)])


@dataclass(frozen=True)
class SegmentFit:
    """How calibrators by segment are learned.

    Parameters
    ----------
    estimator : Multicalibrator
    wanted : GroupSet
    levels : sequence of int
        Evaluation grids.
    score_bins : int
    columns : sequence of str
        That make a segment.
    places : sequence of int
        The families of these columns, among those that the rows carry.
    least : int
        Fewest labelled rows of a segment with a calibrator of its own.
    timeout_seconds : float
        Wall-clock limit of one ensemble.
    most_cells : int
        That the driver holds at a time.
    """

    estimator: Multicalibrator
    wanted: GroupSet
    levels: Sequence[int]
    score_bins: int
    columns: Sequence[str]
    places: Sequence[int]
    least: int
    timeout_seconds: float
    most_cells: int = MAX_DRIVER_CELLS

    def fit(
        self,
        labelled: DataFrame,
        names: ScoredColumns,
        pooled: FittedGroups,
        bins: ScoreBins,
        scale: FixedPoint,
    ) -> Segments:
        """Count the segments, sum their cells in one pass, and learn a calibrator for each large one.

        Each is the one that the same estimator would learn, with the official LightGBM, from the rows of the
        segment alone.

        Parameters
        ----------
        labelled : DataFrame
            With score, label, weight, split, and the category columns of groups and segments.
        names : ScoredColumns
        pooled : FittedGroups
            Groups that the other segments are judged by.
        bins : ScoreBins
        scale : FixedPoint
            Of the pooled calibrator.
        """
        census = Census.of(labelled, self.columns, self.places, names.weight, self.least)
        found, table = Segments(census), census.table
        base = base_levels(tuple(self.levels))
        own = segment_bins(labelled, names, table, self.places, base, self.score_bins, census.scales)
        others = len(table) - census.own + 1
        placing = Placing(table, (*own, *[bins] * others), (*census.scales, *[scale] * others))
        with SegmentCells(labelled, names, self.wanted.families, self.places, placing) as cells:
            chosen = self._chosen(cells, census.own, pooled, found)
            fit = partial(fitted, growing=self.estimator.growing, timeout_seconds=self.timeout_seconds)
            tasks = self._tasks(cells, chosen, found)
            with side_by_side(census.own) as workers:
                for number, grown in workers.map(fit, tasks):
                    found.models[number] = self._model(found.groups[number], grown)
                    tell(table.names[number], progress=(len(found.models), census.own))
        return found

    def _chosen(
        self, cells: SegmentCells, own: int, pooled: FittedGroups, found: Segments
    ) -> list[FittedGroups]:
        """Groups of each segment by their shares in it; the pooled ones where it has no calibrator."""
        groups = []
        for number, shares in enumerate(cells.shares(own)):
            try:
                groups.append(self.wanted.chosen(shares))
            except ContractError as error:
                found.reasons[number] = str(error)
                groups.append(pooled)
        return groups + [pooled] * (len(found.census.table) - own + 1)

    def _tasks(
        self, cells: SegmentCells, chosen: list[FittedGroups], found: Segments
    ) -> Iterator[tuple[int, tuple[Cells]]]:
        own = found.census.own

        def paired(number: int, words: IntArray, weight: IntArray) -> FittedGroups:
            groups = chosen[number]
            if number >= own or number in found.reasons or self.wanted.intersections < 2:
                return groups
            try:
                return self.wanted.paired(groups, words, weight.astype(float))
            except ContractError as error:
                found.reasons[number] = str(error)
                return groups

        for number, groups, some in cells.collect(chosen, paired, self.most_cells):
            found.groups[number], found.test[number] = groups, some.of_role(Role.test)
            if number < own and not found.test[number].n.sum():
                found.reasons.setdefault(number, NOT_JUDGED)
            if number < own and number not in found.reasons:
                yield number, (some.of_role(Role.fit, Role.early_stopping),)

    def _model(self, groups: FittedGroups, grown: RecipeFit) -> MulticalibratorModel:
        fit, _, recipe = grown
        model = MulticalibratorModel(groups, fit.stages, method="trees", texts=fit.texts)
        engine = f"{driver_training.engine()} on the driver"
        model.summary = FitSummary(groups.names, trees_of(fit.stages), fit.rounds, None, engine, recipe)
        return self.estimator._copyValues(model)


def fitted(cells: Cells, growing: Growing, timeout_seconds: float) -> RecipeFit:
    """The trees of one segment."""
    return growing.fit(cells, driver_training.DriverTrainer(1, timeout_seconds))
