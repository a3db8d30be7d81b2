"""Segments: parts of the rows that have a calibrator of their own."""

from __future__ import annotations

from pydantic import Field, field_validator

from mcspark.config.section import Columns, Section
from mcspark.identifiers import MAX_SEGMENT_COLUMNS


class Segments(Section):
    """Parts of the rows, such as countries, that have a calibrator of their own."""

    by: Columns = Field(
        description="Columns of any of the tables; rows of the same values are a segment, and rows that lack "
        "a value are in none."
    )
    min_rows: int = Field(
        5000,
        ge=1,
        description="Fewest labelled rows of a segment with a calibrator of its own; the others share the "
        "pooled one.",
    )
    max_mc_error: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Gate: most held-out MC error of each segment with its own calibrator, on the grid that "
        "is led with; where none can be measured, it is not met. null: no limit.",
    )

    @field_validator("by")
    @classmethod
    def _few(cls, by: tuple[str, ...]) -> tuple[str, ...]:
        if len(by) > MAX_SEGMENT_COLUMNS:
            raise ValueError(
                f"names {len(by)} columns, more than {MAX_SEGMENT_COLUMNS}; join some into one column"
            )
        return by
