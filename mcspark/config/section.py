"""What all sections of the configuration share: the base model and the kinds of values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from mcspark.identifiers import check_column, check_path, check_table, check_written, folded


class Section(BaseModel):
    """A frozen section; unknown keys, text for numbers, NaN and infinities are refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        validate_default=True,
        hide_input_in_errors=True,
        protected_namespaces=(),
    )


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def repeated(names: Iterable[str]) -> list[str]:
    """The names that occur again; Spark tells no capitals apart, so ``Sex`` repeats ``sex``."""
    seen: set[str] = set()
    again = []
    for name in names:
        if folded(name) in seen:
            again.append(name)
        seen.add(folded(name))
    return again


def _unique_columns(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise ValueError("is empty; name at least one column")
    if again := repeated(names):
        raise ValueError(f"names {again[0]!r} twice (Spark tells no capitals apart); name each column once")
    return names


AsTuple = BeforeValidator(_as_tuple)
"""A YAML list for a tuple."""


def _keys_as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k) if type(k) is int else k: v for k, v in value.items()}
    return value


KeysAsText = BeforeValidator(_keys_as_text)
"""Codes and classes of Python are whole numbers as often as text; those of YAML come as text."""

Column = Annotated[str, AfterValidator(check_column)]
Columns = Annotated[tuple[Column, ...], AsTuple, AfterValidator(_unique_columns)]


def _in_folder(path: str, info: ValidationInfo) -> str:
    folder = (info.context or {}).get(FOLDER)
    return path if folder is None or _ABSOLUTE.match(path) else f"{folder}/{path}"


FOLDER = "folder"
"""Of the context of a validation: where paths begin that begin nowhere; they stay as they are without it."""

_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
Path = Annotated[str, AfterValidator(check_path), AfterValidator(_in_folder)]
Written = Annotated[str, AfterValidator(check_written), AfterValidator(_in_folder)]
"""A path of what a job writes."""

TableName = Annotated[str, AfterValidator(check_table)]
Share = Annotated[float, Field(gt=0, lt=1)]
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
