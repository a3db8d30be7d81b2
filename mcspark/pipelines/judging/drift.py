"""What has changed since an earlier run: the distribution of the score, the groups, the MC error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any
from uuid import uuid4

import pandas as pd
from pyspark.sql import SparkSession

from mcspark.config import Drift, redact_uri
from mcspark.config.secrets import HIDDEN
from mcspark.core.saved import RUN_FILE
from mcspark.data.formats.lake import PROVIDERS, by_path
from mcspark.data.leases.lease import settled
from mcspark.data.leases.manifest import read_manifest
from mcspark.data.tables import unreadable_is_refused
from mcspark.engine.literal import literal_reader
from mcspark.errors import ContractError
from mcspark.identifiers import check_run_id, quote_table
from mcspark.report.metrics_table import BEFORE, MetricsTable, of_score
from mcspark.runtime.columns import column
from mcspark.runtime.files.files import Files
from mcspark.runtime.files.untrusted import read_json

_KOLMOGOROV = 1.358
_NORMAL = 1.960
_LIMIT = 100_000


@dataclass(frozen=True)
class ErrorChange:
    """The MC error on one grid, then and now, with the ends of its intervals where they were measured."""

    then: float
    now: float
    then_interval: tuple[float | None, float | None]
    now_interval: tuple[float | None, float | None]
    worse: bool


@dataclass(frozen=True)
class Change:
    """What has changed; None where the two runs cannot be compared.

    Parameters
    ----------
    against : str
        Id of the earlier run.
    score_distance, score_noise : float or None
        Largest difference between the distribution functions of the scores at the level edges, and what
        chance explains of it (95 %).
    share_change, share_noise : float or None
        Largest change of a group's share, and what chance explains of that group's.
    share_group : str or None
        The group.
    share_then, share_now : float or None
        Its shares.
    stage : str
        Which score of the earlier run: ``before`` or ``after``.
    mc_error : mapping of int to ErrorChange
        By grid that both runs have measured, and that is blind to neither score.
    """

    against: str
    score_distance: float | None
    score_noise: float | None
    share_change: float | None
    share_noise: float | None
    share_group: str | None
    share_then: float | None
    share_now: float | None
    stage: str
    mc_error: Mapping[int, ErrorChange]

    def summary(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "mc_error": {str(m): asdict(change) for m, change in self.mc_error.items()}}


def change_since(now: MetricsTable, then: MetricsTable, against: str, stage: str) -> Change:
    """Compare the score that was audited with a score of an earlier run.

    Parameters
    ----------
    now, then : MetricsTable
    against : str
        Id of the earlier run.
    stage : str
        ``before`` or ``after``: the earlier run's score.
    """
    rows = [table.value(s, "rows") or 0.0 for table, s in ((now, BEFORE), (then, stage))]
    spread = math.sqrt(sum(1 / n for n in rows)) if all(rows) else None
    distance = _score_distance(now, then, stage) if spread is not None else None
    group, *shares = _share_change(now, then, stage) if spread is not None else (None, None, None)
    share_then, share_now = shares
    change = None if share_then is None or share_now is None else abs(share_now - share_then)
    share = 0.0 if share_then is None or share_now is None else (share_now + share_then) / 2
    return Change(
        against=against,
        score_distance=distance,
        score_noise=None if distance is None or spread is None else _KOLMOGOROV * spread,
        share_change=change,
        share_noise=None if change is None or spread is None
        else _NORMAL * math.sqrt(share * (1 - share)) * spread,
        share_group=group,
        share_then=share_then,
        share_now=share_now,
        stage=stage,
        mc_error=_error_changes(now, then, stage),
    )  # fmt: skip


def _score_distance(now: MetricsTable, then: MetricsTable, stage: str) -> float | None:
    new, old = now.level_shares(BEFORE), then.level_shares(stage)
    # Where both scores fill the same level, their distributions look alike whatever they are.
    alike = {m for m, _ in now.blind(BEFORE).items() & then.blind(stage).items()}
    common = (set(new) & set(old)) - alike
    if not common:
        return None
    # Runs that lead with one grid are compared on it; else the finest that both know tells the most.
    grid = now.grid if now.grid == then.grid and now.grid in common else max(common)
    both = pd.concat([new[grid], old[grid]], axis=1).reindex(range(grid)).fillna(0.0).to_numpy()
    return float(abs((both[:, 0] - both[:, 1]).cumsum()).max())


def _share_change(
    now: MetricsTable, then: MetricsTable, stage: str
) -> tuple[str | None, float | None, float | None]:
    """The group that changed most, and its share then and now."""
    shares = [t.by_group(s, "share") for t, s in ((now, BEFORE), (then, stage))]
    both = pd.concat(shares, axis=1, keys=["now", "then"]).fillna(0.0)
    if both.empty:
        return None, None, None
    group = str((both["now"] - both["then"]).abs().idxmax())
    return group, float(both["then"][group]), float(both["now"][group])


def _error_changes(now: MetricsTable, then: MetricsTable, stage: str) -> dict[int, ErrorChange]:
    changes = {}
    blind = {*now.blind(BEFORE), *then.blind(stage)}
    for m in (m for m in now.grids if m in then.grids and m not in blind):
        new, old = now.value(BEFORE, "mc_error", m), then.value(stage, "mc_error", m)
        if new is None or old is None:
            continue
        new_ends, old_ends = _interval(now, BEFORE, m), _interval(then, stage, m)
        least_now = new if new_ends[0] is None else new_ends[0]
        most_then = old if old_ends[1] is None else old_ends[1]
        worse = new > old and least_now > most_then
        changes[m] = ErrorChange(old, new, old_ends, new_ends, worse)
    return changes


def _interval(table: MetricsTable, stage: str, m: int) -> tuple[float | None, float | None]:
    return table.value(stage, "mc_error_low", m), table.value(stage, "mc_error_high", m)


def too_far(limits: Drift, change: Change) -> list[str]:
    """Which limits the change exceeds, in words."""
    problems = []
    distance, share = change.score_distance, change.share_change
    if limits.max_score_distance is not None and distance is None:
        problems.append(
            _unmeasured(
                "max_score_distance",
                "both runs need held-out rows and one grid that sees their scores (see evaluation.levels)",
            )
        )
    elif distance is not None and distance > _limit(limits.max_score_distance):
        problems.append(
            f"the scores are distributed otherwise: distance {distance:.4f}, allowed "
            f"{limits.max_score_distance:g} (chance explains {change.score_noise:.4f})"
        )
    if limits.max_share_change is not None and share is None:
        problems.append(_unmeasured("max_share_change", "both runs need held-out rows and a group"))
    elif share is not None and share > _limit(limits.max_share_change):
        problems.append(
            f"the share of {change.share_group} has changed by {share:.4f}, allowed "
            f"{limits.max_share_change:g} (chance explains {change.share_noise:.4f})"
        )
    if limits.mc_error_must_hold:
        if not change.mc_error:
            problems.append(
                _unmeasured(
                    "mc_error_must_hold",
                    "both runs need an MC error on one grid that sees their scores (see evaluation.levels)",
                )
            )
        problems += [
            f"the MC error at {m} levels is {e.now:.5f} and was {e.then:.5f}, beyond the intervals of both"
            for m, e in change.mc_error.items()
            if e.worse
        ]
    return problems


def _unmeasured(limit: str, needed: str) -> str:
    return f"drift.{limit} cannot be measured: {needed}"


def _limit(given: float | None) -> float:
    return math.inf if given is None else given


def earlier_metrics(spark: SparkSession, against: str) -> tuple[str, MetricsTable]:
    """Id and metrics of the run that a manifest or a model's folder names.

    Raises
    ------
    ContractError
        If there are none, or they cannot be read.
    """
    if against.endswith(".json"):
        manifest = read_manifest(spark, against)
        paths, output = manifest.get("paths"), manifest["configuration"].get("output")
        place = paths.get("metrics") if isinstance(paths, dict) else None
        origin = {
            "run_id": manifest["run_id"], "metrics": place,
            "format": output.get("format") if isinstance(output, dict) else None,
            "score": None,
        }  # fmt: skip
    else:
        origin = _of_model(spark, against)
    if not isinstance(origin["metrics"], str) or not origin["metrics"].strip("/"):
        raise ContractError(f"{against}: this run has left no metrics to compare with; name one that has")
    if HIDDEN in origin["metrics"]:
        raise ContractError(
            f"{redact_uri(against)}: the path of this run's metrics held a secret, which is kept nowhere; "
            "give secrets by Spark's settings (spark.hadoop.…) and not in paths, and calibrate again"
        )
    try:
        run_id = check_run_id(str(origin["run_id"]))
    except ValueError as error:
        raise ContractError(f"{against}: {error}; it was not written by this program") from error
    return run_id, _metrics(spark, origin["metrics"], str(origin["format"]), run_id, origin["score"])


def _of_model(spark: SparkSession, folder: str) -> dict[str, Any]:
    path = f"{folder.rstrip('/')}/{RUN_FILE}"
    settled(spark, folder, f"audit-{uuid4().hex}")
    try:
        plain = read_json(Files(spark, folder).read_text(path, limit=_LIMIT))
        return {**{key: plain[key] for key in ("run_id", "metrics", "format")}, "score": plain.get("score")}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ContractError(
            f"{path}: does not say which run has made the model ({error}); "
            "name the run's manifest instead, or calibrate again"
        ) from error


def _metrics(
    spark: SparkSession, place: str, table_format: str, run_id: str, score: str | None
) -> MetricsTable:
    with unreadable_is_refused(place):
        if "/" not in place:
            frame = literal_reader(spark).table(quote_table(place))
        elif table_format in PROVIDERS:
            frame = by_path(spark, "delta" if table_format == "delta" else "iceberg", place, run_id).read()
        else:
            frame = literal_reader(spark).parquet(place)
        if "run_id" in frame.columns:
            frame = frame.where(column("run_id") == run_id).drop("run_id")
        table = frame.toPandas()
    try:
        return MetricsTable(of_score(table, score))
    except ValueError as error:
        raise ContractError(f"{place}: {error}") from error
