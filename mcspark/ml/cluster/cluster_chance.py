"""Simulations of chance where the cells are: each task draws for its atoms, and only errors come back.

An atom is seeded by its base level and a part of the hash of its signature, which no partitioning changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame

from mcspark.core.cells.atoms import Atoms
from mcspark.core.cells.cells import SUMS, Cells, Role
from mcspark.core.cells.groups import distinct_rows
from mcspark.core.cells.levels import FloatArray, ScoreBins
from mcspark.core.metrics.simulations import Part, Simulation
from mcspark.ml.cells.cell_sums import PLACE, spread_of
from mcspark.ml.cells.signatures import word_names
from mcspark.ml.cluster.cluster_sums import Reading
from mcspark.runtime.tasks.blocks import by_bucket, over_blocks, spread_out, to_driver

_IN_A_PART = 20_000
"""Atoms of a part, or a few times as many: what draws them holds so many at once."""
_MOST_SALTS = 64
_AT_ONCE = 2_000_000
"""Numbers of draws whose errors are computed at once."""
_BUCKET, _VARIANCE = "__bucket", "__variance"

Variance = Callable[[Cells], FloatArray]


class ClusterAtoms:
    """Atoms in the cluster, in parts of one base level each; on disk while they are open (``with``).

    Parameters
    ----------
    signed : DataFrame
        Blocks of :meth:`mcspark.ml.cells.cells.CellTable.signed`.
    reading : Reading
    cells : int
        Number of all cells.
    variance : callable, optional
        Of Σw·y of each cell, where labels are neither 0 nor 1.
    """

    def __init__(
        self, signed: DataFrame, reading: Reading, cells: int, variance: Variance | None = None
    ) -> None:
        base = reading.bins.base
        salts = min(2 ** int(np.ceil(np.log2(max(cells / base / _IN_A_PART, 1)))), _MOST_SALTS)
        self._salts, self._base = salts, base
        self._atoms = replace(reading, bins=ScoreBins.uniform(base), role=Role.fit)

        def send(block: pa.Table) -> pa.Table:
            return _atoms_of(reading, block, variance, salts)

        sent = spread_out(signed, send, _BUCKET, base * salts)
        self._blocks = by_bucket(sent, _as_they_are, kept=True)

    def __enter__(self) -> ClusterAtoms:
        self._blocks.persist(StorageLevel.DISK_ONLY)
        return self

    def __exit__(self, *_: object) -> None:
        self._blocks.unpersist()

    def errors(self, simulation: Simulation, seed: int) -> FloatArray:
        """Errors of all draws, shape (D, E)."""
        quantities, _, groups = simulation.shape
        some = max(1, _AT_ONCE // (quantities * groups * self._base))
        reading, salts, base = self._atoms, self._salts, self._base

        def draw(parts: Iterator[tuple[int, pa.Table]]) -> Iterator[Mapping[int, pa.Table]]:
            level, total = -1, np.zeros(simulation.shape)
            for bucket, block in parts:
                if bucket // salts != level:
                    if level >= 0:
                        yield _cut(level, total, some)
                    level, total = bucket // salts, np.zeros(simulation.shape)
                total += simulation.draw(np.random.default_rng([seed, bucket]), _part(reading, block))
            if level >= 0:
                yield _cut(level, total, some)

        def judge(sums: pa.Table) -> pa.Table:
            numbers, place = np.unique(sums["draw"].to_numpy(), return_inverse=True)
            whole = np.zeros((len(numbers), base, quantities * groups))
            np.add.at(whole, (place.reshape(-1), sums["level"].to_numpy()), _matrix(sums["sums"]))
            shaped = whole.reshape(len(numbers), base, quantities, groups).transpose(2, 0, 3, 1)
            return pa.table({"draw": numbers, "errors": _lists(simulation.errors(shaped))})

        found = to_driver(by_bucket(over_blocks(self._blocks, draw), judge))
        if found is None:
            return np.zeros((0, 0))
        return _matrix(found["errors"])[np.argsort(found["draw"].to_numpy())]


def _as_they_are(table: pa.Table) -> pa.Table:
    return table


def _atoms_of(reading: Reading, block: pa.Table, variance: Variance | None, salts: int) -> pa.Table:
    """The atoms of a block of cells, with the part that each is in."""
    block = reading.of_role(block)
    cells = reading.cells(block)
    signatures, _ = distinct_rows(reading.words(block))
    atoms = Atoms.of(cells)
    merged = atoms.cells
    words = signatures[merged.signature]
    columns = dict(zip(word_names(reading.groups), words.T, strict=True))
    columns[PLACE] = merged.bin
    salt = spread_of(words).astype(np.uint64) % np.uint64(salts)
    columns[_BUCKET] = merged.bin * salts + salt.astype(np.int64)
    columns |= {name: reading.whole(name, getattr(merged, name)) for name in SUMS}
    if variance is not None:
        columns[_VARIANCE] = atoms.merge(variance(cells))
    return pa.table(columns)


def _part(reading: Reading, block: pa.Table) -> Part:
    """The atoms of a part in an order of their own."""
    _, signature = distinct_rows(reading.words(block))
    block = block.take(pa.array(np.lexsort((signature, block[PLACE].to_numpy()))))
    variance = block[_VARIANCE].to_numpy() if _VARIANCE in block.column_names else None
    return Part(Atoms.of(reading.cells(block)), variance)


def _cut(level: int, total: FloatArray, some: int) -> dict[int, pa.Table]:
    """Sums of one base level, shape (V, D, G), by blocks of draws."""
    draws = total.shape[1]
    rows = total.transpose(1, 0, 2).reshape(draws, -1)
    found = {}
    for number, start in enumerate(range(0, draws, some)):
        at = np.arange(start, min(start + some, draws))
        found[number] = pa.table({"level": np.full(len(at), level), "draw": at, "sums": _lists(rows[at])})
    return found


def _lists(rows: FloatArray) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(rows).reshape(-1)), rows.shape[1])


def _matrix(lists: pa.ChunkedArray) -> FloatArray:
    whole = lists.combine_chunks()
    return np.asarray(whole.flatten().to_numpy()).reshape(len(whole), -1)
