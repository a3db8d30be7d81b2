"""Which files below a folder make a table, by their names alone.

Readers pass over some files without a word: those whose names begin with ``_`` or ``.``, those in plain
subfolders, those outside of the partition folders of a table that has them. Whoever put rows there would miss
them in the output, so such a folder is refused; leavings of writers that are known for it are only reported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from mcspark.errors import ContractError

_DATA = {
    "parquet": re.compile(r"\.(parquet|parq|pq)(\.\w+)?$", re.IGNORECASE),
    "csv": re.compile(r"\.(csv|tsv|psv)(\.\w+)?$", re.IGNORECASE),
}
_NO_CSV = re.compile(
    r"\.(parquet|orc|avro|arrow|feather|jsonl?|md|html?|pdf|xlsx?|ods|zip|7z|rar|tar|tgz|xz|sqlite|db|py|sas7bdat|dta)$",
    re.IGNORECASE,
)

_MACHINERY = re.compile(
    r"_SUCCESS|_mcspark\.json|_temporary|_spark_metadata|_(common_)?metadata|_(committed|started)_.*|_runs|_delta_log"
    r"|\._.*|\.DS_Store|\.(hive-staging|spark-staging).*|\..*\.(staging|old|work)-.*|\..*\.crc"
)
"""Names that Spark, Hive, Databricks, macOS and this program give to what is no data."""


_OF_URI = re.compile(r"=[^/]*%[89A-Fa-f][0-9A-Fa-f]")
"""Spark and Hive write letters beyond ASCII as they are; pyarrow writes their bytes."""


def is_hidden(name: str) -> bool:
    """Whether readers pass over a file or folder of this name; ``_a=1`` is a partition."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def is_machinery(name: str) -> bool:
    """Whether the name is one of those that are hidden on purpose."""
    return _MACHINERY.fullmatch(name) is not None


def is_elsewhere(name: str, partition: Mapping[str, str]) -> bool:
    """Whether a folder of this name is of another partition than the one that is wanted."""
    key, equals, value = name.partition("=")
    return bool(equals) and key in partition and unquote(value) != partition[key]


@dataclass(frozen=True)
class Layout:
    """The files of a table.

    Parameters
    ----------
    files : tuple of str
        Their names below the folder.
    keys : tuple of str
        The partition columns.
    left_out : tuple of str
        What is hidden, no data by its name, and not known as a leaving of some writer.
    """

    files: tuple[str, ...]
    keys: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def layout_of(table: str, table_format: str, names: Sequence[str]) -> Layout:
    """Tell the files of a table from what no reader looks at.

    Parameters
    ----------
    table : str
        For messages.
    table_format : {'parquet', 'csv'}
    names : sequence of str
        Every file below the folder, as ``ds=2026-11-26/part-0.parquet``; of machinery none.

    Raises
    ------
    ContractError
        If some rows would be passed over, or the folders contradict each other.
    """
    seen: list[str] = []
    hidden: list[str] = []
    for name in sorted(names):
        if any(map(is_machinery, name.split("/"))):
            continue
        (hidden if any(map(is_hidden, name.split("/"))) else seen).append(name)
    keys = {name: _keys(name) for name in seen}
    first = next(filter(None, keys.values()), ())
    problems = _problem(
        [name for name in hidden if _DATA[table_format].search(name)],
        "begin with '_' or '.', or are in a folder that does, and no reader looks at them",
        "rename them, or move them out of the table",
    )
    if first:
        problems += _problem(
            [name for name in seen if not keys[name]],
            f"are outside of the partition folders {first[0]}=… and would be left out",
            "move them into a partition folder, or out of the table",
        )
        problems += _problem(
            [name for name in seen if keys[name] not in ((), first)],
            f"are in partition folders other than {'/'.join(f'{key}=…' for key in first)}",
            "give every file the same partition columns, in the same order",
        )
        problems += _problem(
            [name for name in seen if keys[name] and "=" not in name.split("/", 1)[0]],
            "have partition folders below a plain one",
            "name the plain folder as the table's path",
        )
        problems += _problem(
            [name for name in seen if _OF_URI.search(name.rpartition("/")[0])],
            "are in partition folders with letters written as %C3%BC, which Spark reads one by one as Ã¼",
            "rename the folders, so that their names hold the letters themselves",
        )
    else:
        problems += _problem(
            [name for name in seen if "/" in name],
            "are in subfolders that are no partitions, and would be left out",
            "name the folder that holds the files, call the subfolders key=value, or move the files up",
        )
    if table_format == "csv":
        problems += _problem(
            [name for name in seen if _NO_CSV.search(name)],
            "are no CSV by their names",
            "move them out of the table, or give the right format",
        )
    if problems:
        raise ContractError(f"{table}: {'; '.join(problems)}")
    return Layout(tuple(seen), first, tuple(hidden))


def _keys(name: str) -> tuple[str, ...]:
    return tuple(part.partition("=")[0] for part in name.split("/")[:-1] if "=" in part)


def _problem(names: Sequence[str], what: str, mend: str) -> list[str]:
    if not names:
        return []
    return [f"{len(names)} file(s), such as {names[0]}, {what}; {mend}"]
