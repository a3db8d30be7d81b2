"""The rows of a run: what is accepted of them, joined, with their scores and the columns of the output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import structlog
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mcspark.config import AttributeTable, ScoredTable
from mcspark.core.cells.cells import Role
from mcspark.data.rows.contract import (
    FAULTS,
    class_of,
    rejected,
)
from mcspark.data.rows.join import (
    joined_counts,
    mark_unmatched,
    refuse_no_match,
    refuse_unmatched,
)
from mcspark.data.rows.row_report import RowReport, refuse_rejected
from mcspark.ml.cells.fixed_point import FixedPoint
from mcspark.ml.cells.groups import most_by_column
from mcspark.ml.cells.working import WORKING
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.ml.scoring import Scored, with_each_calibrated
from mcspark.ml.split import SPLIT
from mcspark.runtime.columns import column

log = structlog.get_logger(__name__)

CALIBRATED = "__calibrated"
"""Working column of the calibrated score."""


class WorkingScore(NamedTuple):
    """A score by its columns.

    Parameters
    ----------
    name : str
        In the scored table and in the output.
    column, calibrated : str
        Working columns of the score, and of the calibrated one.
    added : str
        The calibrated one in the output.
    """

    name: str
    column: str
    calibrated: str
    added: str


def working_scores(scored: ScoredTable) -> tuple[WorkingScore, ...]:
    """The scores of a table by their columns."""
    every = scored.all_scores
    ends = [f"_{number}" for number in range(len(every))] if scored.several else [""]
    return tuple(
        WorkingScore(name, f"{WORKING.score}{end}", f"{CALIBRATED}{end}", added)
        for name, added, end in zip(every, scored.added, ends, strict=True)
    )


@dataclass(frozen=True)
class Inputs:
    """The accepted rows, joined, and what is known about the others.

    Parameters
    ----------
    frame : DataFrame
        Key columns, the working scores, label, weight and split where present, the category columns of the
        families, and the mark of unmatched rows.
    ruled : DataFrame
        Every scored row with its faults.
    report : RowReport
    scored : ScoredTable
    tables : tuple of AttributeTable
    source : str
        Name of the scored table.
    with_label : bool
    origins : tuple of DataFrame
        The accepted rows and the attribute tables, each by itself.
    absent : tuple of int or None
        Rows that each attribute table lacks, as the hashes of the keys say; None where they do not compare.
    families : tuple of (str, str, int)
        Attribute column of each family that is no predicate, its category column, and the bit of the table
        that the attribute comes from; no bit for the scored table.
    kept : bool
        Whether the frame is on disk, so that looking at it again costs little.
    max_rejected_share, allow_empty
        Of the configuration.
    alone : bool
        Whether these are the rows with one of several scores.
    """

    frame: DataFrame
    ruled: DataFrame
    report: RowReport
    scored: ScoredTable
    tables: tuple[AttributeTable, ...]
    source: str
    with_label: bool
    origins: tuple[DataFrame, ...] = ()
    absent: tuple[int | None, ...] = ()
    families: tuple[tuple[str, str, int], ...] = ()
    kept: bool = False
    max_rejected_share: float | None = None
    allow_empty: bool = False
    alone: bool = False

    @property
    def weight(self) -> str | None:
        """Working weight column."""
        return WORKING.weight if self.scored.weight else None

    @cached_property
    def _counted(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Counts of the joined rows; None where the hashes of the keys say enough, and nothing is read."""
        by_hash = [n for n in self.absent if n is not None]
        # Where a row is rejected for it, or the run refused, the joined rows themselves are counted.
        told_apart = any(t.on_unmatched != "unknown" for t in self.tables)
        if not (self.kept or told_apart or len(by_hash) < len(self.tables)):
            return None
        rejecting = sum(1 << i for i, t in enumerate(self.tables) if t.on_unmatched == "reject")
        categories = [(category, table | rejecting) for _, category, table in self.families]
        return joined_counts(self.frame, len(self.tables), categories)

    @property
    def unmatched(self) -> tuple[int, ...]:
        """Rows that each attribute table lacks."""
        return tuple(n for n in self.absent if n is not None) if self._counted is None else self._counted[0]

    @property
    def without_category(self) -> dict[str, int] | None:
        """Rows to score by group column in none of whose categories they are, though the table has them.

        The attribute is null, or in no bin. None where the joined rows are not counted.
        """
        if self._counted is None:
            return None
        return most_by_column([name for name, _, _ in self.families], self._counted[1])

    @cached_property
    def scale(self) -> FixedPoint:
        """Scale of the sums over the labelled rows."""
        if self._rejected_unmatched[1]:  # what they weighed says nothing about the rows that are left
            return FixedPoint.of(self.labelled, self.weight)
        return FixedPoint.for_totals(self.report.weight, self.report.weight_sq)

    def refuse_unmatched(self) -> None:
        """Refuse the run if a table with ``on_unmatched: fail`` lacks a row, or others lack too many."""
        refuse_unmatched(self.frame, self.scored.key, self.tables, self.unmatched)
        if self.without_category:
            log.info("rows without a category are in no group of the column", columns=self.without_category)
        clean, *origins = self.origins
        judged = {"unknown"} if self.allow_empty else {"unknown", "reject"}
        every = zip(self.tables, origins, self.unmatched, strict=True)
        left = [known for known in every if known[0].on_unmatched in judged]
        refuse_no_match(clean, left, self.scored.key, self.report.accepted)
        if self.rejected_unmatched:
            reasons = {**self.report.reasons, "unmatched": self.rejected_unmatched}
            report = replace(self.report, accepted=self.n_accepted, reasons=reasons)
            refuse_rejected(
                report, source=self.source,
                max_rejected_share=self.max_rejected_share, allow_empty=self.allow_empty,
            )  # fmt: skip

    @property
    def rejects_unmatched(self) -> bool:
        """Whether a row without attributes is rejected."""
        return any(t.on_unmatched == "reject" for t in self.tables)

    @property
    def accepted(self) -> DataFrame:
        """The rows to score."""
        if not self.rejects_unmatched:
            return self.frame
        return mark_unmatched(self.frame, self.tables).where(column(FAULTS) == 0).drop(FAULTS)

    @property
    def labelled(self) -> DataFrame:
        """The rows to learn from and to measure on."""
        return self.accepted.where(column(WORKING.label).isNotNull())

    @cached_property
    def _rejected_unmatched(self) -> tuple[int, int]:
        """Rows rejected for want of attributes, and how many of them have a label; one job."""
        if not self.rejects_unmatched:
            return 0, 0
        lacking = mark_unmatched(self.frame, self.tables).where(column(FAULTS) != 0)
        labelled = F.count(column(WORKING.label)) if self.with_label else F.lit(0)
        row = lacking.agg(F.count(F.lit(1)), labelled).first()
        assert row is not None  # an aggregate without keys has one row
        return int(row[0]), int(row[1])

    @property
    def rejected_unmatched(self) -> int:
        """Rows rejected for want of attributes."""
        return self._rejected_unmatched[0]

    @property
    def n_labelled(self) -> int:
        """Rows to score that have a label."""
        return self.report.labelled - self._rejected_unmatched[1]

    @property
    def n_accepted(self) -> int:
        """Rows to score."""
        return self.report.accepted - self.rejected_unmatched

    @property
    def n_rejected(self) -> int:
        """Rows with a reason not to be scored."""
        return self.report.rejected + self.rejected_unmatched

    @property
    def rejected(self) -> DataFrame:
        """Key, reasons and source of every rejected row."""
        rows = rejected(self.ruled, self.scored.key, self.source)
        if not self.n_rejected:
            return rows.limit(0)  # which Spark answers without reading a row
        if self.rejected_unmatched:
            marked = mark_unmatched(self.frame, self.tables)
            rows = rows.unionByName(rejected(marked, self.scored.key, self.source))
        return rows

    @property
    def scores(self) -> tuple[WorkingScore, ...]:
        """The scores by their columns."""
        return working_scores(self.scored)

    def of_role(self, role: Role) -> Inputs:
        """The rows of one part of the split."""
        return replace(self, frame=self.frame.where(column(str(WORKING.split)) == F.lit(role.name)))

    def by_score(self) -> tuple[Inputs, ...]:
        """The same rows with each score by itself, as if there were no other.

        A score of a class has the label 1 where the row is of its class, and 0 where it is of another.
        """
        return tuple(self._of(one) for one in self.scores) if self.scored.several else (self,)

    @contextmanager
    def read_again(self) -> Iterator[Inputs]:
        """The same rows; if there are several scores, joined once, and on disk as long as the block lasts."""
        if len(self.scores) == 1:
            yield self
            return
        frame = self.frame.persist(StorageLevel.DISK_ONLY)
        try:
            yield replace(self, frame=frame)
        finally:
            frame.unpersist()

    @contextmanager
    def logged(self) -> Iterator[None]:
        """Name the score in the log, where it is one of several."""
        names = {"score": self.scored.score} if self.alone else {}
        with structlog.contextvars.bound_contextvars(**names):
            yield

    def _of(self, score: WorkingScore) -> Inputs:
        others = [
            name for other in self.scores if other != score for name in (other.column, other.calibrated)
        ]
        frame = self.frame.drop(*others).withColumnRenamed(score.column, WORKING.score)
        frame = frame.withColumnRenamed(score.calibrated, CALIBRATED)
        classes = {name: one for one, name in (self.scored.classes or {}).items()}
        if score.name in classes and self.with_label:
            given = class_of(WORKING.label, frame.schema)
            is_it = (given == F.lit(classes[score.name])).cast("double")
            frame = frame.withColumn(WORKING.label, F.when(given.isNotNull(), is_it))
        alone = self.scored.model_copy(update={"score": score.name, "scores": None, "classes": None})
        return replace(self, frame=frame, scored=alone, alone=True)

    def with_frame(self, frame: DataFrame) -> Inputs:
        """The same rows read back from where they were written."""
        return replace(self, frame=frame, kept=True)

    def ordered(self) -> Inputs:
        """The same rows, those of each task by their key: what arrived in any order is written in this one.

        A merge join leaves them so, and then nothing is sorted.
        """
        key = [column(k) for k in self.scored.key]
        return replace(self, frame=self.frame.sortWithinPartitions(*key))

    def rows(self) -> dict[str, int]:
        """Counts of the summary line."""
        return {
            "in": self.report.rows,
            "scored": self.n_accepted,
            "rejected": self.n_rejected,
            "labelled": self.n_labelled,
        }


def calibrated_rows(
    inputs: Inputs, models: Sequence[MulticalibratorModel], *, projected: bool = False
) -> DataFrame:
    """The rows to score with the calibrated scores of their working columns, one model a score.

    ``projected`` scores of classes sum to 1.
    """
    scored = [
        Scored(score.column, model.scoring, score.calibrated)
        for score, model in zip(inputs.scores, models, strict=True)
    ]
    return with_each_calibrated(inputs.accepted, scored, projected=projected)


def output_columns(inputs: Inputs) -> list[Column]:
    """Columns of the output: key, scores, label and weight where present, calibrated scores, split."""
    scored = inputs.scored
    split = column(str(WORKING.split)) if inputs.with_label else F.lit(None).cast("string")
    columns = [column(k) for k in scored.key]
    columns += [column(score.column).alias(score.name) for score in inputs.scores]
    if inputs.with_label:
        columns.append(column(WORKING.label).alias(str(scored.label)))
    if scored.weight:
        columns.append(column(str(WORKING.weight)).alias(scored.weight))
    columns += [column(score.calibrated).alias(score.added) for score in inputs.scores]
    return [*columns, split.alias(SPLIT)]
