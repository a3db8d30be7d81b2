"""A saved model applied to Parquet on this machine, batch after batch; no Java is started."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mcspark.cli.files import free_place, local_place, written_aside
from mcspark.cli.rows import about, batches_of, rows_at
from mcspark.errors import ConfigurationError
from mcspark.identifiers import folded
from mcspark.scorer import Scorer


def score_file(model: str, source: str, target: str, score: str | None = None, *, force: bool = False) -> str:
    """Write the rows of a Parquet file or folder again, with one more column; returns what was done.

    Parameters
    ----------
    model : str
        Folder of the model.
    source, target : str
        Parquet to read, and the file to write; it is written aside, and there when it is whole.
    score : str, optional
        Column of the score; the model's own if absent.
    force : bool
        Replace what is at ``target``.

    Raises
    ------
    ConfigurationError
        If something is at ``target``, it is among the rows, or a column is called like the one to add.
    ContractError
        If the model or the rows cannot be read or scored.
    """
    place = free_place(target, force=force)
    scorer = Scorer.load(model, score)
    started = time.monotonic()
    with about(source):
        given = rows_at(source)
    folder = local_place(source)
    if folder.is_dir() and place.resolve().is_relative_to(folder.resolve()):
        # The next run would read it as rows to score.
        raise ConfigurationError(f"{target} is in the folder of the rows; write it to another")
    with written_aside(place, force=force) as aside, about(source):
        rows = _write(scorer, given, aside)
    return f"{rows:,} rows scored to {target} in {time.monotonic() - started:.1f} s"


def _write(scorer: Scorer, rows: Any, path: Path) -> int:
    name = scorer.prediction_column
    if taken := [column for column in rows.schema.names if folded(column) == folded(name)]:
        raise ConfigurationError(f"the table has a column {taken[0]!r} already; leave it out, or rename it")
    schema = rows.schema.append(pa.field(name, pa.float64()))
    count = 0
    with pq.ParquetWriter(path, schema) as writer:
        for batch in batches_of(rows):
            scored = pa.array(scorer.score(batch))
            writer.write_batch(pa.RecordBatch.from_arrays([*batch.columns, scored], schema=schema))
            count += len(batch)
    return count
