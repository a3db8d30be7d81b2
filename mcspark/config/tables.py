"""The tables of a run: scored, attributes, output."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from mcspark.config.csv_text import CsvText
from mcspark.config.section import Column, Columns, KeysAsText, Path, Section, TableName, Written, repeated
from mcspark.identifiers import MAX_NAME, check_identifier, check_partition_value, folded

CALIBRATED_PREFIX = "calibrated_"

ADDED_COLUMNS = (f"{CALIBRATED_PREFIX}score", "split")
"""The columns that a job adds to the key, score, label and weight of its output."""

TOP_CLASS = "(top class)"
"""What the largest of a row's scores of classes is called among them."""

MAX_SCORES = 50
"""Most scores that are calibrated in one run."""

OF_REJECTED = ("reasons", "source")
"""The columns that stand beside the key in the table of rejected rows."""

InputFormat = Literal["parquet", "csv", "delta", "iceberg", "table"]
OutputFormat = Literal["parquet", "delta", "iceberg", "table"]
_TABLE_FORMATS = ("table", "delta", "iceberg")


def _as_partition(value: Any) -> Any:
    # A whole number has one spelling; other values that are not text have lost how they were written.
    if isinstance(value, dict):
        return {k: "" if v is None else str(v) if type(v) is int else v for k, v in value.items()}
    return value


def _check_partition(partition: dict[str, str]) -> dict[str, str]:
    if not partition:
        raise ValueError("is empty; give key: value, or null for the whole table")
    if wrong := [words for key, value in partition.items() if (words := _wrong_with(key, value))]:
        raise ValueError("; ".join(wrong))
    return partition


def _wrong_with(key: str, value: str) -> str | None:
    try:
        check_partition_value(check_identifier(key), value)
    except ValueError as error:
        return str(error)
    return None


Partition = Annotated[dict[str, str], AfterValidator(_check_partition)]


