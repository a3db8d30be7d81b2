"""How the correction is learned: the trees, and the paper's baselines."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from mcspark.config.section import AsTuple, Column, Section, Seed, Share

Method = Literal[
    "trees", "multiaccuracy", "lsboost", "mcboost", "squarelev", "isotonic", "platt", "temperature",
    "calibrated_multiaccuracy", "none",
]  # fmt: skip
MAX_ROUNDS = 100
MAX_DRIVER_CELLS = 12_000_000
Levels = Annotated[int, Field(ge=1, le=1000)]


def _check_rounds(value: Any) -> Any:
    if value != "auto" and (type(value) is not int or not 1 <= value <= MAX_ROUNDS):
        raise ValueError(f"must be a whole number from 1 to {MAX_ROUNDS}, or auto")
    return value


class Split(Section):
    """The split by a hash of the key: the same under any reordering or repartitioning."""

    by: Literal["hash", "time"] = Field(
        "hash",
        description="What is held out to report on: rows by the hash of their key, or, with learn, the "
        "latest partition of the window.",
    )
    test: Share = Field(0.4, description="Share of the labelled rows held out to report on.")
    early_stopping: Share = Field(0.3, description="Share of the rest that only stops the boosting.")
    seed: Seed = Field(7, description="Seed of the hash.")
    column: Column | None = Field(None, description="A column that already says fit or test; null: the hash.")


def _check_penalties(penalties: tuple[float, ...]) -> tuple[float, ...]:
    if not penalties:
        raise ValueError("is empty; give at least one penalty, such as [0]")
    if any(penalty < 0 for penalty in penalties):
        raise ValueError("must not be negative; write 0 for no penalty")
    return penalties


class Multiaccuracy(Section):
    """Settings of the multiaccuracy baseline: linear in the groups with an l1 penalty."""

    penalties: Annotated[tuple[float, ...], AsTuple, AfterValidator(_check_penalties)] = Field(
        (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2),
        description="Strengths of the l1 penalty; the early-stopping part chooses one (the paper's sweep).",
    )


class McBoost(Section):
    """Settings of the MCBoost baseline."""

    levels: Levels = Field(20, description="Grid m of the level sets it patches.")
    max_patches: int = Field(10_000, ge=1, le=1_000_000, description="Most patches.")
    patience: int = Field(100, ge=1, description="Patches without a lower early-stopping error to the end.")


class LsBoost(Section):
    """Settings of the LSBoost baseline."""

    levels: Levels = Field(20, description="Grid m of the level sets.")
    depth: int = Field(1, ge=1, le=2, description="Depth of the weak trees (the paper sweeps 1, 2).")
    learning_rate: float = Field(1.0, gt=0, le=1, description="Step size (the paper sweeps 0.1, 0.3, 1).")
    subsample: float = Field(1.0, gt=0, le=1, description="Share of rows for the weak trees of a round.")
    max_rounds: int = Field(100, ge=1, le=1_000_000, description="Most rounds.")
    patience: int = Field(10, ge=1, description="Rounds in which nothing moves to the end.")


class SquareLev(Section):
    """Settings of the SquareLev.R baseline."""

    max_rounds: int = Field(500, ge=1, le=1_000_000, description="Most weak trees.")


class Recalibration(Section):
    """Settings of isotonic regression, Platt scaling or temperature scaling."""

    by_group: bool = Field(
        False, description="A map for each group; a row gets the mean of those of its groups."
    )


class Calibrator(Section):
    """The calibrator and its settings."""

    method: Method = Field("trees", description="Method; none ships the score as it is.")
    recipe: Literal["auto", "paper"] = Field(
        "auto",
        description="How the trees are grown. auto chooses link, learning_rate, min_rows_in_leaf, "
        "early_stopping_rounds, rounds and refit by the rows and their early-stopping loss, except those "
        "that are set; paper takes them as they stand. With training: rows, auto is paper.",
    )
    learning_rate: float = Field(0.1, gt=0, le=1, description="Shrinkage of each tree.")
    feature_fraction: float = Field(1.0, gt=0, le=1, description="Share of the features each tree may use.")
    max_trees: int = Field(5000, ge=1, le=100_000, description="Most trees of a stage.")
    early_stopping_rounds: int = Field(
        50, ge=1, le=100_000, description="Trees without a lower early-stopping loss before a stage ends."
    )
    link: Literal["identity", "logit"] = Field(
        "identity", description="identity: squared loss (the paper); logit: cross-entropy on logit(score)."
    )
    rounds: Annotated[int | Literal["auto"], BeforeValidator(_check_rounds)] = Field(
        1, description="Stages; auto goes on until the held-out gain is within noise."
    )
    training: Literal["cells", "rows"] = Field(
        "cells", description="Train on the table of sums (cells) or on every row, in all executors."
    )
    engine: Literal["auto", "synapseml", "lightgbm"] = Field(
        "auto",
        description="What grows the trees: SynapseML in the cluster, or the official LightGBM on the driver, "
        "which is sooner where cells are few; auto takes SynapseML where the running Spark has its jars or "
        "can get them.",
    )
    score_bins: int = Field(
        255, ge=0, le=100_000, description="Wanted equally heavy score bins beside the level edges; 0: none."
    )
    min_rows_in_leaf: int = Field(
        20, ge=1, description="Fewest rows in a leaf; effective rows, (Σw)² / Σw², where weights differ."
    )
    seed: Seed = Field(1, description="Seed of the training.")
    refit: bool = Field(
        False, description="Choose the number of trees held out, then refit on all fitting rows."
    )
    monotone: bool = Field(
        False,
        description="Trees alone: the calibrated score never falls where the score rises and the groups "
        "stay. The correction itself may not fall, so scores that are too extreme are not drawn together.",
    )
    driver_cells: int | None = Field(
        None,
        ge=1,
        le=MAX_DRIVER_CELLS,
        description="Most cells that the driver holds; null: as many as half of its memory takes, at most "
        "12,000,000. With more, scores are measured in the cluster; what is learned from cells merges score "
        "bins until they fit.",
    )
    timeout_seconds: int = Field(3600, ge=1, description="Wall-clock limit of a fit; then exit code 75.")
    multiaccuracy: Multiaccuracy = Field(Multiaccuracy(), description="Settings of multiaccuracy.")
    mcboost: McBoost = Field(McBoost(), description="Settings of mcboost.")
    lsboost: LsBoost = Field(LsBoost(), description="Settings of lsboost.")
    squarelev: SquareLev = Field(SquareLev(), description="Settings of squarelev.")
    isotonic: Recalibration = Field(Recalibration(), description="Settings of isotonic.")
    platt: Recalibration = Field(Recalibration(), description="Settings of platt.")
    temperature: Recalibration = Field(Recalibration(), description="Settings of temperature.")
    calibrated_multiaccuracy: Multiaccuracy = Field(
        Multiaccuracy(), description="Settings of multiaccuracy, when isotonic regression follows it."
    )

    @field_validator("monotone")
    @classmethod
    def _trees_alone_are_monotone(cls, value: bool, info: ValidationInfo) -> bool:
        if value and info.data.get("method", "trees") != "trees":
            raise ValueError("is a promise of the trees alone; set calibrator.method: trees, or leave it out")
        return value

    @field_validator("method", mode="before")
    @classmethod
    def _one_word(cls, value: Any) -> Any:
        # The comparison's word for the same method.
        return "multiaccuracy" if value == "multiaccurate" else value
