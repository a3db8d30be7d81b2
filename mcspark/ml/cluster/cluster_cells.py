"""Cells that are measured where they are: on the driver if they fit there, else in the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial

import structlog
from pyspark import StorageLevel
from pyspark.sql import DataFrame

from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.cells.levels import FloatArray
from mcspark.core.cells.summed import CellSums
from mcspark.core.metrics.calibration_error import too_small_groups
from mcspark.core.metrics.intervals import Intervals, SampleErrors, Tables, no_intervals
from mcspark.core.metrics.label_noise import Prior, quantum
from mcspark.core.metrics.noise import Explained, LabelErrors, NoiseFloor, coarse_grid, no_floors
from mcspark.core.metrics.simulations import DrawnLabels, DrawnSamples
from mcspark.ml.cells.cells import CellTable
from mcspark.ml.cells.driver_cells import cells_from, refuse_light_part
from mcspark.ml.cells.groups import GroupSet, JointWeights
from mcspark.ml.cluster.cluster_chance import ClusterAtoms, Variance
from mcspark.ml.cluster.cluster_ranks import ranked_of
from mcspark.ml.cluster.cluster_sums import Reading, joint_of, joint_of_categories, sums_of, total_of
from mcspark.runtime.tasks.blocks import counted, to_driver

log = structlog.get_logger(__name__)


_LARGEST_REST = 16.0
"""A squared residual is below this, whatever a linear model has made of it."""


@dataclass(frozen=True)
class CellLimit:
    """How many cells the driver holds.

    Parameters
    ----------
    most : int
    why : str
        Where the number is from, for the log.
    """

    most: int
    why: str

    def rows(self, count: int) -> int | None:
        """So many rows, whose cells the driver may take unseen; None if they may be too many cells."""
        return count if count <= self.most else None


@dataclass(frozen=True)
class Judged:
    """The cells of one role, the groups, and how many signatures the cells of all roles have."""

    cells: Cells | ClusterCells
    groups: FittedGroups
    signatures: int


@dataclass(frozen=True)
class ClusterCells(CellSums):
    """Cells in the cluster; an :class:`mcspark.core.metrics.metrics.Elsewhere`.

    Parameters
    ----------
    signed : DataFrame
        Kept blocks of :meth:`mcspark.ml.cells.cells.CellTable.signed`.
    reading : Reading
    count : int
        Number of cells of all roles.
    binary : bool
        Whether all labels are 0 or 1.
    kept : ExitStack
        Closed when the cells are not needed any more.
    """

    signed: DataFrame
    reading: Reading
    count: int
    binary: bool
    kept: ExitStack

    def noise_floor(
        self, levels: Sequence[int], draws: int, seed: int, *, min_rows: int
    ) -> dict[int | None, NoiseFloor]:
        """See :func:`mcspark.core.metrics.noise.noise_floor`."""
        judged = ~too_small_groups(self, min_rows)
        if not judged.any():
            return no_floors(levels)
        unit = quantum(self)
        errors = LabelErrors.of(self, levels, judged, unit)
        found = self._atoms.errors(DrawnLabels(errors, judged, unit, draws), seed)
        return errors.floors(found[-1], found[:-1])

    def intervals(self, levels: Sequence[int], draws: int, seed: int, *, min_rows: int) -> Intervals:
        """See :func:`mcspark.core.metrics.intervals.bootstrap_intervals`."""
        judged = ~too_small_groups(self, min_rows)
        if not judged.any():
            return no_intervals(levels)
        errors = SampleErrors.of(Tables.of_sums(self, judged), levels)
        found = self._atoms.errors(DrawnSamples(errors, judged, quantum(self), draws), seed)
        return errors.intervals(self, found, min_rows=min_rows)

    @cached_property
    def _atoms(self) -> ClusterAtoms:
        variance = None if self.binary else self._variance()
        atoms = ClusterAtoms(self.signed, self.reading, self.count, variance)
        return self.kept.enter_context(atoms)

    def _variance(self) -> Variance:
        """Variance of Σw·y of cells with labels between 0 and 1."""
        explained = Explained.of(self, joint_of(self.signed, self.reading), coarse_grid(self))
        ceiling = self.total("ceiling")
        left = total_of(
            self.signed, self.reading, lambda cells: cells.weight_sq * explained.rest(cells),
            self.reading.scale.weight_sq / _LARGEST_REST,
        )  # fmt: skip
        names = ("weight", "weight_sq", "largest")
        weight, square, known = (self.group_sums(name).sum(axis=1) for name in names)
        prior = Prior.of(
            (weight, square, known), (self.total(names[0]), self.total(names[1]), self.total(names[2])),
            left / ceiling if ceiling > 0 else 0.0,
        )  # fmt: skip

        def variance(cells: Cells) -> FloatArray:
            return prior.variance(cells, explained.rest(cells))

        return variance


def _chosen(table: CellTable, wanted: GroupSet, limit: CellLimit) -> FittedGroups:
    """The groups of these rows; intersections are weighed in the cluster where signatures may be many."""
    many = wanted.intersections == 2 and counted(table.blocks)[0] > limit.most
    joint: JointWeights | None = partial(joint_of_categories, table.blocks) if many else None
    return wanted.fit(table.profiles, "weight", joint)


@contextmanager
def judged_cells(
    table: CellTable, wanted: GroupSet | FittedGroups, role: Role, limit: CellLimit
) -> Iterator[Judged]:
    """The cells of one role, to be measured within the block; brought to the driver if all fit there.

    Parameters
    ----------
    table : CellTable
    wanted : GroupSet or FittedGroups
        Groups to choose on all rows of the table, or groups chosen before.
    role : Role
    limit : CellLimit

    Raises
    ------
    ContractError
        As :meth:`mcspark.ml.cells.cells.CellTable.collect_chosen`, but for too many cells.
    """
    if table.few:
        some = table.on_driver()
        cells, groups = (
            some.collect_chosen(wanted) if isinstance(wanted, GroupSet) else (some.collect(wanted), wanted)
        )
        yield Judged(cells.of_role(role), groups, len(cells.membership))
        return
    groups = _chosen(table, wanted, limit) if isinstance(wanted, GroupSet) else wanted
    with ExitStack() as kept:
        signed = table.signed(groups, table.bins).persist(StorageLevel.DISK_ONLY)
        kept.callback(signed.unpersist)
        count, size = counted(signed)
        reported = {"cells": count, "driver_cells": limit.most, "why": limit.why}
        if count <= limit.most:
            log.info("the cells fit on the driver and are measured there", **reported)
            cells = cells_from(to_driver(signed, size), groups, table.bins, table.scale)
            kept.close()
            yield Judged(cells.of_role(role), groups, len(cells.membership))
            return
        log.info("the cells are more than the driver takes and are measured in the cluster", **reported)
        reading = Reading(groups, table.bins, table.scale, role)
        found = sums_of(signed, reading)
        refuse_light_part(found.weights)
        yield Judged(
            ClusterCells(
                bins=table.bins,
                groups=groups.names,
                sums=found.sums,
                ranked=ranked_of(signed, reading),
                signed=signed,
                reading=reading,
                count=count,
                binary=found.binary,
                kept=kept,
            ),
            groups,
            found.signatures,
        )
