"""Tables through a shuffle in blocks: one row a task and bucket, which holds many rows as Arrow's bytes.

Spark moves rows one by one. Where a task has reduced what it reads to columns of numbers, moving those as
they are is several times cheaper, to the other tasks as well as to the driver.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mcspark.engine.choice import engine_of
from mcspark.runtime.tasks.archives import quick_to_follow
from mcspark.runtime.tasks.batches import gathered

ROWS_AT_ONCE = 500_000
"""Rows that are reduced together; what a task holds does not grow with its partition."""

_ROWS_IN_BLOCK = 100_000
_FEWEST_BUCKETS = 256  # so that one is small beside all, however few partitions a small machine is given

SCHEMA = "bucket int, rows long, block binary"
"""Of a table of blocks."""

Reduce = Callable[[pa.Table], pa.Table]
"""What is done to the rows at hand; it may be done again to several results of itself put together."""

Task = Callable[[Iterator[tuple[int, pa.Table]]], Iterator[Mapping[int, pa.Table]]]
"""What is done to all blocks of a task, one after the other."""


def to_blocks(frame: DataFrame, reduce: Reduce, spread: str | None = None) -> DataFrame:
    """Reduce the rows of each task, and leave them as blocks for :func:`by_bucket`.

    Parameters
    ----------
    frame : DataFrame
    reduce : callable
        Makes what is sent of :data:`ROWS_AT_ONCE` rows, up to one Arrow batch more.
    spread : str, optional
        A ``bigint`` column of what is sent: equal values get into one bucket. Evenly spread, as hashes are.
        Without it, buckets mean nothing.

    Returns
    -------
    DataFrame
        Columns ``bucket``, ``rows`` and ``block``; those of other tables may be joined on with ``union``.
    """
    buckets = _buckets(frame)

    def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for some in gathered(batches, ROWS_AT_ONCE, lambda batch: int(batch.num_rows)):
            yield _cut(reduce(pa.Table.from_batches(some)), spread, buckets)

    return frame.mapInArrow(quick_to_follow(send), SCHEMA)


def spread_out(blocks: DataFrame, reduce: Reduce, spread: str, buckets: int | None = None) -> DataFrame:
    """Every block reduced and cut by a column as in :func:`to_blocks`, into so many buckets if given."""
    buckets = _buckets(blocks) if buckets is None else buckets

    def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for block in batch["block"].to_pylist():
                yield _cut(reduce(_table([block])), spread, buckets)

    return blocks.mapInArrow(quick_to_follow(send), SCHEMA)


def by_bucket(blocks: DataFrame, reduce: Reduce, *, kept: bool = False) -> DataFrame:
    """The blocks of each bucket brought together and reduced to one block.

    Parameters
    ----------
    blocks : DataFrame
    reduce : callable
    kept : bool
        Whether the result is going to be kept. Spark then takes the shuffle's partitions as they are, 200 by
        default, so there are to be as many as cores.
    """

    def merge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for bucket, same in groupby(_one_by_one(batches), key=itemgetter(0)):
            yield _blocks({bucket: reduce(_table([block for _, block in same]))})

    cores = engine_of(blocks.sparkSession).cores()
    moved = blocks.repartition(cores, "bucket") if kept else blocks.repartition("bucket")
    # In order, so that a task holds the blocks of one bucket at a time.
    return moved.sortWithinPartitions("bucket").mapInArrow(quick_to_follow(merge), SCHEMA)


def packed(blocks: DataFrame) -> DataFrame:
    """The blocks of each task put together to few large ones, of whatever bucket."""

    def put_together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        every = (block for batch in batches for block in batch["block"].to_pylist())
        tables = (_table([block]) for block in every)
        for some in gathered(tables, ROWS_AT_ONCE, len):
            yield _blocks({0: pa.concat_tables(some).unify_dictionaries().combine_chunks()})

    return blocks.mapInArrow(quick_to_follow(put_together), SCHEMA)


def over_blocks(blocks: DataFrame, task: Task) -> DataFrame:
    """What a function makes of all blocks of each task, one after the other, as blocks for :func:`by_bucket`.

    Parameters
    ----------
    blocks : DataFrame
    task : callable
        Takes buckets and their rows in the order in which they lie there, and yields rows by the bucket they
        are for.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for found in task((bucket, _table([block])) for bucket, block in _one_by_one(batches)):
            yield _blocks(found)

    return blocks.mapInArrow(quick_to_follow(run), SCHEMA)


