"""What the trees may learn from, where that is more than the groups."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from mcspark.config.groups import Cut
from mcspark.config.section import AsTuple, Section, repeated


class FeatureColumn(Cut):
    """A column that trees learn from: by its values, or, with bins or divide_by, as a number in its order."""


class Features(Section):
    """Learn from columns, prove on groups: the trees see every category of the columns, however rare."""

    columns: Annotated[tuple[FeatureColumn, ...], AsTuple] = Field(
        (),
        description="Columns to learn from beside those of the groups, which are learned from in any case: "
        "with all their categories, whatever groups.min_share is.",
    )

    @field_validator("columns")
    @classmethod
    def _each_once(cls, columns: tuple[FeatureColumn, ...]) -> tuple[FeatureColumn, ...]:
        if again := repeated(c.column for c in columns):
            raise ValueError(f"names {again[0]!r} twice; name each column once")
        return columns
