"""The whole configuration: the one schema that every job honours."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from mcspark.config.calibrator import Calibrator, Split
from mcspark.config.features import Features
from mcspark.config.groups import Groups
from mcspark.config.monitoring import Drift, Tracking
from mcspark.config.secrets import redact
from mcspark.config.section import AsTuple, Section, Seed, Written, repeated
from mcspark.config.segments import Segments
from mcspark.config.tables import AttributeTable, InputTable, LabelTable, Output, ScoredTable
from mcspark.config.window import KeptCells, Learn
from mcspark.errors import ConfigurationError

MAX_BASE_LEVELS = 100_000
MAX_TABLES = 60
"""A row says by one bit a table, of a long, which of them it lacks."""

SomeSection = TypeVar("SomeSection", bound=Section)

TaskName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=64)]
CompareMethod = Literal[
    "none", "multiaccurate", "mcboost", "lsboost", "squarelev", "isotonic", "platt", "temperature",
    "calibrated_multiaccuracy", "trees",
]  # fmt: skip
_PAPERS_METHODS: tuple[CompareMethod, ...] = (
    "none", "multiaccurate", "mcboost", "lsboost", "squarelev", "trees",
)  # fmt: skip


def _check_levels(levels: tuple[int, ...]) -> tuple[int, ...]:
    if not levels:
        raise ValueError("is empty; give at least one number of levels, such as [20]")
    if any(m < 1 for m in levels):
        raise ValueError("must be positive whole numbers, such as [10, 20]")
    if len(set(levels)) < len(levels):
        raise ValueError("names a number of levels twice; name each once")
    if (base := math.lcm(*levels)) > MAX_BASE_LEVELS:
        raise ValueError(
            f"need score bins at {base} common edges, more than {MAX_BASE_LEVELS}; "
            "choose grids that divide one another"
        )
    return levels


Threshold = Annotated[float, Field(gt=0, lt=1)]


class Evaluation(Section):
    """What is measured."""

    levels: Annotated[tuple[int, ...], AsTuple, AfterValidator(_check_levels)] = Field(
        (10, 20, 30, 50, 75, 100), description="Grids m on which calibration is measured."
    )
    draws: int = Field(200, ge=1, le=100_000, description="Simulations for the noise floor and intervals.")
    seed: Seed = Field(1, description="Seed of the simulations.")
    min_group_rows: int = Field(
        2, ge=1, description="Groups with fewer held-out rows are listed, and left out of every maximum."
    )
    thresholds: Annotated[tuple[Threshold, ...], AsTuple] = Field(
        (),
        description="Scores from which decisions are made: the report tells the share of each group's rows "
        "from there on, and the rates of true and false positives. Each is an edge of the levels.",
    )

    @field_validator("thresholds")
    @classmethod
    def _edges(cls, thresholds: tuple[float, ...], info: ValidationInfo) -> tuple[float, ...]:
        base = math.lcm(*info.data.get("levels", (1,)))
        for threshold, exact in zip(thresholds, _fractions(thresholds), strict=True):
            if "levels" in info.data and base % exact.denominator:
                raise ValueError(
                    f"names {threshold:g}, which is no multiple of 1/{base}, so no edge of these levels; "
                    f"name another, or add {exact.denominator} to evaluation.levels"
                )
        if again := repeated(list(map(str, thresholds))):
            raise ValueError(f"names {again[0]} twice; name each once")
        return thresholds

    @property
    def fractions(self) -> tuple[Fraction, ...]:
        """The thresholds, exactly."""
        return _fractions(self.thresholds)


def _fractions(thresholds: Iterable[float]) -> tuple[Fraction, ...]:
    return tuple(Fraction(repr(float(threshold))) for threshold in thresholds)


MAX_TOLD = 10_000


def _check_told(text: str) -> str:
    if not text.strip() or len(text) > MAX_TOLD or not all(c.isprintable() or c in "\n\t" for c in text):
        raise ValueError(f"must be 1 to {MAX_TOLD} printable characters, in as many lines as you like")
    return text.strip()


Told = Annotated[str, AfterValidator(_check_told)]
"""Words for the readers of a report."""


class Model(Section):
    """Where the fitted calibrator is kept."""

    path: Written = Field(description="Folder of the model.")


class Report(Section):
    """Where the report goes."""

    path: Written = Field(description="HTML file of the report.")
    owner: Told | None = Field(None, description="Who answers for the scores; told in report and model card.")
    intended_use: Told | None = Field(None, description="What the scores are for, and what they are not for.")
    licence: Told | None = Field(None, description="Under what terms model and scores may be used.")
    notes: Told | None = Field(None, description="Whatever else a reader should know; lines are kept.")


class CompareOutput(Section):
    """Where the comparison goes."""

    path: Written = Field(description="Folder for results.parquet, compare.md and compare.html.")


def _same_keys(tables: tuple[AttributeTable, ...], info: ValidationInfo) -> tuple[AttributeTable, ...]:
    """Refuse attribute tables whose key is not that of the scored table beside them."""
    if not tables:
        raise ValueError("is empty; name at least one attribute table")
    if len(tables) > MAX_TABLES:
        raise ValueError(f"names {len(tables)} tables, more than {MAX_TABLES}; join some of them beforehand")
    scored = info.data.get("scored")
    for place, table in enumerate(tables):
        _check_key(f"table {place}", table, scored)
    return tables


def _check_key(name: str, table: AttributeTable | LabelTable, scored: ScoredTable | None) -> None:
    if scored is not None and set(table.key) != set(scored.key):
        raise ValueError(
            f"{name} has the key {list(table.key)}, but the scored table has "
            f"{list(scored.key)}; use the same names"
        )


def _same_key(table: LabelTable | None, info: ValidationInfo) -> LabelTable | None:
    """Refuse labels whose key is not that of the scored table beside them, or that have no name there."""
    if table is None:
        return None
    scored = info.data.get("scored")
    _check_key("the table", table, scored)
    if scored is not None and scored.label is None:
        raise ValueError("is given, but scored.label is null; name the column that they have in the output")
    return table


Labels = Annotated[LabelTable | None, AfterValidator(_same_key)]


class CompareTask(Section):
    """One more pair of tables to compare the methods on."""

    name: TaskName = Field(description="Name of the task in the results.")
    scored: ScoredTable = Field(description="Its scored table.")
    attributes: Annotated[tuple[AttributeTable, ...], AsTuple, AfterValidator(_same_keys)] = Field(
        description="Its group attribute tables, joined on the key."
    )
    labels: Labels = Field(None, description="Its labels; null: a column of its scored table.")
    groups: Groups | None = Field(None, description="Its groups; null: those of the configuration.")


class Compare(Section):
    """What jobs/compare.py does."""

    task: TaskName = Field("task", description="Name in the results of the scored table above.")
    tasks: Annotated[tuple[CompareTask, ...], AsTuple] = Field(
        (), description="Further tasks; split, calibrator and evaluation are the same for all."
    )

    methods: Annotated[tuple[CompareMethod, ...], AsTuple] = Field(
        _PAPERS_METHODS,
        description="Methods to compare; the paper's, or also isotonic, platt, temperature and "
        "calibrated_multiaccuracy.",
    )
    partitions: int = Field(
        10, ge=1, le=1000, description="Re-drawn calibration and validation halves; the test split stays."
    )
    sweep: Literal["paper", "none"] = Field(
        "paper", description="The grids of the paper's appendix, or the calibrator section as it stands."
    )
    engine: Literal["auto", "synapseml", "lightgbm"] = Field(
        "auto",
        description="What trains the trees: SynapseML, or the official LightGBM in processes of the driver; "
        "auto is lightgbm, which is sooner: a comparison trains many small ensembles.",
    )
    output: CompareOutput | None = Field(None, description="Where the results go.")

    @field_validator("tasks")
    @classmethod
    def _own_names(cls, tasks: tuple[CompareTask, ...], info: ValidationInfo) -> tuple[CompareTask, ...]:
        if again := repeated([str(info.data.get("task")), *(task.name for task in tasks)]):
            raise ValueError(f"names the task {again[0]!r} twice; give each its own name")
        return tasks

    @field_validator("methods", mode="before")
    @classmethod
    def _one_word(cls, value: Any) -> Any:
        # The calibrator's word for the same method.
        if isinstance(value, (list, tuple)):
            return ["multiaccurate" if method == "multiaccuracy" else method for method in value]
        return value

    @field_validator("methods")
    @classmethod
    def _each_once(cls, methods: tuple[CompareMethod, ...]) -> tuple[CompareMethod, ...]:
        if not methods:
            raise ValueError("is empty; name at least one method")
        if len(set(methods)) < len(methods):
            raise ValueError("names a method twice; name each once")
        return methods


class Gate(Section):
    """What must hold for the output to be published."""

    max_mc_error: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Most held-out MC error after calibration; where none can be measured, it is "
        "not met. null: no limit.",
    )
    max_smece: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Most held-out smECE of the worst group after calibration. null: no limit.",
    )
    groups: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(
        {},
        description="Most held-out MC error of single groups after calibration, on every grid, by their "
        "names (region=north: 0.01); a group that is none, or that has too few rows, is not met.",
    )
    must_improve: bool = Field(
        True,
        description="The held-out MC error, and the MA error of the score itself, must not get worse beyond "
        "noise; where neither can be measured, only a calibrator that changes no score may be published.",
    )


class Config(Section):
    """The resolved configuration of a job."""

    scored: ScoredTable = Field(description="The large scored table.")
    attributes: Annotated[tuple[AttributeTable, ...], AsTuple, AfterValidator(_same_keys)] = Field(
        description="One or more group attribute tables, joined on the key."
    )
    labels: Labels = Field(
        None,
        description="A table of the labels, where they are no column of the scored table; they stand in the "
        "output by the name of scored.label. Scoring does not read them.",
    )
    groups: Groups = Field(Groups(), description="The groups.")
    features: Features | None = Field(
        None, description="What the trees may learn from; null: the groups alone."
    )
    split: Split = Field(Split(), description="The split by key hash.")
    calibrator: Calibrator = Field(Calibrator(), description="The calibrator.")
    cells: KeptCells | None = Field(
        None, description="Where the cells of each partition are kept; null: nowhere. Only calibrate does."
    )
    learn: Learn | None = Field(
        None, description="The partitions that calibrate learns from; null: the rows that it scores."
    )
    segments: Segments | None = Field(
        None,
        description="Parts of the rows that have a calibrator of their own; null: one calibrator for all.",
    )
    evaluation: Evaluation = Field(Evaluation(), description="What is measured.")
    output: Output | None = Field(None, description="Where the calibrated scores go.")
    model: Model | None = Field(None, description="Where the fitted calibrator is kept.")
    report: Report | None = Field(None, description="Where the report goes; null: no report.")
    compare: Compare = Field(Compare(), description="What jobs/compare.py does.")
    gate: Gate = Field(Gate(), description="What must hold for the output to be published.")
    drift: Drift = Field(Drift(), description="What jobs/audit.py compares its table with.")
    tracking: Tracking = Field(Tracking(), description="Where runs are tracked.")
    allow_empty: bool = Field(
        False,
        description="An empty input replaces the output by an empty one, instead of being refused; gate and "
        "limits of drift say nothing of no rows.",
    )
    max_rejected_share: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Refuse the run if more than this share of the rows, or of the labelled rows for their "
        "labels, is rejected. Null: 0.01, and 20 rows in any case. Rows that dedupe supersedes do not count.",
    )

    @model_validator(mode="before")
    @classmethod
    def _empty_sections_are_defaults(cls, data: Any) -> Any:
        # A section whose lines are all commented out reads as null in YAML.
        if isinstance(data, dict):
            return {k: v for k, v in data.items() if v is not None or k not in _DEFAULTED}
        return data

    @property
    def inputs(self) -> dict[str, InputTable]:
        """The tables that are read, by their places."""
        tables: dict[str, InputTable] = {"scored": self.scored}
        tables |= {f"attributes.{i}": table for i, table in enumerate(self.attributes)}
        return tables | ({"labels": self.labels} if self.labels else {})

    def to_plain(self) -> dict[str, Any]:
        """The configuration as JSON values; ``Config.model_validate`` of it gives an equal one."""
        return self.model_dump(mode="json")

    def redacted(self) -> dict[str, Any]:
        """:meth:`to_plain` with the secrets in URIs replaced by ``***``: for logs, manifest and report."""
        plain: dict[str, Any] = redact(self.to_plain())
        return plain

    def digest(self) -> str:
        """SHA-256, in hexadecimal, of the canonical JSON of :meth:`redacted`.

        A hash of what the manifest shows can be checked from the manifest, and tells nothing of a secret.
        """
        canonical = json.dumps(self.redacted(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def required(section: SomeSection | None, place: str) -> SomeSection:
    """An optional section that a job cannot do without, for type checkers and for direct use.

    ``load_config(…, needs=(place,))`` has refused its absence before, together with all other problems.

    Raises
    ------
    ConfigurationError
        If the section is absent.
    """
    if section is None:
        raise ConfigurationError(f"{place} is missing in the configuration, and this job needs it; add it")
    return section


_DEFAULTED = ("groups", "split", "calibrator", "evaluation", "compare", "gate", "drift", "tracking")
