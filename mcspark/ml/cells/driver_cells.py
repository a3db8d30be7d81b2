"""Cells of Arrow tables on the driver: those that a cluster has summed up, and all cells of few rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from mcspark.core.cells.cells import SUMS, Cells, Role
from mcspark.core.cells.groups import FittedGroups, distinct_rows
from mcspark.core.cells.levels import FloatArray, IntArray, ScoreBins
from mcspark.errors import ContractError
from mcspark.ml.cells.cell_sums import PLACE, SPREAD, merged_cells, spread_of
from mcspark.ml.cells.fixed_point import FixedPoint
from mcspark.ml.cells.groups import GroupSet
from mcspark.ml.cells.signatures import signature_of, weight_of, word_names
from mcspark.runtime.tasks.blocks import to_driver

_FEW = 2_000_000
"""Numbers that rows of a table may have among them to be few, 16 MB: less than a handful of jobs cost."""

_LEAST_SHARE = 1e-6
"""Share of the labelled weight below which the sums of one part of the split keep too few digits."""


def are_few(rows: int | None, families: int) -> bool:
    """Whether the driver takes the cells of so many rows by their categories, however many cells they are.

    Parameters
    ----------
    rows : int or None
        None where nobody knows.
    families : int
    """
    return rows is not None and rows * (families + len(SUMS) + 2) <= _FEW


@dataclass(frozen=True)
class DriverCells:
    """All cells of few rows, keyed by category: what they are summed up to is decided here, without a job.

    Parameters
    ----------
    table : pyarrow.Table or None
        Of :mod:`mcspark.ml.cells.cell_sums`, each cell once; None for no cell.
    bins : ScoreBins
    scale : FixedPoint
    """

    table: pa.Table | None
    bins: ScoreBins
    scale: FixedPoint

    @classmethod
    def of(cls, blocks: DataFrame, bins: ScoreBins, scale: FixedPoint) -> DriverCells:
        """Bring the cells here, in one job."""
        found = to_driver(blocks)
        return cls(None if found is None else merged_cells(found), bins, scale)

    def in_chosen_bins(self, quantiles: int) -> DriverCells:
        """The same cells in the bins of :func:`mcspark.ml.cells.cells.choose_bins` for the learning rows.

        Those at hand must be the finest ones.
        """
        sums = np.zeros(self.bins.n_bins, dtype=np.int64)
        if self.table is not None:
            role, place = np.divmod(self.table[PLACE].to_numpy(), self.bins.n_bins)
            learning = role != int(Role.test)
            np.add.at(sums, place[learning], weight_of(self.table)[learning])
        bins = ScoreBins.from_fine_weights(self.bins.base, sums.astype(np.float64), quantiles)
        if self.table is None:
            return replace(self, bins=bins)
        table = self.table.drop_columns([PLACE]).append_column(PLACE, _places(self.table, self.bins, bins))
        return DriverCells(merged_cells(table), bins, self.scale)

    def collect_chosen(self, wanted: GroupSet) -> tuple[Cells, FittedGroups]:
        """Choose the groups on these rows, and :meth:`collect` the cells by them."""
        groups = wanted.fit_table(self.table)
        return self.collect(groups), groups

    def collect(self, groups: FittedGroups) -> Cells:
        """Sum the categories up to signatures."""
        table = None if self.table is None else signed(self.table, groups, self.bins, self.bins)
        return cells_from(table, groups, self.bins, self.scale)


def signed(cells: pa.Table, groups: FittedGroups, bins: ScoreBins, coarser: ScoreBins) -> pa.Table:
    """Cells with their categories turned to a signature, and their bins to coarser ones."""
    words = signature_of(cells, groups)
    columns = dict(zip(word_names(groups), words.T, strict=True))
    columns |= {PLACE: _places(cells, bins, coarser), SPREAD: spread_of(words)}
    return merged_cells(pa.table({**columns, **{n: cells[n] for n in cells.column_names if n in SUMS}}))


def _places(cells: pa.Table, bins: ScoreBins, coarser: ScoreBins) -> pa.Array:
    role, place = np.divmod(cells[PLACE].to_numpy(), bins.n_bins)
    if coarser != bins:
        place = coarser.assign(bins.edges()[:-1])[place]
    return pa.array(role * coarser.n_bins + place)


def cells_from(table: pa.Table | None, groups: FittedGroups, bins: ScoreBins, scale: FixedPoint) -> Cells:
    """Cells of a table of :func:`signed`; None for no cell."""
    data = {} if table is None else {n: table[n].to_numpy() for n in table.column_names}
    none = np.zeros(0, dtype=np.int64)
    words = np.stack([data.get(name, none) for name in word_names(groups)], axis=1)
    return cells_of(data, words, groups, bins, scale)


def cells_of(
    data: Mapping[str, IntArray], words: IntArray, groups: FittedGroups, bins: ScoreBins, scale: FixedPoint
) -> Cells:
    """Cells from columns of integer sums, in an order of their own.

    Parameters
    ----------
    data : mapping of str to ndarray
        The place and the sums of each cell; nothing where there is none.
    words : ndarray of int, shape (C, n_words)
        Signature of each.
    groups : FittedGroups
    bins : ScoreBins
    scale : FixedPoint

    Raises
    ------
    ContractError
        If one part of the split has next to no weight beside the others.
    """
    none = np.zeros(0, dtype=np.int64)
    signatures, signature = distinct_rows(words)
    role, place = np.divmod(data.get(PLACE, none), bins.n_bins)
    if "weight" in data and len(role):
        refuse_light_part(np.bincount(role, weights=data["weight"]).astype(np.float64))
    order = np.lexsort((place, signature, role))
    units = dict.fromkeys(SUMS, scale.weight) | {"n": 1.0, "weight_sq": scale.weight_sq}
    # Where nothing has a weight, every row weighs 1.
    sums = {name: (name, units[name]) if name in data else ("n", 1.0) for name in SUMS}
    return Cells(
        bins,
        groups.names,
        groups.membership(signatures),
        place[order],
        signature[order],
        role[order],
        **{k: data.get(name, none)[order].astype(np.float64) / unit for k, (name, unit) in sums.items()},
        features=groups.features_of(signatures),
    )


def refuse_light_part(held: FloatArray) -> None:
    """Refuse a part of the split that weighs so little beside the others that one scale cannot serve both.

    ``held`` is the weight of each part.
    """
    least = held[held > 0].min(initial=np.inf) / max(held.sum(), 1.0)
    if least < _LEAST_SHARE:
        raise ContractError(
            f"one part of the split (fit, early_stopping, test) holds {least:.1e} of the weight of all "
            f"labelled rows, too little to be measured beside them (at least {_LEAST_SHARE:g}); "
            "correct or cap the weights, or split the rows otherwise (split.seed)"
        )
