"""The reader of CSV tables: text as it stands, and no row from a line that cannot be trusted.

Spark makes some row of a line with too few values, too many, or a quote that never ends. Here such a line
stops whatever pass reads it first, so that no pass is made for it; :mod:`mcspark.data.rows.csv_faults` counts
what is wrong only then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from mcspark.config.csv_text import CsvText
from mcspark.data.formats.csv_header import HEAD, header_of, refuse_other_headers
from mcspark.engine.choice import engine_of
from mcspark.errors import ConfigurationError, ContractError
from mcspark.identifiers import folded
from mcspark.runtime.columns import as_double, column, with_columns
from mcspark.runtime.files.files import Files

RAW = "__raw_line"
"""Working column: the whole text of a line that has not as many values as the header."""
STOP = "mcspark: text that cannot be trusted"
"""What a pass fails with."""
MAX_HEADERS = 1_000
"""Headers of more files are compared as Spark meets them."""

_THREADS = 8
_JAVA_NAMES = {"utf-8-sig": "UTF-8", "utf-16-le": "UTF-16LE", "utf-16-be": "UTF-16BE"}


def read_csv(
    spark: SparkSession, path: str, files: Sequence[str], options: CsvText,
    reader: Callable[[], DataFrameReader], *, keys: Sequence[str] = (), guarded: bool = True,
) -> DataFrame:  # fmt: skip
    """The table with all columns as text, missing values as null.

    Parameters
    ----------
    spark : SparkSession
    path : str
    files : sequence of str
        Paths of its files, at least one; of a partition alone, its header counts.
    options : CsvText
    reader : callable
        Makes a reader that takes paths as they are written.
    keys : sequence of str
        Its partition columns.
    guarded : bool
        Whether a pass that meets a line without trust fails; otherwise :data:`RAW` tells of such lines.

    Raises
    ------
    ContractError
        If a file is no CSV, two files have other headers, or a partition column is in the files too.
    ConfigurationError
        If Java does not know the encoding.
    """
    compared = files[:MAX_HEADERS]
    store = Files(spark, path)
    with ThreadPoolExecutor(_THREADS) as pool:
        heads = list(pool.map(lambda file: store.head_bytes(file, HEAD), compared))
    headers = [
        (_below(file, path), header_of(head, options, file))
        for file, head in zip(compared, heads, strict=True)
    ]
    header = refuse_other_headers(headers, path)
    if twice := [name for name in header if folded(name) in set(map(folded, keys))]:
        raise ContractError(
            f"{path}: {twice[0]} is a column of its files and the name of its partition folders; "
            "leave it out of the files, or name the folders otherwise"
        )
    quote = options.quote or "\0"
    frame = (
        reader()
        .option("header", "true")
        .option("sep", options.delimiter)
        .option("quote", quote)
        .option("escape", options.escape or quote)
        .option("encoding", _java_name(spark, options.encoding))
        .option("multiLine", "true")  # a line break in quotes is part of the value
        .option("unescapedQuoteHandling", "RAISE_ERROR" if guarded else "STOP_AT_DELIMITER")
        .option("columnNameOfCorruptRecord", RAW)
        .option("enforceSchema", "true" if len(compared) == len(files) else "false")
        .schema(StructType([StructField(name, StringType()) for name in (*header, RAW)]))
        .csv(path)
    )
    # Where the header ends by LF and other lines by CR LF, Spark leaves the CR on the last value.
    frame = frame.withColumn(header[-1], F.regexp_replace(column(header[-1]), "\r$", ""))
    frame = frame.where(column(RAW).isNull() | (F.trim(column(RAW)) != ""))  # a line of blanks is no row
    if guarded:
        frame = _stop_at(frame, any_of(line_faults(header, options).values())).drop(RAW)
    nulls = list(options.null_values)
    return with_columns(frame, {n: F.when(~column(n).isin(nulls), column(n)) for n in header if nulls})


def line_faults(header: Sequence[str], options: CsvText) -> dict[str, Column]:
    """What makes the text of a row untrusted, by words for it."""
    last = column(header[-1])
    # A quote that is never closed takes the other lines of the file into the last value, which then looks so.
    # Its text never has a quote: Spark fails at a quote inside quotes that is not escaped.
    sign = _class(options.delimiter)
    others = rf"\n([^\n{sign}]*[{sign}]){{{len(header) - 1}}}[^\n]*\n$"
    odd = any_of(F.contains(column(name), F.lit("\ufffd")) for name in header)
    return {
        f"not {len(header)} values, or a quote that is not closed": column(RAW).isNotNull(),
        "a quote that is not closed": F.coalesce(last.rlike(others), F.lit(False))
        if len(header) > 1
        else F.lit(False),
        f"bytes that are not {options.encoding}; set csv.encoding, such as windows-1252": odd,
    }


def as_numbers(frame: DataFrame, names: Sequence[str], table_format: str) -> DataFrame:
    """CSV text as doubles in these columns; a pass that meets a text that is no number fails.

    Other formats are unchanged.
    """
    present = [name for name in names if name in frame.columns]
    if table_format != "csv" or not present:
        return frame
    return _stop_at(frame, any_of(map(no_number, present))).withColumns({n: number(n) for n in present})


def no_number(name: str) -> Column:
    """Whether the column has a text that is no number."""
    return column(name).isNotNull() & number(name).isNull()


def number(name: str) -> Column:
    """The text of the column as a double, null if it is none."""
    return as_double(name, StringType())


def any_of(conditions: Any) -> Column:
    """Whether one of the conditions holds; null is no."""
    found = [F.coalesce(c, F.lit(False)) for c in conditions]
    while len(found) > 1:  # by halves: a chain over a thousand columns is too deep for Spark
        pairs = [found[i : i + 2] for i in range(0, len(found), 2)]
        found = [reduce(lambda one, other: one | other, pair) for pair in pairs]
    return found[0]


def _stop_at(frame: DataFrame, wrong: Column) -> DataFrame:
    stop = F.when(wrong, F.raise_error(F.lit(STOP)).cast("boolean")).otherwise(F.lit(True))
    return frame.where(stop)


def _java_name(spark: SparkSession, encoding: str) -> str:
    name = _JAVA_NAMES.get(encoding, encoding)
    if not engine_of(spark).knows_encoding(name):
        raise ConfigurationError(f"Java has no encoding {encoding!r}; choose another for csv.encoding")
    return name


def _class(sign: str) -> str:
    """The character inside brackets of a regular expression."""
    return "\\" + sign if not sign.isalnum() and sign != "\t" else sign


def _below(file: str, path: str) -> str:
    root = path.rstrip("/") + "/"
    return file.rpartition(root)[2] or file
