"""What a model, a manifest or a metrics table says, as readable text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mcspark.cli.files import local_place
from mcspark.cli.left import frame_in, text_in
from mcspark.cli.text import text_table
from mcspark.core.cells.groups import Family
from mcspark.core.cells.readable import readable_names
from mcspark.core.metrics.lead import ERROR_NAMES
from mcspark.core.model.stages import Stages
from mcspark.core.saved import of_several, saved_model, segment_file
from mcspark.core.saved_scores import SavedScores, score_folder
from mcspark.core.segments import SegmentTable
from mcspark.errors import ContractError
from mcspark.ml.curves import curves_frame, pairs_frame
from mcspark.ml.fit_summary import FitSummary
from mcspark.report.facts import count, number
from mcspark.report.metrics_table import MetricsTable, of_score
from mcspark.report.names import families_of
from mcspark.report.segments import checked_segments, is_segments, segment_records
from mcspark.runtime.files.untrusted import read_json

if TYPE_CHECKING:
    from mcspark.core.training.recipe import Recipe

_NONE_OF_THESE = (OSError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
"""What reading a file of somebody else's raises; nothing in it is checked before it is shown."""


def shown(path: str, groups: int = 10) -> str:
    """Readable text about what is at a path of this machine.

    Parameters
    ----------
    path : str
        Folder of a model or of a metrics table, a manifest, or a Parquet file of metrics.
    groups : int
        Groups to list.

    Raises
    ------
    ContractError
        If it is none of these, or cannot be read.
    """
    place = local_place(path)
    if not place.exists():
        raise ContractError(
            f"{path}: nothing is there; name a model's folder, a manifest (JSON) or a metrics table, "
            "copied to this machine"
        )
    try:
        if place.is_dir() and (place / "model.json").is_file():
            return _model(read_json(text_in(place / "model.json")), groups)
        if place.suffix == ".json":
            plain = read_json(text_in(place))
            if isinstance(plain, dict) and ("calibrator" in plain or place.name == "model.json"):
                return _model(plain, groups)
            return _manifest(plain)
        frame = frame_in(place)
        if is_segments(frame):
            return _segment_table(frame, groups)
        if "score" not in frame.columns:
            return _metrics(frame, groups)
        by_score = ((name, of_score(frame, name)) for name in dict.fromkeys(frame["score"]))
        return "\n\n".join(f"Score {name}\n{_metrics(found, groups)}" for name, found in by_score)
    except _NONE_OF_THESE as error:
        raise ContractError(f"{path}: no model, manifest or metrics table of mcspark ({error})") from error


def _model(plain: Any, groups: int) -> str:
    if of_several(plain):
        found = SavedScores.from_dict(plain)
        head = f"Calibrators of {len(found.digests)} score(s), written by mcspark {plain['mcspark']}"
        listed = text_table(
            ("folder", "score"), [(score_folder(number), name) for number, name in enumerate(found.digests)]
        )
        return f"{head}; each is a model by itself\n{listed}"
    model = saved_model(plain)
    fit = FitSummary.from_dict(model.fit, model.groups.names, model.calibrator)
    names = readable_names(model.groups.signed, model.groups.learned_names)
    count_of = len(model.groups.names)
    parts = [f"Calibrator: {model.method}, {count_of} groups, written by mcspark {plain['mcspark']}"]
    if model.groups.features:
        parts.append(f"Learned from {len(model.groups.features)} columns with {len(names):,} categories")
    if model.table is not None:
        parts.append(_segments(model.table, groups))
    if fit is not None and fit.rounds:
        parts.append(_rounds(fit))
    if fit is not None:
        parts += [f"Warning: {warning}" for warning in fit.warnings]
        if fit.recipe is not None:
            parts.append(_recipe(fit.recipe))
    stages = model.calibrator
    if isinstance(stages, Stages) and stages.stages:
        parts += [_stages(stages), _corrections(stages, names, groups)]
        pairs = pairs_frame(stages).head(groups)
        if len(pairs):
            pairs = pairs.assign(**{end: pairs[end].map(names) for end in ("first", "second")})
            rows = pairs[["first", "second", "stage", "correction"]].itertuples(index=False)
            table = text_table(
                ("group", "and group", "stage", "correction"),
                [(a, b, str(stage + 1), f"{value:+.4f}") for a, b, stage, value in rows],
            )
            parts.append(f"Largest pair terms\n{table}")
    if model.groups.dropped:
        words = readable_names(model.groups.families, [name for name, _ in model.groups.dropped])
        listed = text_table(
            ("category", "why"), [(words[name], why) for name, why in model.groups.dropped[:groups]]
        )
        parts.append(f"Categories that are no group ({len(model.groups.dropped)} in all)\n{listed}")
    return "\n\n".join(parts)


