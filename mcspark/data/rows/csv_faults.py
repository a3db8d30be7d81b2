"""What stopped a pass over CSV tables, counted and named with file and text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from mcspark.config import ScoredTable
from mcspark.config.csv_text import CsvText
from mcspark.config.tables import InputTable
from mcspark.data.formats.csv_reader import RAW, STOP, any_of, line_faults, no_number
from mcspark.data.rows.keys import UNSORTABLE, sortable
from mcspark.data.rows.rejection import DECIMAL_COMMA
from mcspark.data.tables import read_table, where
from mcspark.engine.errors import SPARK_ERRORS
from mcspark.errors import ContractError
from mcspark.runtime.columns import column

_BROKEN = ("ZipException", "EOFException", "incorrect data check", "bad block header", "crc error")
_UNESCAPED = "TextParsingException"
_NEAR = re.compile(r"Internal state when error was thrown: line=(\d+)")
_LONGEST = 120


@contextmanager
def faults_told(spark: SparkSession, tables: Sequence[tuple[InputTable, Sequence[str]]]) -> Iterator[None]:
    """Turn what stops a pass over these tables into an error that tells lines, texts and counts.

    Parameters
    ----------
    spark : SparkSession
    tables : sequence of (InputTable, sequence of str)
        With the columns that must be numbers.

    Raises
    ------
    ContractError
        With the number of lines of each kind, and the first file and text.
    """
    try:
        yield
    except SPARK_ERRORS as error:
        text = str(error)
        if UNSORTABLE in text:
            raise _unsortable(spark, tables) from error
        broken = next((sign for sign in _BROKEN if sign in text), None)
        csv = [(table, names) for table, names in tables if table.format == "csv" and table.path]
        if not csv or not (broken or STOP in text or _UNESCAPED in text):
            raise
        if broken:
            paths = ", ".join(where(table) for table, _ in csv)
            raise ContractError(f"{paths}: a compressed file is damaged ({broken}); write it anew") from error
        problems = [
            f"{where(table)}: {words}"
            for table, numbers in csv
            for words in _problems(spark, table, numbers, unescaped=_UNESCAPED in text)
        ]
        if not problems and (quote := _NEAR.search(text)):
            paths = ", ".join(where(table) for table, _ in csv)
            problems = [
                f"{paths}: a quote inside quotes that is not escaped, near line {quote[1]} of a file; "
                "correct it, or set csv.quote and csv.escape to how the file is written"
            ]
        if not problems:
            raise
        raise ContractError("\n".join(problems)) from error


def _unsortable(spark: SparkSession, tables: Sequence[tuple[InputTable, Sequence[str]]]) -> ContractError:
    table = next(table for table, _ in tables if isinstance(table, ScoredTable) and table.dedupe)
    assert table.dedupe is not None
    name = table.dedupe.latest_by
    number, time = sortable(name)
    rows = read_table(spark, table).where(column(name).isNotNull())
    found = rows.agg(
        F.count_if(number.isNotNull()),
        F.count_if(number.isNull() & time.isNotNull()),
        F.count_if(number.isNull() & time.isNull()),
        F.min(F.when(number.isNull() & time.isNull(), column(name))),
    ).first()
    assert found is not None
    numbers, times, neither, example = found
    such = f", such as {example[:_LONGEST]!r}" if example else ""
    return ContractError(
        f"{where(table)}: {name} is text and orders nothing in time: {numbers} number(s), {times} date(s) or "
        f"time(s), {neither} other text(s){such}; for dedupe.latest_by write numbers, or dates with the year "
        "first (2026-01-31)"
    )


def _problems(
    spark: SparkSession, table: InputTable, numbers: Sequence[str], *, unescaped: bool
) -> list[str]:
    options = table.csv or CsvText()
    frame = read_table(spark, table, csv_guarded=False)
    header = [name for name in frame.columns if name != RAW]
    faults = line_faults(header, options)
    broken = column(RAW).isNotNull()
    if unescaped and options.quote:
        quote = options.quote
        begun = [column(n).startswith(quote) & ~column(n).endswith(quote) for n in header]
        faults["a quote inside quotes that is not escaped"] = ~broken & any_of(begun)
    faults |= {f"{name} is no number": ~broken & no_number(name) for name in numbers if name in header}
    line = F.coalesce(column(RAW), F.concat_ws(options.delimiter, *map(column, header)))
    found = frame.select(
        F.input_file_name().alias("file"),
        line.alias("line"),
        *(value.alias(f"w{i}") for i, value in enumerate(faults.values())),
        *(column(n).alias(f"n{i}") for i, n in enumerate(numbers) if n in header),
    )
    row = found.agg(
        *(F.count_if(F.col(f"w{i}")).alias(f"c{i}") for i in range(len(faults))),
        *(F.min(F.when(F.col(f"w{i}"), F.struct("file", "line"))).alias(f"e{i}") for i in range(len(faults))),
        *(
            F.count_if(F.col(f"n{i}").rlike(DECIMAL_COMMA)).alias(f"d{i}")
            for i, n in enumerate(numbers)
            if n in header
        ),
    ).first()
    assert row is not None
    problems = []
    for i, words in enumerate(faults):
        if not row[f"c{i}"]:
            continue
        example = row[f"e{i}"]
        problems.append(
            f"{row[f'c{i}']} line(s) with {words}, such as {example['line'][:_LONGEST]!r} in "
            f"{example['file']}; {_mend(words)}"
        )
    for i, name in enumerate(numbers):
        if name in header and row[f"d{i}"]:
            problems.append(
                f"{row[f'd{i}']} value(s) of {name} have a decimal comma; write them with a point"
            )
    return problems


def _mend(words: str) -> str:
    if "no number" in words:
        return "correct the text, or list it in csv.null_values if it stands for a missing value"
    if words.startswith("bytes"):
        return "or write the file anew"
    return "correct these lines, or set csv.delimiter, csv.quote and csv.escape to how the file is written"
