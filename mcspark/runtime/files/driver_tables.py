"""Tables that are small and known to the driver, written without a job."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from mcspark.runtime.files.files import Files


def write_parquet(files: Files, folder: str, table: pa.Table) -> None:
    """Write a table as a folder of one Parquet file, as Spark would name and compress it."""
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(None), sink, compression="snappy")
    files.write_bytes(f"{folder}/part-00000.snappy.parquet", sink.getvalue().to_pybytes())