def _segments(table: SegmentTable, most: int) -> str:
    head = f"{len(table)} segments have a calibrator of their own; what follows is of the pooled one"
    rows = [(segment_file(number), name) for number, name in enumerate(table.names[:most])]
    return f"{head}\n{text_table(('folder', 'segment'), rows)}"


def _segment_table(frame: pd.DataFrame, most: int) -> str:
    rows = [
        (
            row["segment"] if isinstance(row["segment"], str) else "(all others)",
            "own" if row["own"] else "pooled", count(row["rows"]), count(row["test_rows"]),
            *(number(row[name]) for name in ("error_before", "error_after", "noise_floor")),
            number(row["p_value"], 3), row["worst_group"] or "–",
        )
        for row in segment_records(checked_segments(frame), most)
    ]  # fmt: skip
    head = (
        "segment", "calibrator", "rows", "held out", "error before", "after", "noise floor", "p-value",
        "worst group",
    )  # fmt: skip
    return f"Segments, farthest beyond chance first (of {len(frame)})\n{text_table(head, rows)}"


def _rounds(fit: FitSummary) -> str:
    rows = [
        (str(i), count(r.trees), number(r.loss_before, 6), number(r.loss_after, 6), "yes" if r.kept else "no")
        for i, r in enumerate(fit.rounds, start=1)
    ]
    head = ("round", "trees", "held-out loss before", "after", "kept")
    return f"Rounds, trained by {fit.engine or 'an unnamed trainer'}\n{text_table(head, rows)}"


def _recipe(recipe: Recipe) -> str:
    again = "grown again on the early-stopping rows too" if recipe.refit else "not grown again"
    said = (
        f"Recipe {recipe.name}: {recipe.link} link, learning rate {recipe.learning_rate:g}, "
        f"{recipe.min_rows_in_leaf} rows in a leaf, {recipe.rounds} round(s), {again}"
    )
    rows = [
        (
            c.link, f"{c.learning_rate:g}", count(c.min_rows_in_leaf), " + ".join(map(count, c.trees)),
            number(c.loss, 6), "yes" if c.chosen else "no", c.why,
        )
        for c in recipe.candidates
    ]  # fmt: skip
    head = ("link", "rate", "rows in leaf", "trees", "held-out loss", "chosen", "why")
    return f"{said}\n{text_table(head, rows)}" if rows else said


def _stages(stages: Stages) -> str:
    rows = [
        (
            str(i),
            count(stage.trees),
            stage.link,
            count(len(stage.form.thresholds)),
            count(len(stage.form.pairs)),
        )
        for i, stage in enumerate(stages.stages, start=1)
    ]
    return "Stages\n" + text_table(("stage", "trees", "link", "thresholds", "pair terms"), rows)


def _corrections(stages: Stages, names: Mapping[str, str], groups: int) -> str:
    every, curves = "(every row)", curves_frame(stages)
    curves["group"] = curves["group"].map(names).fillna(every)
    curves["area"] = curves["correction"] * (curves["upper"] - curves["lower"])
    found = curves.groupby(["stage", "group"], sort=False).agg(
        mean=("area", "sum"), least=("correction", "min"), most=("correction", "max")
    )
    found["size"] = np.where(found.index.get_level_values("group") == every, np.inf, found.abs().max(axis=1))
    found = found[found["size"] > 0].sort_values("size", ascending=False, kind="stable").reset_index()
    found = found.groupby("stage").head(groups + 1).sort_values("stage", kind="stable")
    columns = (found[name].tolist() for name in ("stage", "group", "mean", "least", "most"))
    rows = [
        (str(s + 1), g, f"{mean:+.4f}", f"{low:+.4f}", f"{high:+.4f}")
        for s, g, mean, low, high in zip(*columns, strict=True)
    ]
    table = text_table(("stage", "group", "mean", "least", "most"), rows)
    return f"Corrections over the score range, largest first (of {len(names)} groups)\n{table}"


def _manifest(plain: Any) -> str:
    if not isinstance(plain, dict) or not {"run_id", "job", "status"} <= set(plain):
        raise ValueError("it has no run_id, job and status")
    parts = [f"Run {plain['run_id']}: {plain['job']}, {plain['status']}"]
    if plain.get("error"):
        parts.append(str(plain["error"]))
    if rows := plain.get("rows"):
        parts.append("Rows\n" + text_table(list(rows), [[count(n) for n in rows.values()]]))
    if reasons := plain.get("rejected_by_reason"):
        parts.append(
            "Rejected\n" + text_table(("reason", "rows"), [(k, count(n)) for k, n in reasons.items()])
        )
    parts += [f"Warning: {warning}" for warning in plain.get("warnings") or ()]
    if isinstance(segments := plain.get("segments"), Mapping):
        parts.append(_segments_of_run(segments))
    families = families_of(plain.get("configuration"))
    if metrics := plain.get("metrics"):
        parts.append(_summary(metrics, plain.get("lead") or {}, families))
    for name, own in (plain.get("scores") or {}).items():
        if metrics := own.get("metrics"):
            parts.append(f"Score {name}\n{_summary(metrics, own.get('lead') or {}, families)}")
    if paths := plain.get("paths"):
        parts.append("Paths\n" + "\n".join(f"{name}: {place}" for name, place in paths.items()))
    if seconds := plain.get("seconds"):
        parts.append(
            "Seconds\n" + text_table(("stage", "seconds"), [(k, f"{v:.1f}") for k, v in seconds.items()])
        )
    if versions := plain.get("versions"):
        parts.append(", ".join(f"{name} {version}" for name, version in versions.items()))
    return "\n\n".join(parts)


