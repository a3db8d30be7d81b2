"""CSV in many dialects: the rows and values that Python's own reader finds, or a refusal in one sentence.

A few are in every run of the tests; ``MCSPARK_FUZZ=200 pytest tests/fuzz/test_csv_dialects.py`` tries more.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import os
import random

from mcspark.config import AttributeTable
from mcspark.config.csv_text import CsvText
from mcspark.data.rows.csv_faults import faults_told
from mcspark.data.tables import read_table
from mcspark.errors import ContractError

CASES = int(os.environ.get("MCSPARK_FUZZ", "9"))
PIECES = [
    "a", "é", "0", "01", " ", "NA", "'", '"', ",", ";", "\t", "|", "\n", "\r\n", "\\", "#", "x y",
    "中", "1.5", "1,5",
]  # fmt: skip


def dialect(rng):
    quote = rng.choice(['"', '"', "'"])
    return CsvText(
        delimiter=rng.choice([",", ",", ";", "\t", "|"]),
        quote=quote,
        escape=rng.choice([None, None, "\\"]),
        encoding=rng.choice(["utf-8", "utf-8", "utf-16"]),
    )


def table_of(rng):
    width, height = rng.randint(2, 5), rng.randint(1, 8)
    rows = [["".join(rng.choices(PIECES, k=rng.randint(0, 4))) for _ in range(width)] for _ in range(height)]
    for i, row in enumerate(rows):
        row[0] = f"k{i}"
    return [["k", *(f"c{i} {rng.choice(PIECES[:5])}{i}" for i in range(1, width))], *rows]


def text_of(rng, rows, options):
    out = io.StringIO(newline="")
    csv.writer(
        out, delimiter=options.delimiter, quotechar=options.quote, doublequote=options.escape is None,
        escapechar=options.escape, lineterminator=rng.choice(["\n", "\r\n"]),
        # An escape counts inside quotes alone; Python's reader takes it for one everywhere.
        quoting=csv.QUOTE_ALL if options.escape else rng.choice([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    ).writerows(rows)  # fmt: skip
    return out.getvalue()


def broken(rng, text):
    """A character lost or doubled somewhere behind the header."""
    place = rng.randrange(text.index("k0"), len(text))
    return text[:place] + rng.choice(["", text[place] * 2]) + text[place + 1 :]


def parsed(text, options):
    """What Python's reader makes of it; None where it finds a fault."""
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=options.delimiter, quotechar=options.quote,
        doublequote=options.escape is None, escapechar=options.escape, strict=True,
    )  # fmt: skip
    try:
        header, *rows = (row for row in reader if row)
    except csv.Error:
        return None
    if any(len(row) != len(header) for row in rows):
        return None
    if text.partition("\n")[0].endswith("\r"):  # documented: breaks in quotes are then read as LF
        rows = [[value.replace("\r\n", "\n") for value in row] for row in rows]
    nulls = {"", *options.null_values}
    return sorted([[None if value in nulls else value for value in row] for row in rows], key=str)


def test_rows_and_values_are_those_of_another_reader_or_the_table_is_refused(spark, tmp_path):
    rng = random.Random(11)
    refused = 0
    for case in range(CASES):
        options, rows = dialect(rng), table_of(rng)
        whole = text_of(rng, rows, options)
        damaged = case % 3 == 2 and not options.escape
        text = broken(rng, whole) if damaged else whole
        folder = tmp_path / str(case)
        folder.mkdir()
        suffix, pack = rng.choice([("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)])
        (folder / f"part.csv{suffix}").write_bytes(pack(text.encode(options.encoding)))
        table = AttributeTable(path=str(folder), key=["k"], format="csv", csv=options)
        try:
            with faults_told(spark, [(table, [])]):
                found = sorted((list(row) for row in read_table(spark, table).collect()), key=str)
        except ContractError as error:
            assert damaged, (case, text, options, str(error))
            refused += 1
            continue
        expected = parsed(text, options)
        if expected is None:  # a fault that Spark's reader cannot see must not change the number of rows
            expected = found if len(found) == len(rows) - 1 else None
        assert found == expected, (case, text, options)
    assert refused or CASES < 20
