"""Columns of a pandas or Arrow table, or of arrays by name, as NumPy; neither library is imported.

Types mean what they mean in Spark: a category of whole numbers is no text, and 32-bit floats are taken as
they are written.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mcspark.core.cells.groups import NUMBER
from mcspark.core.cells.levels import FloatArray, IntArray
from mcspark.errors import ContractError
from mcspark.identifiers import folded

Kind = Literal["whole", "float", "text", "boolean", "decimal", "date", "null"]

_NUMBER = re.compile(NUMBER, re.ASCII | re.IGNORECASE)
_ARROW_WHOLE = {
    "int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint8": 16, "uint16": 32, "uint32": 64,
}  # fmt: skip
_ARROW_FLOAT = {"float": np.float32, "double": np.float64}
_KINDS: dict[type, Kind] = {
    str: "text", bool: "boolean", int: "whole", float: "float", Decimal: "decimal", datetime.date: "date",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Column:
    """One column.

    Attributes
    ----------
    name : str
    kind : str
        ``whole`` and ``float`` have a number a row; the others have distinct values.
    data : ndarray, shape (N,)
        Numbers (int64, float64; 0 or NaN where missing), or the place of each row's value among ``values``,
        -1 where missing.
    missing : ndarray of bool, shape (N,), optional
        Of whole numbers; None where none is missing.
    values : tuple
        Distinct values of the other kinds.
    bits : int
        Width of whole numbers, or of the floats as they came.
    loose : bool
        Floats of a pandas table, which has no whole numbers with gaps by default.
    """

    name: str
    kind: Kind
    data: NDArray[Any]
    missing: NDArray[np.bool_] | None = None
    values: tuple[Any, ...] = ()
    bits: int = 64
    loose: bool = False

    def __len__(self) -> int:
        return len(self.data)

    def numbers(self) -> FloatArray:
        """Doubles, NaN where there is none: of text, what Spark takes for a number."""
        if self.kind == "whole":
            numbers = self.data.astype(np.float64)
            return numbers if self.missing is None else np.where(self.missing, np.nan, numbers)
        if self.kind == "float":
            return self.data
        if self.kind in ("text", "decimal"):
            known = [_number(value) for value in self.values]
            return np.asarray(np.array([*known, np.nan])[self.data], dtype=np.float64)
        if self.kind == "null":
            return np.full(len(self), np.nan)
        raise ContractError(f"column {self.name!r} is {self.kind}, but numbers are needed; store numbers")

    def whole(self) -> Column:
        """The same as whole numbers, where pandas has stored those as floats for the gaps between them."""
        if not (self.kind == "float" and self.loose):
            return self
        missing = np.isnan(self.data)
        filled = np.where(missing, 0.0, self.data)
        if not ((filled == np.floor(filled)) & (np.abs(filled) < 2**53)).all():
            return self
        return Column(self.name, "whole", filled.astype(np.int64), missing if missing.any() else None)


def column_of(table: Any, name: str) -> Column:
    """The column of a table of any kind by its name, in whatever capitals.

    Parameters
    ----------
    table : pandas.DataFrame, pyarrow.Table, pyarrow.RecordBatch or mapping of str to sequence
    name : str

    Raises
    ------
    ContractError
        If there is no such column, there are two, or its type is none that has categories or numbers.
    """
    names = column_names(table)
    place = place_of(names, name)
    if hasattr(table, "schema"):
        return _from_arrow(name, table.column(place))
    if hasattr(table, "iloc"):
        return _from_pandas(name, table.iloc[:, place])
    return _from_values(name, table[names[place]])


def place_of(names: Sequence[str], name: str) -> int:
    """The place of a column among the names of a table: of that name, or else in other capitals.

    Raises
    ------
    ContractError
        If there is no such column, or there are two.
    """
    places = [i for i, n in enumerate(names) if n == name]
    places = places or [i for i, n in enumerate(names) if folded(n) == folded(name)]
    if len(places) != 1:
        found = "two columns" if places else "no column"
        raise ContractError(f"the table has {found} {name!r}; it has {', '.join(sorted(names)[:20])}")
    return places[0]


def _from_values(name: str, values: Any) -> Column:
    """A column of a mapping: an Arrow or pandas column, an array, or any sequence."""
    if hasattr(values, "dictionary_encode"):
        return _from_arrow(name, values)
    if hasattr(values, "iloc"):
        return _from_pandas(name, values)
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__iter__"):
        raise ContractError(f"column {name!r} is one {type(values).__name__}; give a value for every row")
    return _from_sequence(name, values)


def column_names(table: Any) -> list[str]:
    """Names of the columns of a table of any kind."""
    if hasattr(table, "schema"):
        return [str(name) for name in table.schema.names]
    if hasattr(table, "iloc") and hasattr(table, "columns"):
        return [str(name) for name in table.columns]
    if isinstance(table, Mapping):
        return [str(name) for name in table]
    raise ContractError(
        f"{type(table).__name__} is no table; give a pandas DataFrame, a pyarrow Table, or arrays by name"
    )


def _from_arrow(name: str, column: Any) -> Column:
    kind = str(column.type)
    if kind in _ARROW_WHOLE:
        missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
        return _whole(name, _numpy(column.fill_null(0)), missing, _ARROW_WHOLE[kind])
    if kind in _ARROW_FLOAT:
        return _float(name, _numpy(column.fill_null(math.nan)))
    if kind == "null":
        return Column(name, "null", np.full(len(column), -1))
    if not kind.startswith("dictionary"):
        try:
            column = column.dictionary_encode()
        except NotImplementedError as error:  # lists, structs, halves
            raise _other_type(name, kind) from error
    whole = column.combine_chunks() if hasattr(column, "chunks") else column
    if hasattr(whole, "chunks"):  # more than one chunk is left where a dictionary would be too large
        return _from_objects(name, column.to_pylist())
    places = _numpy(whole.indices.cast("int64").fill_null(-1))
    return _distinct(name, places, whole.dictionary.to_pylist())


def _numpy(column: Any) -> NDArray[Any]:
    # An Array insists on being told that it may copy; a ChunkedArray always may.
    return np.asarray(column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(False))


def _from_pandas(name: str, series: Any) -> Column:
    if hasattr(series, "columns"):
        raise ContractError(f"column {name!r} is a table; give one column")
    if str(series.dtype).startswith("Sparse"):
        series = series.sparse.to_dense()
    dtype = series.dtype
    if hasattr(dtype, "pyarrow_dtype"):
        return _from_arrow(name, series.array.__arrow_array__())
    if hasattr(dtype, "categories"):
        return _distinct(name, series.cat.codes.to_numpy(np.int64), dtype.categories.tolist())
    if isinstance(dtype, np.dtype):
        found = _from_sequence(name, series.to_numpy())
        return Column(**{**vars(found), "loose": True}) if found.kind == "float" else found
    missing = series.isna().to_numpy()
    if getattr(dtype, "kind", "O") in "iu":
        bits = 8 * int(dtype.itemsize)
        whole = series.to_numpy(dtype.numpy_dtype, na_value=0)
        return _whole(name, whole, missing if missing.any() else None, bits)
    if getattr(dtype, "kind", "O") == "f":
        return _float(name, series.to_numpy(dtype.numpy_dtype, na_value=math.nan))
    return _from_objects(name, series.to_numpy(object, na_value=None).tolist())


def _from_sequence(name: str, values: Any) -> Column:
    array = values if isinstance(values, np.ndarray) else None
    if array is not None and array.ndim != 1:
        raise ContractError(f"column {name!r} has {array.ndim} dimensions; give one value a row")
    if isinstance(array, np.ma.MaskedArray):
        return _masked(_from_sequence(name, np.asarray(values.data)), np.asarray(values.mask))
    if array is not None and array.dtype.kind == "b":
        return Column(name, "boolean", array.astype(np.int64), values=(False, True))
    if array is not None and array.dtype.kind in "iu":
        bits = 8 * array.dtype.itemsize * (1 if array.dtype.kind == "i" else 2)
        return _whole(name, array, None, bits)
    if array is not None and array.dtype.kind == "f" and array.dtype.itemsize in (4, 8):
        return _float(name, array.astype(array.dtype.newbyteorder("="), copy=False))
    if array is not None and array.dtype.kind not in "OU":
        raise _other_type(name, str(array.dtype))
    return _from_objects(name, values.tolist() if array is not None else list(values))


def _from_objects(name: str, values: Sequence[Any]) -> Column:
    kinds = {type(value) for value in values}
    if any(issubclass(kind, np.generic) for kind in kinds):
        values = [value.item() if isinstance(value, np.generic) else value for value in values]
        kinds = {type(value) for value in values}
    gaps = {kind for kind in kinds if kind.__name__ in ("NoneType", "NAType", "NaTType")}
    kinds -= gaps
    if float in kinds and kinds - {float, int} and all(math.isnan(v) for v in values if type(v) is float):
        gaps, kinds = gaps | {float}, kinds - {float}  # what pandas has for a missing text
    if not kinds:
        return Column(name, "null", np.full(len(values), -1))
    if len(kinds) > 1 and not kinds <= {int, float}:  # True and 1 would be one value
        raise _mixed(name, kinds)
    if kinds <= {int, float} and float in kinds:
        try:
            return _float(name, np.array([math.nan if type(v) in gaps else float(v) for v in values]))
        except OverflowError as error:
            raise _too_large(name) from error
    if kinds == {int}:
        missing = np.array([type(value) in gaps for value in values], dtype=bool)
        try:
            whole = np.array([0 if type(v) in gaps else v for v in values], dtype=np.int64)
        except OverflowError as error:
            raise _too_large(name) from error
        return _whole(name, whole, missing if missing.any() else None, 64)
    place: dict[Any, int] = {}
    try:
        seen = [-1 if type(v) in gaps else place.setdefault(v, len(place)) for v in values]
    except TypeError as error:  # lists and the like have no hash
        raise _mixed(name, kinds) from error
    return _distinct(name, np.array(seen, dtype=np.int64), list(place))


def _distinct(name: str, places: IntArray, values: Iterable[Any]) -> Column:
    known = [None if isinstance(v, float) and math.isnan(v) else v for v in values]
    kinds = {type(value) for value in known if value is not None}
    if len(kinds) > 1 or not kinds <= set(_KINDS):
        raise _mixed(name, kinds)
    if kinds == {Decimal} and not all(v.is_finite() for v in known if v is not None):
        raise ContractError(f"column {name!r} holds a decimal that is no number; a missing one is None")
    if kinds and next(iter(kinds)) in (int, float):
        again = _from_objects(name, known)
        return _gathered(again, places)
    if None in known:
        gap = np.array([i if v is not None else -1 for i, v in enumerate(known)] + [-1])
        places = gap[places]
    return Column(name, _KINDS[next(iter(kinds))] if kinds else "null", places, values=tuple(known))


def _masked(column: Column, mask: NDArray[np.bool_]) -> Column:
    missing = np.broadcast_to(mask, len(column))
    if column.kind in ("whole", "float"):
        found = _gathered(column, np.where(missing, -1, np.arange(len(column))))
        return replace(found, bits=column.bits)
    return replace(column, data=np.where(missing, -1, column.data))


def _gathered(column: Column, places: IntArray) -> Column:
    """The rows of a column of distinct numbers, -1 for a missing one."""
    gone = places < 0
    if column.kind != "whole":
        return _float(column.name, np.append(column.data, np.nan)[places])
    missing = gone if column.missing is None else gone | np.append(column.missing, True)[places]
    return _whole(column.name, np.append(column.data, 0)[places], missing if missing.any() else None, 64)


def _mixed(name: str, kinds: Iterable[type]) -> ContractError:
    reported = " and ".join(sorted(kind.__name__ for kind in kinds))
    return ContractError(
        f"column {name!r} holds {reported}; store text, whole numbers, doubles, decimals, booleans or dates"
    )


def _other_type(name: str, kind: str) -> ContractError:
    return ContractError(f"column {name!r} is {kind}; store text, whole numbers or doubles")


def _too_large(name: str) -> ContractError:
    return ContractError(f"column {name!r} has whole numbers beyond 64 bits; store text")


def _whole(name: str, data: NDArray[Any], missing: NDArray[np.bool_] | None, bits: int) -> Column:
    if data.dtype == np.uint64 and data.max(initial=0) > np.iinfo(np.int64).max:
        raise _too_large(name)
    return Column(name, "whole", data.astype(np.int64, copy=False), missing, bits=min(bits, 64))


def _float(name: str, data: NDArray[Any]) -> Column:
    """Floats of 32 bits become the doubles that they are written as; -0.0 becomes 0.0."""
    if data.dtype == np.float32:
        distinct, place = np.unique(data, return_inverse=True)
        data = np.array([float(str(value)) for value in distinct], dtype=np.float64)[place.reshape(-1)]
        return Column(name, "float", data + 0.0, bits=32)
    return Column(name, "float", data.astype(np.float64, copy=False) + 0.0)


def _number(value: Any) -> float:
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else math.nan
    return math.nan if value is None else float(value)
