"""What is watched from run to run: drift between them, and where they are tracked."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mcspark.config.section import Path, Section


class Drift(Section):
    """What jobs/audit.py compares its table with, and how far they may differ (exit code 4 beyond that)."""

    against: Path | None = Field(
        None, description="Manifest of an earlier calibrate or audit, or a model's folder; null: nothing."
    )
    stage: Literal["before", "after"] = Field(
        "before", description="The score of that run to compare with: as it came in, or calibrated."
    )
    max_score_distance: float | None = Field(
        None, ge=0, le=1, description="Largest distance of the score distributions (Kolmogorov); null: any."
    )
    max_share_change: float | None = Field(
        None, ge=0, le=1, description="Largest change of a group's share; null: any."
    )
    mc_error_must_hold: bool = Field(
        False, description="The MC error must not be worse than then, beyond the intervals of both."
    )


class Tracking(Section):
    """Where runs are tracked besides their manifests."""

    mlflow: Path | None = Field(
        None, description="Tracking URI of MLflow (needs the extra mlflow); null: not tracked."
    )
    experiment: str = Field("mcspark", min_length=1, description="MLflow experiment of the runs.")
