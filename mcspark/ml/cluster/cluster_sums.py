"""Sums over cells that stay in the cluster: each task adds up its own, Spark adds those of the tasks.

All of them are whole numbers, so that neither the order of cells nor how they are dealt out changes a digit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from mcspark.core.cells.atoms import Atoms
from mcspark.core.cells.cells import SUMS, Cells, Role
from mcspark.core.cells.derived import LARGEST_SURPRISE
from mcspark.core.cells.groups import FittedGroups, distinct_rows
from mcspark.core.cells.levels import FloatArray, IntArray, ScoreBins
from mcspark.core.cells.summed import add_exactly
from mcspark.core.metrics.noise import mixed_labels
from mcspark.ml.cells.cell_sums import PLACE
from mcspark.ml.cells.driver_cells import cells_of
from mcspark.ml.cells.fixed_point import FixedPoint
from mcspark.ml.cells.signatures import signature_of, weight_of, word_names
from mcspark.runtime.tasks.batches import gathered
from mcspark.runtime.tasks.blocks import Task, buckets_to_driver, by_bucket, over_blocks

NAMES = (*SUMS, "surprise", "chance", "residual", "largest", "ceiling", "scatter")
"""What is summed up by group and bin; ``scatter`` by base level, in the first bin of each."""

_AT_ONCE = 200_000
_PAIRS = 2**21
"""Pairs of a cell and a group of it that are held at once."""


@dataclass(frozen=True)
class Reading:
    """How blocks of :meth:`mcspark.ml.cells.cells.CellTable.signed` are read.

    Parameters
    ----------
    groups : FittedGroups
    bins : ScoreBins
    scale : FixedPoint
    role : Role
        The cells that count.
    """

    groups: FittedGroups
    bins: ScoreBins
    scale: FixedPoint
    role: Role

    def words(self, block: pa.Table) -> IntArray:
        """Signature of each row, shape (N, n_words)."""
        return np.stack([block[name].to_numpy() for name in word_names(self.groups)], axis=1)

    def of_role(self, block: pa.Table) -> pa.Table:
        """The rows that count."""
        return block.filter(pa.array(block[PLACE].to_numpy() // self.bins.n_bins == int(self.role)))

    def cells(self, block: pa.Table) -> Cells:
        """All rows of a block, in an order of their own."""
        data = {name: block[name].to_numpy() for name in block.column_names if name in (*SUMS, PLACE)}
        return cells_of(data, self.words(block), self.groups, self.bins, self.scale)

    def whole(self, name: str, value: FloatArray) -> IntArray:
        """Values of this name as whole numbers, whose sum over all cells is within 64 bits."""
        return np.asarray(np.rint(value * self.unit(name)).astype(np.int64))

    def unit(self, name: str) -> float:
        """Whole numbers to one."""
        if name in ("weight_sq", "chance", "ceiling", "scatter"):
            return self.scale.weight_sq
        if name == "surprise":
            return float(self.scale.weight / 2.0 ** np.ceil(np.log2(LARGEST_SURPRISE)))
        return 1.0 if name == "n" else self.scale.weight


@dataclass(frozen=True)
class Found:
    """What one pass over the cells says.

    Attributes
    ----------
    sums : dict of str to ndarray, shape (G + 1, bins)
        By :data:`NAMES`; the last row is all rows.
    signatures : int
        Of the cells of all roles.
    weights : ndarray, shape (roles,)
        Weight of the rows of each role, in one unit; nothing in a table without weights.
    binary : bool
        Whether all labels are 0 or 1.
    """

    sums: dict[str, FloatArray]
    signatures: int
    weights: FloatArray
    binary: bool


def sums_of(signed: DataFrame, reading: Reading) -> Found:
    """Sums by group and bin, in one pass."""
    shape = (len(reading.groups.names) + 1, reading.bins.n_bins)

    def task(blocks: Iterator[tuple[int, pa.Table]]) -> Iterator[Mapping[int, pa.Table]]:
        found = np.zeros((len(NAMES), shape[0] * shape[1]), dtype=np.int64)
        counts = np.zeros(2 + len(Role), dtype=np.int64)
        for tables in gathered((block for _, block in blocks), _AT_ONCE, len):
            block = pa.concat_tables(tables)
            cells = reading.cells(reading.of_role(block))
            counts[:2] += len(distinct_rows(reading.words(block))[0]), int(mixed_labels(cells).sum())
            if "weight" in block.column_names:
                role = block[PLACE].to_numpy() // reading.bins.n_bins
                add_exactly(counts[2:], role, block["weight"].to_numpy())
            for total, name in zip(found, NAMES, strict=True):
                if name != "scatter":
                    _add_cells(total.reshape(shape), cells, reading.whole(name, cells.value_of(name)))
            atoms = Atoms.of(cells).cells
            scattered = np.zeros((shape[0], reading.bins.base), dtype=np.int64)
            _add_cells(scattered, atoms, reading.whole("scatter", atoms.value_of("scatter")))
            found[-1].reshape(shape)[:, reading.bins.starts] += scattered
        yield {i: _one_row(value) for i, value in enumerate((*found, counts))}

    every = added(signed, task)
    counts = every.pop(len(NAMES), np.zeros(2 + len(Role), dtype=np.int64))
    none = np.zeros(shape[0] * shape[1], dtype=np.int64)
    sums = {
        name: every.get(i, none).reshape(shape).astype(np.float64) / reading.unit(name)
        for i, name in enumerate(NAMES)
    }
    return Found(sums, int(counts[0]), counts[2:].astype(np.float64), not counts[1])


def _add_cells(total: IntArray, cells: Cells, value: IntArray) -> None:
    """Add a value of each cell to its groups and, in the last row, to all rows; shape (G + 1, bins)."""
    groups, n_bins = total.shape[0] - 1, total.shape[1]
    most = int(cells.membership.sum(axis=1).max(initial=0)) + 1
    step = max(1, _PAIRS // most)
    for start in range(0, len(cells), step):
        at = np.arange(start, min(start + step, len(cells)))
        group, owner = cells.take(at).pairs
        place, own = cells.bin[at], value[at]
        add_exactly(
            total.reshape(-1),
            np.concatenate([group * n_bins + place[owner], groups * n_bins + place]),
            np.concatenate([own[owner], own]),
        )


def total_of(signed: DataFrame, reading: Reading, value: Callable[[Cells], FloatArray], unit: float) -> float:
    """Sum over all cells of a value, which is summed up in whole numbers of ``1 / unit``."""

    def task(blocks: Iterator[tuple[int, pa.Table]]) -> Iterator[Mapping[int, pa.Table]]:
        total = np.zeros(1, dtype=np.int64)
        for _, block in blocks:
            total += np.rint(value(reading.cells(reading.of_role(block))) * unit).astype(np.int64).sum()
        yield {0: _one_row(total)}

    return float(added(signed, task).get(0, np.zeros(1))[0]) / unit


def joint_of(signed: DataFrame, reading: Reading) -> FloatArray:
    """Weight of the rows in each two groups, shape (G, G)."""

    def weights(block: pa.Table) -> tuple[IntArray, IntArray]:
        cells = reading.of_role(block)
        weight = weight_of(cells)
        if "weight" not in cells.column_names:
            weight = reading.whole("weight", weight.astype(np.float64))
        return reading.words(cells), weight

    return _joint(signed, reading.groups, weights)[0] / reading.scale.weight


def joint_of_categories(blocks: DataFrame, groups: FittedGroups) -> tuple[FloatArray, float]:
    """Weight of the rows in each two groups, from blocks with categories; and of all rows, in one unit."""
    return _joint(blocks, groups, lambda block: (signature_of(block, groups), weight_of(block)))


def _joint(
    blocks: DataFrame, groups: FittedGroups, weights: Callable[[pa.Table], tuple[IntArray, IntArray]]
) -> tuple[FloatArray, float]:
    count = len(groups.names)

    def task(parts: Iterator[tuple[int, pa.Table]]) -> Iterator[Mapping[int, pa.Table]]:
        joint, whole = np.zeros(count * count, dtype=np.int64), np.zeros(1, dtype=np.int64)
        for _, block in parts:
            words, weight = weights(block)
            signatures, signature = distinct_rows(words)
            by_signature = np.zeros(len(signatures), dtype=np.int64)
            np.add.at(by_signature, signature, weight)
            member = groups.membership(signatures).astype(np.float64)
            for part, shift in ((by_signature >> 30, 30), (by_signature & (2**30 - 1), 0)):
                product = member.T @ (member * part[:, None])
                joint += product.astype(np.int64).reshape(-1) << shift
            whole += weight.sum()
        yield {0: _one_row(joint), 1: _one_row(whole)}

    found = added(blocks, task)
    none = np.zeros(count * count, dtype=np.int64)
    joint = found.get(0, none).reshape(count, count).astype(np.float64)
    return joint, float(found.get(1, np.zeros(1))[0])


def added(blocks: DataFrame, task: Task) -> dict[int, IntArray]:
    """The whole numbers that tasks find, rows of one length a bucket, added up."""
    found = buckets_to_driver(by_bucket(over_blocks(blocks, task), _added))
    return {bucket: _rows(table)[0] for bucket, table in found.items()}


def _added(table: pa.Table) -> pa.Table:
    return _one_row(_rows(table).sum(axis=0))


def _one_row(value: IntArray) -> pa.Table:
    return pa.table({"value": pa.FixedSizeListArray.from_arrays(pa.array(value), len(value))})


def _rows(table: pa.Table) -> IntArray:
    lists = table["value"].combine_chunks()
    return np.asarray(lists.flatten().to_numpy()).reshape(len(table), -1)
