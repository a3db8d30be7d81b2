"""The pages of a comparison: the paper's table 1, table 2 and figure 2, from the rows of the results."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from mcspark.core.metrics.lead import FullestLevel, Lead
from mcspark.core.metrics.score_metrics import SCORE_METRICS
from mcspark.core.training.sweep import METHODS
from mcspark.ml.training.tuning import Choice, ResultRow

LABELS = {
    "none": "uncalibrated",
    **{name: method.label for name, method in METHODS.items()},
    "trees": "trees",
}
"""Methods as they are written on the pages, in their order."""

_FIGURE = "MC error against the number of level sets (the paper's figure 2)"

_STYLES = {
    **dict(
        zip(
            ("none", *METHODS),
            (("#767676", "x"), ("#b35900", "s"), ("#7a3fa0", "^"), ("#00695c", "v"), ("#8a6d00", "D"),
             ("#a3195b", "P"), ("#5d4037", "*"), ("#37474f", "X"), ("#827717", "p")),
            strict=False,
        )
    ),
    "trees": ("#0b57d0", "o"),
}  # fmt: skip
"""Colour and marker of each method's line."""

Choose = Callable[[Iterable[float]], float]
_BEST: dict[bool | None, Choose | None] = {True: max, False: min, None: None}


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over the partitions; no deviation where there is one value."""

    mean: float
    sd: float | None

    def show(self, digits: int, factor: float = 1.0) -> str:
        """``0.0048 ± 0.0005``."""
        mean = f"{self.mean * factor:.{digits}f}"
        return mean if self.sd is None else f"{mean} ± {self.sd * factor:.{digits}f}"


@dataclass(frozen=True)
class Table:
    """A table of text: the head, the rows, and what it is about."""

    caption: str
    head: tuple[str, ...]
    body: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """The table in Markdown."""
        lines = [self.head, tuple("---" for _ in self.head), *self.body]
        return f"### {self.caption}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


class Spreads:
    """Mean and spread of every metric by task, method, metric and grid, and what a task is ranked by."""

    def __init__(self, rows: Sequence[ResultRow]) -> None:
        values: dict[tuple[str, str, str, int | None], list[float]] = defaultdict(list)
        for r in rows:
            if r.fold is not None and r.value is not None:
                values[r.task, r.method, r.metric, r.m].append(r.value)
        self._found = {
            key: Spread(float(np.mean(v)), float(np.std(v, ddof=1)) if len(v) > 1 else None)
            for key, v in values.items()
        }
        self.tasks = tuple(dict.fromkeys(r.task for r in rows))
        self.leads = {task: _lead([r for r in rows if r.task == task]) for task in self.tasks}
        self.blind = {task: lead for task, lead in self.leads.items() if lead and lead.blind}
        found = {r.method for r in rows}
        self.methods = tuple(method for method in LABELS if method in found)
        self.grids = tuple(sorted({r.m for r in rows if r.metric == "mc_error" and r.m is not None}))

    def get(self, task: str, method: str, metric: str, m: int | None) -> Spread | None:
        """The spread; None where there is no such number."""
        return self._found.get((task, method, metric, m))

    def grids_of(self, method: str, metric: str) -> tuple[int | None, ...]:
        """Grids on which a metric of a method was measured; None first, where there is one without a grid."""
        grids = {key[3] for key in self._found if key[1:3] == (method, metric)}
        return tuple(m for m in (None, *self.grids) if m in grids)

    def seeing(self, task: str) -> tuple[int, ...]:
        """The grids that are not blind to the scores of a task."""
        lead = self.leads[task]
        return tuple(m for m in self.grids if lead is None or m not in lead.blind_grids)


def _lead(rows: Sequence[ResultRow]) -> Lead | None:
    """What to rank the methods by, for the scores before; None where no row tells."""
    level, share = (
        {r.m: r.value for r in rows if r.metric == metric and r.m is not None and r.value is not None}
        for metric in ("fullest_level", "fullest_level_share")
    )
    fullest = [FullestLevel(m, int(level[m]), share[m]) for m in share]
    return Lead.among(list(share), fullest) if fullest else None


def saturation_table(rows: Sequence[ResultRow]) -> Table:
    """Table 1 of the paper: what running the trees a second time gains on the test rows."""
    found, body = Spreads(rows), []
    for task in found.tasks:
        before = found.get(task, "none", "loss", None)
        after = found.get(task, "trees", "loss", None)
        second = found.get(task, "trees", "loss_second", None)
        if after is not None and second is not None:
            gain = f"{after.mean - second.mean:.1e}"
            body.append((task, before.show(4) if before else "–", after.show(4), second.show(4), gain))
    head = ("task", "ℓ(f₀)", "ℓ(f_cal)", "ℓ(p(f_cal))", "ε̂_loss")
    return Table("Loss saturation (the paper's table 1)", head, tuple(body))


def smece_table(rows: Sequence[ResultRow]) -> Table:
    """Table 2 of the paper: worst-group smECE, times 1000; a star marks the lowest of a task."""
    found = Spreads(rows)
    lines = [(method, m) for method in found.methods for m in found.grids_of(method, "worst_group_smece")]
    return Table(
        "Worst-group smECE × 1000 (the paper's table 2)",
        ("method", "m", *found.tasks),
        _starred(found, lines, "worst_group_smece", digits=2, factor=1000.0),
    )


def ma_table(rows: Sequence[ResultRow]) -> Table:
    """MA error of the score itself, times 1000; a star marks the lowest of a task."""
    found = Spreads(rows)
    lines = [(method, m) for method in found.methods for m in found.grids_of(method, "score_ma_error")]
    return Table(
        "Multiaccuracy error of the score itself × 1000",
        ("method", "m", *found.tasks),
        _starred(found, lines, "score_ma_error", digits=3, factor=1000.0),
    )


def score_tables(rows: Sequence[ResultRow]) -> list[Table]:
    """Metrics of the score itself, one table a task; a star marks the best of each that has a best."""
    found, tables = Spreads(rows), []
    for task in found.tasks:
        lines = [(method, m) for method in found.methods for m in found.grids_of(method, "log_loss")]
        shown = [x for x in SCORE_METRICS if any(found.get(task, who, x.key, m) for who, m in lines)]
        columns = []
        for metric in shown:
            values = {line: found.get(task, line[0], metric.key, line[1]) for line in lines}
            columns.append(_cells(values, digits=5, factor=1.0, best=_BEST[metric.larger_is_better]))
        if lines and shown:
            body = tuple((LABELS[method], _grid(m), *(c[method, m] for c in columns)) for method, m in lines)
            head = ("method", "m", *(metric.name for metric in shown))
            tables.append(Table(f"The score as a whole, {task}", head, body))
    return tables


def mc_tables(rows: Sequence[ResultRow]) -> list[Table]:
    """MC error of every method on every grid, one table a task; a star marks the lowest where a grid sees."""
    found, tables = Spreads(rows), []
    for task in found.tasks:
        lead, columns = found.leads[task], []
        blind = lead.blind_grids if lead else ()
        for m in found.grids:
            errors = {method: found.get(task, method, "mc_error", m) for method in found.methods}
            columns.append(_cells(errors, digits=4, factor=1.0, best=None if m in blind else min))
        body = tuple((LABELS[method], *(c[method] for c in columns)) for method in found.methods)
        head = ("method", *(f"m = {m} (blind)" if m in blind else f"m = {m}" for m in found.grids))
        tables.append(Table(f"Multicalibration error, {task}", head, body))
    return tables


def chosen_table(choices: Mapping[str, Sequence[Choice]]) -> Table:
    """The settings that the validation halves chose."""
    body = []
    for task, chosen in choices.items():
        for choice in chosen:
            if choice.setting:
                setting = ", ".join(f"{name} {value:g}" for name, value in choice.setting)
                body.append((task, LABELS[choice.method], _grid(choice.m), setting))
    return Table("Chosen settings", ("task", "method", "m", "setting"), tuple(body))


def summary_table(rows: Sequence[ResultRow]) -> dict[str, dict[str, Any]]:
    """Means by task and method for the summary line."""
    found = Spreads(rows)

    def mean(task: str, method: str, metric: str, m: int | None) -> float | None:
        spread = found.get(task, method, metric, m)
        return None if spread is None else spread.mean

    return {
        task: {
            method: {
                "mc_error": {str(m): mean(task, method, "mc_error", m) for m in found.grids},
                **{
                    metric: {
                        "all" if m is None else str(m): mean(task, method, metric, m)
                        for m in found.grids_of(method, metric)
                    }
                    for metric in ("worst_group_smece", "score_ma_error", *(m.key for m in SCORE_METRICS))
                },
            }
            for method in found.methods
        }
        for task in found.tasks
    }


def leads(rows: Sequence[ResultRow]) -> dict[str, Any]:
    """What the methods of each task are to be ranked by, for the summary line."""
    return {task: lead and lead.summary() for task, lead in Spreads(rows).leads.items()}


def figure(rows: Sequence[ResultRow]) -> str:
    """Figure 2 of the paper as SVG: MC error against the number of non-empty level sets, one panel a task.

    Points are means over the partitions, bands one standard deviation to either side. The dotted line is the
    noise floor: what the best method would show by chance if its scores were perfectly calibrated. Grids that
    are blind to the scores are left out: what they show has nothing to do with a method.
    """
    import matplotlib as mpl  # noqa: PLC0415  (slow to import, and only this job draws)
    from matplotlib.figure import Figure  # noqa: PLC0415

    found = Spreads(rows)
    text = io.StringIO()
    # Fixed ids and no date: the same results give the same bytes.
    with mpl.rc_context({"svg.hashsalt": "mcspark", "svg.fonttype": "none", "font.size": 11}):
        drawing = Figure(figsize=(5.2 * len(found.tasks), 4.2), layout="constrained")
        panels = np.atleast_1d(drawing.subplots(1, len(found.tasks)))
        for panel, task in zip(panels, found.tasks, strict=True):
            for method in found.methods:
                _draw(panel, found, task, method)
            _draw_floor(panel, found, task)
            if task in found.blind:
                left_out = ", ".join(map(str, found.blind[task].blind_grids))
                panel.text(0.5, 0.98, f"left out as blind: {left_out} levels", ha="center", va="top",
                           fontsize=9, transform=panel.transAxes)  # fmt: skip
            panel.set(title=task, xlabel="non-empty level sets", ylim=(0, None))
            panel.grid(alpha=0.25)
        panels[0].set_ylabel("multicalibration error")
        if drawn := [panel for panel in panels if panel.get_legend_handles_labels()[0]]:
            drawn[0].legend(frameon=False)
        drawing.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def _draw(panel: Any, found: Spreads, task: str, method: str) -> None:
    points = []
    for m in found.seeing(task):
        error, sets = found.get(task, method, "mc_error", m), found.get(task, method, "level_sets", m)
        if error is not None and sets is not None:
            points.append((sets.mean, error.mean, error.sd or 0.0))
    if points:
        x, y, sd = np.asarray(sorted(points)).T
        colour, marker = _STYLES[method]
        panel.plot(x, y, color=colour, marker=marker, label=LABELS[method])
        panel.fill_between(x, y - sd, y + sd, color=colour, alpha=0.2, linewidth=0)


def _draw_floor(panel: Any, found: Spreads, task: str) -> None:
    method = "trees" if "trees" in found.methods else found.methods[-1]
    points = []
    for m in found.seeing(task):
        floor, sets = found.get(task, method, "noise_floor", m), found.get(task, method, "level_sets", m)
        if floor is not None and sets is not None:
            points.append((sets.mean, floor.mean))
    if points:
        x, y = np.asarray(sorted(points)).T
        panel.plot(x, y, color="#444444", linestyle=":", label="noise floor")


def markdown(rows: Sequence[ResultRow], choices: Mapping[str, Sequence[Choice]], engine: str) -> str:
    """``compare.md``; its picture is ``figure.svg`` beside it."""
    tables = "\n".join(table.markdown() for table in _tables(rows, choices))
    picture = (
        "### MC error against the number of level sets (the paper's figure 2)\n\n![figure](figure.svg)\n"
    )
    return f"# Comparison of calibrators\n\n{_words(rows, engine)}\n\n{picture}\n{tables}"


def html(
    rows: Sequence[ResultRow], choices: Mapping[str, Sequence[Choice]], engine: str, picture: str
) -> str:
    """``compare.html``: one self-contained file."""
    environment = Environment(
        loader=PackageLoader("mcspark.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("comparison.html.j2")
    return template.render(
        words=_words(rows, engine), tables=_tables(rows, choices), title=_FIGURE, picture=picture
    )


def _words(rows: Sequence[ResultRow], engine: str) -> str:
    folds = len({r.fold for r in rows if r.fold is not None})
    return (
        f"Test rows only; mean ± standard deviation over {folds} partition(s) of the other rows into halves "
        f"for calibration and validation. Trees trained by {engine}. MCBoost and LSBoost are fitted anew for "
        "every grid m, the others once. A star marks the lowest mean."
        + "".join(f" {task}: {lead.words()}" for task, lead in Spreads(rows).blind.items())
    )


def _tables(rows: Sequence[ResultRow], choices: Mapping[str, Sequence[Choice]]) -> list[Table]:
    # What no grid is needed for comes first where one is blind.
    gridless = [ma_table(rows)] if Spreads(rows).blind else []
    return [
        saturation_table(rows),
        *gridless,
        smece_table(rows),
        *mc_tables(rows),
        *score_tables(rows),
        chosen_table(choices),
    ]


def _grid(m: int | None) -> str:
    return "–" if m is None else str(m)


def _starred(
    found: Spreads, lines: Sequence[tuple[str, int | None]], metric: str, *, digits: int, factor: float
) -> tuple[tuple[str, ...], ...]:
    columns = [
        _cells(
            {line: found.get(task, line[0], metric, line[1]) for line in lines}, digits=digits, factor=factor
        )
        for task in found.tasks
    ]
    return tuple((LABELS[method], _grid(m), *(c[method, m] for c in columns)) for method, m in lines)


def _cells(
    spreads: Mapping[Any, Spread | None], *, digits: int, factor: float, best: Choose | None = min
) -> dict[Any, str]:
    means = [s.mean for s in spreads.values() if s is not None]
    starred = best(means) if best is not None and means else None
    return {
        key: "–" if s is None else s.show(digits, factor) + (" *" if s.mean == starred else "")
        for key, s in spreads.items()
    }