class Location(Section):
    """Where a table is: a path, or a name in a catalog; subclasses say which formats they know."""

    path: Path | None = Field(None, description="Folder or file; any scheme Spark knows (s3a:// hdfs:// …).")
    table: TableName | None = Field(None, description="Catalog table, catalog.schema.name; instead of path.")

    @model_validator(mode="before")
    @classmethod
    def _table_by_name(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "format" in data:
            return data
        if data.get("table") is not None and data.get("path") is None:
            return {**data, "format": "table"}
        return data

    @field_validator("table")
    @classmethod
    def _path_or_table(cls, table: str | None, info: ValidationInfo) -> str | None:
        if "path" in info.data and (info.data["path"] is None) == (table is None):
            wrong = "missing" if table is None else "given"
            raise ValueError(f"path and table are both {wrong}; give one of them")
        return table

    @field_validator("format", check_fields=False)
    @classmethod
    def _format_fits(cls, name: str, info: ValidationInfo) -> str:
        if info.data.get("table") is not None and name not in _TABLE_FORMATS:
            raise ValueError("does not go with table; leave format out, or write table, delta or iceberg")
        if info.data.get("path") is not None and name == "table":
            raise ValueError("'table' does not go with path; name the table by table: catalog.schema.name")
        return name


class Partitioned(Location):
    """A table of which one partition may be meant."""

    partition: Partition | None = Field(
        None, description="One partition, as key: value with text values; null for the whole table."
    )

    @field_validator("partition", mode="before")
    @classmethod
    def _whole_numbers_as_text(cls, value: Any) -> Any:
        return _as_partition(value)


class Source(Location):
    """A table that is read."""

    csv: CsvText | None = Field(
        None,
        description="How the text of CSV files is cut into values, with format: csv; null: by "
        "defaults. A value may hold line breaks, so one task reads a whole file: write large tables as many. "
        "Where lines end by CR LF, those inside quotes are read as LF.",
    )

    @model_validator(mode="before")
    @classmethod
    def _csv_of_a_csv(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("csv") and data.get("format", "parquet") != "csv":
            raise ValueError("has a section csv, but another format; write format: csv, or leave csv out")
        return data


class Dedupe(Section):
    """How to mend repeated keys instead of refusing them."""

    latest_by: Column = Field(description="Of rows with one key, keep the one with the greatest value here.")


class ScoredTable(Partitioned, Source):
    """The large scored table."""

    format: InputFormat = Field("parquet", description="Format of the table.")
    key: Columns = Field(description="Columns that together name a row once.")
    score: Column = Field("score", description="Score f0(x), a number in [0, 1].")
    scores: Columns | None = Field(
        None,
        description="Several models' scores, in place of score: each has a calibrator of its own, and in the "
        "output a column calibrated_<score>. A row needs all of them.",
    )
    classes: Annotated[dict[str, Column], KeysAsText] | None = Field(
        None,
        description="Of each class, as the label names it, the column of its score, in place of score: the "
        "scores are calibrated class by class and projected to sum to 1, as calibrated_<score>.",
    )
    label: Column | None = Field(
        "label",
        description="Label y in [0, 1], or with classes the class; null: scored, not learned from.",
    )
    weight: Column | None = Field(None, description="Survey or importance weight, not negative; 1 if absent.")
    dedupe: Dedupe | None = Field(None, description="Mend repeated keys; null refuses them.")

    @field_validator("key")
    @classmethod
    def _key_kept_apart(cls, key: tuple[str, ...]) -> tuple[str, ...]:
        if taken := [k for k in key if folded(k) in ADDED_COLUMNS]:
            raise ValueError(f"names {taken[0]!r}, a column that the output adds; rename it in the table")
        return key

    @model_validator(mode="before")
    @classmethod
    def _one_score_or_several(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        given = [name for name in ("scores", "classes") if data.get(name) is not None]
        # Its default stands in every configuration that is written out.
        given += ["score"] if given and data.get("score", "score") != "score" else []
        if len(given) > 1:
            raise ValueError(f"has {' and '.join(sorted(given))}; name the scores in one of them")
        return data

    @field_validator("classes")
    @classmethod
    def _each_class_has_a_score(cls, classes: dict[str, str] | None) -> dict[str, str] | None:
        if classes is None:
            return None
        if len(classes) < 2:
            raise ValueError("names fewer than two classes; name all of them, or one score by score")
        if again := repeated(classes.values()):
            raise ValueError(f"names the column {again[0]!r} twice; name a column for each class")
        if TOP_CLASS in classes.values():
            raise ValueError(f"names the column {TOP_CLASS!r}, as the largest score is called; rename it")
        cls._scores_have_room(tuple(classes.values()))
        return classes

    @field_validator("scores")
    @classmethod
    def _scores_have_room(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if names and len(names) > MAX_SCORES:
            raise ValueError(
                f"names {len(names)} scores, more than {MAX_SCORES}; calibrate them in several runs"
            )
        if long := [name for name in names or () if len(calibrated_name(name)) > MAX_NAME]:
            raise ValueError(
                f"names {long[0]!r}, too long for a column {CALIBRATED_PREFIX}<score>; shorten it"
            )
        return names

    @property
    def all_scores(self) -> tuple[str, ...]:
        """The columns of the scores."""
        return self.scores or tuple((self.classes or {}).values()) or (self.score,)

    @property
    def scores_key(self) -> Literal["score", "scores", "classes"]:
        """The key that names the scores."""
        return "scores" if self.scores is not None else "classes" if self.classes is not None else "score"

    @property
    def several(self) -> bool:
        """Whether scores are named as several, or as those of classes."""
        return self.scores_key != "score"

    @property
    def added(self) -> tuple[str, ...]:
        """Columns of the output for the calibrated scores."""
        return tuple(map(calibrated_name, self.all_scores)) if self.several else ADDED_COLUMNS[:1]

    @field_validator("score", "scores", "classes", "label", "weight")
    @classmethod
    def _one_role_a_column(cls, given: Any, info: ValidationInfo) -> Any:
        is_score = info.field_name in ("score", "scores", "classes")
        of_score = next((name for name in ("scores", "classes") if info.data.get(name)), "score")
        roles = ("key",) if is_score else ("key", of_score, "label")
        for column in _listed(given):
            for role in roles:
                if any(folded(name) == folded(column) for name in _listed(info.data.get(role))):
                    raise ValueError(
                        f"is the column {column!r}, which is already {role}; name another column"
                    )
            if not is_score and folded(column) in ADDED_COLUMNS:
                raise ValueError(f"is {column!r}, a column that the output adds; rename it in the table")
        return given


def _listed(names: str | tuple[str, ...] | dict[str, str] | None) -> tuple[str, ...]:
    if isinstance(names, dict):
        return tuple(names.values())
    return names if isinstance(names, tuple) else (names,) if names is not None else ()


def calibrated_name(score: str) -> str:
    """Column of the output for one of several scores."""
    return f"{CALIBRATED_PREFIX}{score}"


class AttributeTable(Source):
    """A table of group attributes, joined on the key."""

    format: InputFormat = Field("parquet", description="Format of the table.")
    key: Columns = Field(description="The key of the scored table, by the same names in any order.")
    on_unmatched: Literal["unknown", "reject", "fail"] = Field(
        "unknown",
        description="A scored row without attributes: a member of no group, rejected, or the run refused.",
    )


class LabelTable(Partitioned, Source):
    """A table of labels, joined on the key: they come later than the scores, and may be set right."""

    format: InputFormat = Field("parquet", description="Format of the table.")
    key: Columns = Field(description="The key of the scored table, by the same names in any order.")
    label: Column = Field("label", description="Its column of labels y in [0, 1]; null: none yet.")


InputTable = ScoredTable | AttributeTable | LabelTable
"""Whatever a job reads."""


class Output(Partitioned):
    """Where the calibrated scores go."""

    path: Written | None = Field(None, description="Folder; any scheme Spark knows (s3a:// hdfs:// …).")
    format: OutputFormat = Field("parquet", description="Format of the output.")
    replace_all: bool = Field(
        False,
        description="Without partition: let the new table take the place of one that has partitions, all of "
        "which are deleted; false refuses that.",
    )
    candidate: bool = Field(
        False,
        description="Write to <path>_candidate: the published output stays, for a look before it changes. "
        "Model and report are replaced all the same; name others to keep those.",
    )