def buckets_to_driver(blocks: DataFrame) -> dict[int, pa.Table]:
    """The rows of each bucket, of which there are few."""
    found: dict[int, list[bytes]] = {}
    for bucket, block in blocks.select("bucket", "block").collect():
        found.setdefault(bucket, []).append(bytes(block))
    return {bucket: _table(some) for bucket, some in found.items()}


def each_block(blocks: DataFrame, change: Reduce) -> DataFrame:
    """Every block by itself, changed."""
    return over_blocks(blocks, lambda parts: ({bucket: change(block)} for bucket, block in parts))


def unpacked(blocks: DataFrame, schema: str, reduce: Reduce) -> DataFrame:
    """The rows that ``reduce`` makes of each block, as rows of Spark."""

    def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for block in batch["block"].to_pylist():
                yield from reduce(_table([block])).to_batches()

    return blocks.mapInArrow(quick_to_follow(unpack), schema)


def counted(blocks: DataFrame) -> tuple[int, int]:
    """Rows in all blocks, and their bytes."""
    found = blocks.agg(F.sum("rows"), F.sum(F.length("block"))).head()
    return (int(found[0] or 0), int(found[1] or 0)) if found else (0, 0)


def to_driver(blocks: DataFrame, size: int = 0) -> pa.Table | None:
    """All rows of all blocks, in no order; None if there is no block.

    Parameters
    ----------
    blocks : DataFrame
        Kept, unless they are small.
    size : int
        Bytes of all blocks: they come in pieces well below the driver's limit for one result.
    """
    limit = blocks.sparkSession.conf.get("spark.driver.maxResultSize", "1g")
    allowed = byte_count(str(limit)) / 4
    pieces = max(1, math.ceil(size / allowed)) if allowed else 1
    found: list[bytes] = []
    for i in range(pieces):
        part = blocks if pieces == 1 else blocks.where(F.col("bucket") % pieces == i)
        found += (bytes(row[0]) for row in part.select("block").collect())
    return _table(found) if found else None


def _buckets(frame: DataFrame) -> int:
    partitions = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    return max(partitions, _FEWEST_BUCKETS)


def byte_count(size: str) -> float:
    """Bytes of a Spark size such as ``64m`` or ``1g``; a bare number is bytes."""
    units = {"k": 10, "m": 20, "g": 30, "t": 40}
    text = size.strip().lower().removesuffix("b")
    return float(text[:-1]) * 2.0 ** units[text[-1]] if text[-1:] in units else float(text)


def _one_by_one(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    for batch in batches:
        yield from zip(batch["bucket"].to_pylist(), batch["block"].to_pylist(), strict=True)


def _cut(table: pa.Table, spread: str | None, buckets: int) -> pa.RecordBatch:
    if spread is None:
        starts = range(0, len(table), _ROWS_IN_BLOCK)
        return _blocks({i: table.slice(start, _ROWS_IN_BLOCK) for i, start in enumerate(starts)})
    bucket = table[spread].to_numpy().astype(np.uint64) % np.uint64(buckets)
    order = np.argsort(bucket, kind="stable")
    table = table.combine_chunks().take(pa.array(order))
    edges = np.searchsorted(bucket[order], np.arange(buckets + 1))
    filled = np.flatnonzero(np.diff(edges)).tolist()
    return _blocks({i: table.slice(edges[i], edges[i + 1] - edges[i]) for i in filled})


def _blocks(tables: Mapping[int, pa.Table]) -> pa.RecordBatch:
    columns = [
        pa.array(list(tables), pa.int32()),
        pa.array([table.num_rows for table in tables.values()], pa.int64()),
        pa.array([_bytes(table) for table in tables.values()], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["bucket", "rows", "block"])


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _table(blocks: list[bytes]) -> pa.Table:
    return pa.concat_tables([pa.ipc.open_stream(block).read_all() for block in blocks])