def _segments_of_run(reported: Mapping[str, Any]) -> str:
    """What the summary of a run says of its segments; scoring says less."""
    line = f"Segments by {', '.join(reported['by'])}: {count(reported['own'])} with a calibrator of their own"
    if "pooled" in reported:
        line += f", {count(reported['pooled'])} share the pooled one"
    if worst := reported.get("worst"):
        line += (
            f"; farthest beyond chance is {worst['segment']}, error {number(worst['error_before'])} → "
            f"{number(worst['error_after'])}, noise floor {number(worst['noise_floor'])}"
        )
    return "\n".join([line, *(f"Not met: {problem}" for problem in reported.get("unmet") or ())])


def _summary(metrics: Mapping[str, Any], lead: Mapping[str, Any], families: Sequence[Family]) -> str:
    worst = {str(e["worst_group"]) for found in metrics.values() for e in found["by_level"].values()}
    names = readable_names(families, sorted(worst))
    blind = lead.get("blind") or {}
    rows = []
    for stage, found in metrics.items():
        for m, level in found["by_level"].items():
            rows.append(
                (
                    stage, f"{m} (blind)" if m in blind else m, number(level["mc_error"]),
                    number(level["noise_floor"]),
                    number(level.get("p_value"), 3), names[str(level["worst_group"])],
                )
            )  # fmt: skip
    lines = [
        f"{stage}: worst group's smECE {number(found['worst_group_smece'])}, loss {number(found['loss'])}"
        for stage, found in metrics.items()
    ]
    head = ("score", "levels", "MC error", "noise floor", "p-value", "worst group")
    if blind:
        errors = [f"{number(lead[stage])} {stage}" for stage in metrics if stage in lead]
        where = "of the score itself" if lead["levels"] is None else f"at {lead['levels']} levels"
        name = ERROR_NAMES.get(lead["metric"], ERROR_NAMES["mc_error"])
        lines.append(f"blind grids lie in one level; led with is the {name} {where}: {', '.join(errors)}")
    return "\n".join([text_table(head, rows), *lines])


def _metrics(frame: pd.DataFrame, groups: int) -> str:
    table = MetricsTable(frame)
    rows = [
        [
            f"{m} (blind)" if m in table.lead.blind_grids else str(m),
            *[number(table.value(stage, "mc_error", m)) for stage in table.stages],
            number(table.value(table.last, "noise_floor", m)),
            number(table.value(table.last, "p_value", m), 3),
            table.group(table.last, "mc_error", m) or "–",
        ]
        for m in table.grids
    ]  # fmt: skip
    head = [
        "levels",
        *[f"MC error {stage}" for stage in table.stages],
        "noise floor",
        "p-value",
        "worst group",
    ]
    parts = [text_table(head, rows)]
    error = table.lead.metric("group_mc_error")
    if table.lead.blind:
        parts.append(table.lead.words())
        parts += [f"{stage}: MA error {number(table.value(stage, 'ma_error'))}" for stage in table.stages]
    parts += [
        f"{stage}: {count(table.value(stage, 'rows'))} rows, loss {number(table.value(stage, 'loss'))}, "
        f"worst group's smECE {number(table.value(stage, 'worst_group_smece'))} "
        f"({table.group(stage, 'worst_group_smece') or '–'})"
        for stage in table.stages
    ]
    names = table.worst_first()[:groups]
    if names:
        columns = [table.by_group(table.last, "group_rows"), table.by_group(table.last, "share")]
        errors = [table.by_group(stage, *error) for stage in table.stages]
        listed = text_table(
            ["group", "rows", "share", *[f"{table.lead.error_name} {stage}" for stage in table.stages]],
            [
                [
                    name, count(columns[0][name]), f"{100 * columns[1][name]:.1f} %",
                    *[number(found[name]) for found in errors],
                ]
                for name in names
            ],
        )  # fmt: skip
        where = "" if table.lead.levels is None else f" at {table.grid} levels"
        parts.append(f"Worst groups{where}\n{listed}")
    return "\n\n".join(parts)
