"""Files of one table that disagree about its columns, found before any row is read."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote, urlsplit

import structlog
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from mcspark.data.names import differing_in_case
from mcspark.errors import ContractError
from mcspark.runtime.files import Files, java_reason

log = structlog.get_logger(__name__)

MAX_FOOTERS = 1_000
"""Of more files, this many evenly spaced ones are compared: about eight seconds' worth on two cores."""

_THREADS = 8


def files_of(frame: DataFrame, partition: Mapping[str, str]) -> list[str]:
    """Sorted addresses of the files behind the table, limited to one partition."""
    wanted = {f"{key}={value}" for key, value in partition.items()}
    return sorted(uri for uri in frame.inputFiles() if wanted <= _folders(uri))


def _folders(uri: str) -> set[str]:
    # Once for the address, once for Spark's own escapes in the values of partition folders.
    return {unquote(unquote(part)) for part in urlsplit(uri).path.split("/")[:-1]}


def refuse_parquet_drift(
    spark: SparkSession, name: str, files: Sequence[str], columns: Sequence[str] | None = None
) -> None:
    """Compare the schemas of the Parquet files.

    Spark takes the schema of one file and reads a column that another file lacks as null; this makes it an
    error. Compared are Spark's types, so that files of several writers agree when Spark reads them alike.

    Parameters
    ----------
    spark : SparkSession
    name : str
        Of the table, for messages.
    files : sequence of str
        Addresses of the files.
    columns : sequence of str, optional
        Refuse for these columns alone.

    Raises
    ------
    ContractError
        If two files differ, with the difference; or a file is not Parquet.
    """
    compared = _evenly(files, MAX_FOOTERS)
    if len(compared) < len(files):
        log.info(
            "schemas compared on a part of the files", table=name, files=len(files), compared=len(compared)
        )
    with ThreadPoolExecutor(_THREADS) as pool:
        footers = list(pool.map(lambda uri: _footer(spark, name, uri), compared))
    parsed = {text: _types(spark, footer) for text, footer in footers}
    schemas = [parsed[text] for text, _ in footers]
    for uri, schema in zip(compared, schemas, strict=True):
        difference = _difference(schemas[0], schema)
        refused = {c: d for c, d in difference.items() if columns is None or c in columns}
        if refused:
            lines = "; ".join(refused.values())
            raise ContractError(
                f"{name}: its files disagree about {len(refused)} column(s): {lines} "
                f"(first {_short(compared[0], name)}, then {_short(uri, name)}); "
                "rewrite the files with one schema"
            )
        if difference:
            log.info("unused columns differ between files", table=name, columns=sorted(difference))


def _evenly(files: Sequence[str], most: int) -> list[str]:
    if len(files) <= most:
        return list(files)
    return [files[i * (len(files) - 1) // (most - 1)] for i in range(most)]


def _footer(spark: SparkSession, name: str, uri: str) -> tuple[str, Any]:
    jvm: Any = spark._jvm
    parquet = jvm.org.apache.parquet.hadoop
    configuration = spark._jsc.hadoopConfiguration()
    try:
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri))
        reader = parquet.ParquetFileReader.open(parquet.util.HadoopInputFile.fromPath(path, configuration))
        try:
            schema = reader.getFooter().getFileMetaData().getSchema()
            return str(schema.toString()), schema
        finally:
            reader.close()
    except Py4JJavaError as error:
        raise ContractError(
            f"{name}: {_short(uri, name)} is not a readable Parquet file ({java_reason(error)}); "
            "remove it or write it again"
        ) from error


def _types(spark: SparkSession, footer: Any) -> dict[str, str]:
    jvm: Any = spark._jvm
    converter = jvm.org.apache.spark.sql.execution.datasources.parquet.ParquetToSparkSchemaConverter
    text = converter(spark._jsparkSession.sessionState().conf()).convert(footer).json()
    # As in every other message, and whether a writer promised non-null says nothing about the type.
    return {f.name: f.dataType.simpleString() for f in StructType.fromJson(json.loads(text)).fields}


def _difference(first: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for column in first:
        if column not in other:
            found[column] = f"- {column} {first[column]}"
        elif first[column] != other[column]:
            found[column] = f"~ {column} {first[column]} -> {other[column]}"
    return found | {column: f"+ {column} {other[column]}" for column in other if column not in first}


def _short(uri: str, name: str) -> str:
    """The part of the address below the table."""
    path = unquote(urlsplit(uri).path)
    folder = name.rstrip("/").rpartition("/")[2]
    return path.rpartition(f"/{folder}/")[2] or path


def csv_header(spark: SparkSession, name: str, files: Sequence[str]) -> list[str]:
    """The columns that every CSV file of the table has, in order.

    Raises
    ------
    ContractError
        If there is no file or no header, names repeat, or two files have other headers.
    """
    if not files:
        raise ContractError(f"{name}: no data files in this folder; is it the right one?")
    compared = _evenly(files, MAX_FOOTERS)
    store = Files(spark, name)
    with ThreadPoolExecutor(_THREADS) as pool:
        lines = list(pool.map(lambda uri: store.head(decoded(uri)), compared))
    headers = [next(csv.reader([line.removeprefix("\ufeff")])) if line else [] for line in lines]
    filled = [(uri, header) for uri, header in zip(compared, headers, strict=True) if header]
    if not filled:
        raise ContractError(f"{name}: its CSV files are empty; the first line must name the columns")
    first_uri, first = filled[0]
    twins = differing_in_case(first)
    if twins:
        raise ContractError(f"{name}: columns that differ only in case: {twins}; rename one of them")
    for uri, header in filled:
        if header != first:
            lost, new = [c for c in first if c not in header], [c for c in header if c not in first]
            raise ContractError(
                f"{name}: its CSV files have different headers: {_short(first_uri, name)} against "
                f"{_short(uri, name)} (missing {lost}, new {new}, or another order); "
                "write them with one header"
            )
    return first


def decoded(uri: str) -> str:
    """The path that an address of :func:`files_of` stands for."""
    parts = urlsplit(uri)
    authority = f"//{parts.netloc}" if parts.netloc else ""
    return f"{parts.scheme}:{authority}{unquote(parts.path)}"
