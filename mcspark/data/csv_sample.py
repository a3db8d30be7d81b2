"""The first rows of CSV files on this machine, cut and cleaned as the jobs do it, without Spark."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from mcspark.config.csv_text import CsvText
from mcspark.data.formats.csv_header import DELIMITERS, HEAD, header_of, refuse_other_headers
from mcspark.data.rows.rejection import DECIMAL_COMMA
from mcspark.errors import ContractError

_OPENERS = {".gz": gzip.open, ".bz2": bz2.open}
_ENCODINGS = ("utf-8", "utf-16", "windows-1252")
_CODE = r"[-+]?0\d"


def is_csv(file: Path) -> bool:
    """Whether the name is that of a CSV, compressed or not."""
    return file.suffix in (".csv", *_OPENERS)


def sample_csv(root: Path, files: Sequence[Path], rows: int) -> tuple[pd.DataFrame, CsvText]:
    """The first rows of a table, and how its files are written.

    Columns are numbers where every text is one, and none is a code such as ``01``.

    Raises
    ------
    ContractError
        If a file is no CSV, or two files have other headers.
    """
    options = _options(files)
    headers = [(str(file.relative_to(root)) or file.name, header_of(_head(file), options, str(file)))
               for file in files]  # fmt: skip
    header = refuse_other_headers(headers, str(root))
    parts: list[pd.DataFrame] = []
    for file, (_, own) in zip(files, headers, strict=True):
        left = rows - sum(map(len, parts))
        if left <= 0:
            break
        if own:
            parts.append(_read(file, options, header, left).assign(**_folders(file, root)))
    table = pd.concat(parts, ignore_index=True)
    return table.apply(_numbers), options


def with_decimal_commas(table: pd.DataFrame) -> list[str]:
    """Columns of text in which every value looks like ``0,5``."""
    texts = {str(n): table[n].dropna() for n in table.columns if table[n].dtype == object}
    return [
        n for n, values in texts.items()
        if len(values) and values.astype(str).str.fullmatch(DECIMAL_COMMA).all()
    ]  # fmt: skip


def _options(files: Sequence[Path]) -> CsvText:
    """The delimiter and the encoding that make more than one column of the first file."""
    head = next((head for file in files if (head := _head(file))), b"")
    problem: ContractError | None = None
    for encoding in _ENCODINGS:
        for delimiter in DELIMITERS:
            options = CsvText(delimiter=delimiter, encoding=encoding)
            try:
                if len(header_of(head, options, str(files[0]))) > 1:
                    return options
            except ContractError as error:
                problem = problem or error
        if problem is None or "is not utf-8" not in str(problem):
            break
    if problem is not None:
        raise problem
    return CsvText()


def _head(file: Path) -> bytes:
    with _OPENERS.get(file.suffix, open)(file, "rb") as stream:  # type: ignore[operator]
        return bytes(stream.read(HEAD))


def _read(file: Path, options: CsvText, header: Sequence[str], rows: int) -> pd.DataFrame:
    try:
        return pd.read_csv(
            file, sep=options.delimiter, quotechar=options.quote or '"', encoding=options.encoding,
            names=list(header), header=0, index_col=False, nrows=rows, dtype=str,
            keep_default_na=False, na_values=["", *options.null_values],
        )  # fmt: skip
    except (pd.errors.ParserError, UnicodeError) as error:
        raise ContractError(f"{file}: {str(error).strip()}; correct the line") from error


def _folders(file: Path, root: Path) -> dict[str, str]:
    """The values of partition folders, as text."""
    if file == root:
        return {}
    parts = (part.partition("=") for part in file.relative_to(root).parts[:-1] if "=" in part)
    return {name: value for name, _, value in parts}


def _numbers(values: pd.Series) -> pd.Series:
    known = values.dropna()
    if known.empty or known.str.match(_CODE).any():
        return values
    numbers = pd.to_numeric(known, errors="coerce")
    return values if numbers.isna().any() else pd.to_numeric(values)
