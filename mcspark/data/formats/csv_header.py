"""The first record of CSV files, and what their first bytes say about them; no Spark job runs."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Sequence

from mcspark.config.csv_text import CsvText
from mcspark.data.formats.names import twins
from mcspark.errors import ContractError

HEAD = 256 * 1024
"""No header is longer than so many bytes."""
DELIMITERS = (",", ";", "\t", "|")

_SIGNATURES = (
    (b"PAR1", "is a Parquet file; write format: parquet"),
    (b"PK\x03\x04", "is a ZIP archive or a spreadsheet; unpack it, or export it as CSV"),
    (b"\x1f\x8b", "is compressed by gzip under a name that does not say so; let its name end in .csv.gz"),
    (b"BZh", "is compressed by bzip2 under a name that does not say so; let its name end in .csv.bz2"),
)


def header_of(head: bytes, options: CsvText, name: str) -> list[str]:
    """The names of the columns, from the first bytes of a file; empty for an empty file.

    A column without a name gets the one that Spark gives it, ``_c0`` for the first column.

    Parameters
    ----------
    head : bytes
        The first bytes, decompressed, :data:`HEAD` at most.
    options : CsvText
    name : str
        Of the file, for messages.

    Raises
    ------
    ContractError
        If the file is no CSV, is in another encoding, is cut by another delimiter, or names a column twice.
    """
    for signature, meaning in _SIGNATURES:
        if head.startswith(signature):
            raise ContractError(f"{name}: {meaning}")
    fields = _first_record(_text(head, options, name), options, name, whole=len(head) < HEAD)
    if len(fields) == 1 and (other := likely_delimiter(fields[0], options.delimiter)):
        raise ContractError(
            f"{name}: its header is one column, {fields[0][:80]!r}; the delimiter seems to be {other!r}, not "
            f"{options.delimiter!r}: set csv: {{delimiter: {_yaml(other)}}}"
        )
    names = [field or f"_c{place}" for place, field in enumerate(fields)]
    if words := twins(names):
        raise ContractError(f"{name}: {words}")
    return names


def likely_delimiter(header: str, but: str) -> str | None:
    """The usual delimiter that stands most often in the header; None if no other one does."""
    counts = {sign: header.count(sign) for sign in DELIMITERS if sign != but}
    sign = max(counts, key=lambda s: counts[s])
    return sign if counts[sign] else None


def refuse_other_headers(headers: Sequence[tuple[str, list[str]]], name: str) -> list[str]:
    """The one header of a table.

    Parameters
    ----------
    headers : sequence of (str, list of str)
        Name of each file below the table, and its columns; empty for an empty file.
    name : str
        Of the table, for messages.

    Raises
    ------
    ContractError
        If all files are empty, or two have other headers.
    """
    filled = [(file, header) for file, header in headers if header]
    if not filled:
        raise ContractError(f"{name}: its CSV files are empty; the first line must name the columns")
    first_file, first = filled[0]
    for file, header in filled:
        if header != first:
            lost, new = [c for c in first if c not in header], [c for c in header if c not in first]
            raise ContractError(
                f"{name}: its CSV files have different headers: {first_file} against "
                f"{file} (missing {lost}, new {new}, or another order); write them with one header"
            )
    return first


def _text(head: bytes, options: CsvText, name: str) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and "16" not in options.encoding:
        raise ContractError(f"{name}: is not {options.encoding}; set csv: {{encoding: utf-16}}")
    try:
        text = codecs.getincrementaldecoder(options.encoding)("strict").decode(head)
    except UnicodeError as error:  # of which not all tell a place, as UTF-16 without its mark
        place = f"byte {error.start}" if isinstance(error, UnicodeDecodeError) else "it"
        raise ContractError(
            f"{name}: {place} is not {options.encoding}; set csv: {{encoding: …}}, such as "
            "windows-1252, or write the file anew"
        ) from error
    return text.removeprefix("\ufeff")


def _first_record(text: str, options: CsvText, name: str, *, whole: bool) -> list[str]:
    rows = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=options.delimiter,
        quotechar=options.quote,
        quoting=csv.QUOTE_MINIMAL if options.quote else csv.QUOTE_NONE,
        doublequote=options.escape is None,
        escapechar=options.escape,
        strict=True,
    )
    try:
        for row in rows:
            if row:
                if not whole and rows.line_num > text.count("\n"):
                    break
                return row
    except csv.Error as error:
        raise ContractError(f"{name}: its header cannot be read ({error})") from error
    if text.strip("\r\n") and not whole:
        raise ContractError(f"{name}: no header within its first {HEAD // 1024} KiB; is it a CSV file?")
    return []


def _yaml(sign: str) -> str:
    return '"\\t"' if sign == "\t" else f'"{sign}"'
