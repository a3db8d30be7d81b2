"""What is kept of each partition, and from which partitions a calibrator learns."""

from __future__ import annotations

from pydantic import Field, field_validator

from mcspark.config.section import Section, Written
from mcspark.identifiers import check_identifier

MAX_PARTITIONS = 1000


class KeptCells(Section):
    """The cells of each partition, kept so that later runs need not read its rows again."""

    path: Written = Field(description="Folder; it gets a folder for each partition, such as ds=2026-11-26.")
    keep: int = Field(
        35,
        ge=1,
        le=MAX_PARTITIONS,
        description="Partitions that are kept: those of the window, then the newest.",
    )
    typical_weight: float = Field(
        1.0,
        ge=1e-12,
        le=1e12,
        description="About what a row weighs, within a factor of 1000. It sets the unit of the sums, which "
        "all partitions share.",
    )


class Learn(Section):
    """The partitions to learn from: the last ones whose labels are mature."""

    column: str = Field(description="Partition column with a date, such as ds.")
    last: int = Field(28, ge=1, le=MAX_PARTITIONS, description="Partitions to learn from, one a day.")
    mature_after: int = Field(
        0,
        ge=0,
        le=MAX_PARTITIONS,
        description="Days after which a partition has its labels; younger ones are not learned from.",
    )
    half_life: float | None = Field(
        None,
        gt=0,
        le=1e6,
        description="Days in which the weight of a partition halves, counted from the newest one of the "
        "window; null: all weigh alike.",
    )
    allow_missing: bool = Field(
        False,
        description="Learn from the others where partitions have no rows or no labels; false refuses that.",
    )

    @field_validator("column")
    @classmethod
    def _identifier(cls, column: str) -> str:
        return check_identifier(column)
