"""The tables of a run by their schemas alone: what is there, where each group column comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from mcspark.config import Config, ScoredTable, Split
from mcspark.core.cells.groups import Family
from mcspark.data.rows.schema import (
    check_attribute_schema,
    check_label_schema,
    check_scored_schema,
    has_number,
    refuse_label_twice,
    resolve_columns,
)
from mcspark.data.tables import read_table, where
from mcspark.errors import ConfigurationError
from mcspark.pipelines.run import Run


@dataclass(frozen=True)
class Schemas:
    """The tables, and what of them is used; no row has been read.

    Parameters
    ----------
    raw : DataFrame
        The scored table.
    attributes : tuple of DataFrame
    labels : DataFrame or None
        The table of labels, where they have their own and are needed.
    from_scored : tuple of str
        Group columns of the scored table.
    from_tables : tuple of tuple of str
        Group columns of each attribute table.
    with_label : bool
        Whether labels are read.
    split : Split
        The split, by the hash where its column is not needed and not there.
    keep : tuple of str
        Columns of the scored table that go along: group columns, those of ``dedupe`` and ``split``.
    numeric : frozenset of str
        Group columns that must be numbers.
    """

    raw: DataFrame
    attributes: tuple[DataFrame, ...]
    labels: DataFrame | None
    from_scored: tuple[str, ...]
    from_tables: tuple[tuple[str, ...], ...]
    with_label: bool
    split: Split
    keep: tuple[str, ...]
    numeric: frozenset[str]


def read_schemas(
    run: Run, families: tuple[Family, ...], columns: Sequence[str], *, needs_label: bool
) -> Schemas:
    """Open the tables and check their columns and types.

    Parameters
    ----------
    run : Run
    families : tuple of Family
        Group definitions, or those of a fitted calibrator.
    columns : sequence of str
        Attribute columns that they read.
    needs_label : bool
        Whether the label column must be there; otherwise it is passed through where it is.

    Raises
    ------
    ContractError
        With everything that is wrong with a table.
    ConfigurationError
        If there are no groups, or labels are needed and not named.
    """
    config, scored = run.config, run.config.scored
    if not families and needs_label:  # a saved calibrator may change all rows alike
        raise ConfigurationError(f"{run.job} needs groups; name columns or predicates below groups")
    if needs_label and not scored.label:
        raise ConfigurationError(f"{run.job} needs labels; name their column by scored.label")
    given = [*_used(scored, with_label=True), *_extra(config, config.split), *columns]
    raw = read_table(run.spark, scored, given)
    attributes = tuple(read_table(run.spark, table, [*table.key, *columns]) for table in config.attributes)
    labels = _labels(run, raw, needed=needs_label)
    # Scoring passes a label through, and leaves out one that is no number.
    label = scored.label
    with_label = label is not None and (needs_label or _is_there(raw, scored, label))
    used = _used(scored, with_label)
    from_scored, from_tables = resolve_columns(columns, raw.columns, scored.key, attributes, scored.label)
    split = config.split
    if run.job != "calibrate":  # which alone knows of other partitions
        split = split.model_copy(update={"by": "hash"})
    if not needs_label and split.column not in raw.columns:
        split = split.model_copy(update={"column": None})  # nothing is learned: the hash will do
    wanted = dict.fromkeys([*from_scored, *_extra(config, split)])
    keep = tuple(name for name in wanted if name not in used)
    valued = [f.column for f in families if f.kind == "value"]
    check_scored_schema(
        raw, scored, source=where(scored), with_label=with_label and labels is None, keep=keep,
        valued=[n for n in valued if n in from_scored],
    )  # fmt: skip
    numeric = frozenset(f.column for f in families if f.kind in ("bins", "divide"))
    for frame, table, names in zip(attributes, config.attributes, from_tables, strict=True):
        check_attribute_schema(
            frame, table, source=where(table), needed=names,
            numeric=[n for n in names if n in numeric], valued=[n for n in valued if n in names],
            scored_schema=raw.schema,
        )  # fmt: skip
    return Schemas(raw, attributes, labels, from_scored, from_tables, with_label, split, keep, numeric)


def _labels(run: Run, raw: DataFrame, *, needed: bool) -> DataFrame | None:
    """The table of labels; a job that learns nothing opens none, and takes no other column for the label."""
    scored, table = run.config.scored, run.config.labels
    if table is None:
        return None
    refuse_label_twice(raw.schema, str(scored.label), source=where(scored))
    if not needed:
        return None
    frame = read_table(run.spark, table, [*table.key, table.label])
    check_label_schema(frame, table, source=where(table), scored_schema=raw.schema)
    return frame


def _is_there(raw: DataFrame, scored: ScoredTable, label: str) -> bool:
    if scored.classes is not None:
        return label in raw.columns
    return has_number(raw.schema, label, scored.format)


def _used(scored: ScoredTable, with_label: bool) -> list[str]:
    names = [*scored.key, *scored.all_scores, scored.label if with_label else None, scored.weight]
    return [name for name in names if name]


def _extra(config: Config, split: Split) -> list[str]:
    latest = config.scored.dedupe.latest_by if config.scored.dedupe else None
    return [name for name in (latest, split.column) if name]
