"""From tables to rows that may be trusted: contract, unique keys, checked join, categories, split."""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mcspark.config import Config, ScoredTable, Split
from mcspark.config.tables import InputTable
from mcspark.core.cells.groups import Family
from mcspark.data.formats.csv_reader import as_numbers
from mcspark.data.rows.contract import (
    accepted,
    apply_row_rules,
)
from mcspark.data.rows.csv_faults import faults_told
from mcspark.data.rows.join import (
    UNMATCHED,
    join_attributes,
)
from mcspark.data.rows.keys import check_unique, key_census, supersede
from mcspark.data.rows.labels import no_label_told, with_labels
from mcspark.data.rows.row_report import enforce, inspect
from mcspark.data.tables import where
from mcspark.errors import ContractError
from mcspark.ml.cells.groups import with_categories
from mcspark.ml.cells.signatures import category_name
from mcspark.ml.cells.working import WORKING
from mcspark.ml.split import check_given_split, role
from mcspark.pipelines.reading.rows import Inputs, working_scores
from mcspark.pipelines.reading.schemas import read_schemas
from mcspark.pipelines.run import Run
from mcspark.runtime.columns import column, with_columns

log = structlog.get_logger(__name__)


def read_inputs(
    run: Run,
    families: tuple[Family, ...],
    columns: Sequence[str],
    *,
    needs_label: bool,
    labels_due: bool = True,
) -> Inputs:
    """Read, check and join the tables of a run; the join itself has not run yet.

    Parameters
    ----------
    run : Run
    families : tuple of Family
        Group definitions, or those of a fitted calibrator.
    columns : sequence of str
        Attribute columns that they read.
    needs_label : bool
        Whether the label column must be there; otherwise it is passed through where it is.
    labels_due : bool
        Whether a table of labels must have one for some row.

    Raises
    ------
    ContractError
        Whatever breaks the contract of the input.
    """
    config, scored = run.config, run.config.scored
    with run.stage("read", "read the schemas"):
        tables = read_schemas(run, families, columns, needs_label=needs_label)
    with_label, split, from_tables = tables.with_label, tables.split, tables.from_tables
    numeric = [[n for n in names if n in tables.numeric] for names in (tables.keep, *from_tables)]
    sources: list[InputTable] = [scored, *config.attributes]
    raw, *attributes = (
        as_numbers(frame, names, table.format)
        for frame, names, table in zip((tables.raw, *tables.attributes), numeric, sources, strict=True)
    )
    read = list(zip(sources, numeric, strict=True))
    labels = None if tables.labels is None or config.labels is None else (tables.labels, config.labels)
    if labels:
        read.append((labels[1], []))
        with run.stage("labels", "join the labels"), faults_told(run.spark, read):
            raw = with_labels(raw, scored.key, *labels, str(scored.label))
    source = where(scored)
    ruled = apply_row_rules(raw, scored, with_label=with_label, judge_label=needs_label, keep=tables.keep)
    if scored.dedupe:
        ruled = supersede(ruled, scored.key, scored.dedupe.latest_by)
    checked = faults_told(run.spark, read)
    with run.stage("check", "check the rows and the keys") as counts, checked:
        report = inspect(ruled, scored, with_label=with_label)
        counts.update(rows=report.rows, rejected=report.rejected)
        enforce(
            report, ruled, scored, source=source,
            max_rejected_share=config.max_rejected_share, allow_empty=config.allow_empty,
        )  # fmt: skip
        if report.reasons:
            log.warning("rows rejected", table=source, **report.reasons)
        if labels and labels_due and report.accepted and not report.labelled:
            raise ContractError(no_label_told(raw, labels[0], scored.key, labels[1]))
        absent = _check_keys(config, accepted(ruled), attributes)
        if with_label and split.column:
            check_given_split(accepted(ruled), str(scored.label), split.column, source=source)
    clean = accepted(ruled)
    joined = join_attributes(
        clean, scored.key, list(zip(attributes, config.attributes, strict=True)), from_tables
    )
    frame = _members_alone(with_categories(joined, families), families, from_tables)
    frame = frame.select(
        *[column(k) for k in scored.key],
        *[value.alias(name) for name, value in _working(scored, split, with_label=with_label).items()],
        *[column(category_name(i)) for i in range(len(families))],
        column(UNMATCHED),
    )
    return Inputs(
        frame, ruled, report, scored, tuple(config.attributes), source, with_label,
        origins=(clean, *attributes), absent=absent, families=_owners(families, from_tables),
        max_rejected_share=config.max_rejected_share, allow_empty=config.allow_empty,
    )  # fmt: skip


def _owners(
    families: tuple[Family, ...], from_tables: Sequence[Sequence[str]]
) -> tuple[tuple[str, str, int], ...]:
    """See :class:`Inputs`."""
    bits = {name.casefold(): 1 << t for t, names in enumerate(from_tables) for name in names}
    return tuple(
        (family.column, category_name(i), bits.get(family.column.casefold(), 0))
        for i, family in enumerate(families)
        if family.kind != "predicate"
    )


def _members_alone(
    frame: DataFrame, families: tuple[Family, ...], from_tables: Sequence[Sequence[str]]
) -> DataFrame:
    """A row that a table lacks is in no group that reads this table, not even in that of a null."""
    members = {}
    for i, family in enumerate(families):
        read = {name.casefold() for name in family.columns} if family.where else set()
        owners = [t for t, names in enumerate(from_tables) if read & {name.casefold() for name in names}]
        if owners:
            lacks = column(UNMATCHED).bitwiseAND(sum(1 << t for t in owners)) != 0
            category = column(category_name(i))
            members[category_name(i)] = F.when(lacks, F.lit(0).cast("long")).otherwise(category)
    return with_columns(frame, members)


def _check_keys(config: Config, clean: DataFrame, attributes: Sequence[DataFrame]) -> tuple[int | None, ...]:
    """Refuse repeated keys; returns the rows that each attribute table lacks, as far as hashes tell."""
    key = config.scored.key
    census = key_census([clean, *attributes], key)
    mends = ["keep one row a key, or set scored.dedupe: {latest_by: column}"]
    mends += ["keep one row a key"] * len(attributes)
    sources = [where(config.scored), *map(where, config.attributes)]
    for suspicious, frame, source, mend in zip(
        census.repeated, [clean, *attributes], sources, mends, strict=True
    ):
        if suspicious:
            check_unique(frame, key, source=source, mend=mend)
    for table, unused in zip(config.attributes, census.unused, strict=True):
        if unused:
            log.info("attributes without scores are not used", table=where(table), rows=unused)
    return census.absent


def _working(scored: ScoredTable, split: Split, *, with_label: bool) -> dict[str, Column]:
    columns = {score.column: column(score.name) for score in working_scores(scored)}
    if with_label:
        label = column(str(scored.label))
        columns[WORKING.label] = label
        columns[str(WORKING.split)] = role(scored.key, label, split)
    if scored.weight:
        columns[str(WORKING.weight)] = column(scored.weight)
    return columns
