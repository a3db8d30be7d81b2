"""Every figure shows the numbers of its table, and says what its axes are."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from report_runs import GROUPS, calibrated, population, rare

from mcspark.core.model.additive import AdditiveForm
from mcspark.core.model.stages import Stage, Stages
from mcspark.ml.curves import curves_frame, pairs_frame
from mcspark.report import plots
from mcspark.report.metrics_table import MetricsTable
from mcspark.report.plots.corrections import at_scores, largest
from mcspark.report.plots.maps import FEW_ROWS


def every_figure():
    facts = calibrated(rounds=2)
    yield "grid", plots.error_by_grid(facts.metrics)
    yield "reliability", plots.reliability(facts.metrics, GROUPS[0])
    yield "gaps", plots.gap_map(facts.metrics, "after")
    yield "curves", plots.correction_curves(facts.curves)
    yield "map", plots.correction_map(facts.curves, GROUPS)
    yield "training", plots.training(facts.training)


def test_every_figure_has_a_title_and_axes_with_units():
    for name, figure in every_figure():
        assert figure.axes[0].get_title(loc="left"), name
        across = figure.axes[-1].get_xlabel()
        assert any(unit in across for unit in ("(0 to 1)", "(count", "score")), name
        for axes in figure.axes:
            assert axes.get_ylabel() or axes.get_images(), name


def lines(figure, place=0):
    return {line.get_label(): np.asarray(line.get_xydata()) for line in figure.axes[place].get_lines()}


def test_the_error_by_grid_is_that_of_the_table():
    facts = calibrated()
    found = lines(plots.error_by_grid(facts.metrics))
    for stage in ("before", "after"):
        assert list(found[stage][:, 1]) == [
            facts.table.value(stage, "mc_error", m) for m in facts.table.grids
        ]
    floor = [facts.last("noise_floor", m) for m in facts.table.grids]
    assert list(found["noise floor (mean of chance)"][:, 1]) == floor


def test_a_reliability_diagram_is_the_mean_of_the_people():
    facts = calibrated()
    drawn = plots.reliability(facts.metrics, GROUPS[1])
    score, label, member, role = population()
    part = (role == 2) & member[:, 1]
    level = np.minimum((score * 20).astype(int), 19)
    line = next(line for line in drawn.axes[0].get_lines() if line.get_color() == "#b45309")
    expected = [
        (score[part & (level == k)].mean(), label[part & (level == k)].mean())
        for k in range(20)
        if (part & (level == k)).any()
    ]
    np.testing.assert_allclose(line.get_xydata(), expected, rtol=1e-9)
    heights = sum(bar.get_height() for bar in drawn.axes[1].patches)
    assert heights == 2 * part.sum()


def test_a_group_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="no group 'x'"):
        plots.reliability(calibrated().metrics, "x")


def test_the_map_is_grey_where_rows_are_few():
    facts = calibrated()
    image = plots.gap_map(facts.metrics, "before").axes[0].get_images()[0]
    table = MetricsTable(facts.metrics)
    names = table.worst_first()
    rows = table.level_rows("before").loc[names].to_numpy()
    shown = np.ma.masked_invalid(image.get_array())
    assert (shown.mask == (rows < FEW_ROWS)).all()
    gaps = table.gaps("before").loc[names].to_numpy()
    np.testing.assert_array_equal(shown.compressed(), gaps[rows >= FEW_ROWS])
    after = plots.gap_map(facts.metrics, "after").axes[0].get_images()[0]
    assert image.get_clim() == after.get_clim()


def test_curves_are_the_form_itself():
    form = AdditiveForm(
        thresholds=np.array([0.25, 0.5]),
        constant=0.1,
        base=np.array([0.0, 0.2, 0.4]),
        curves=np.array([[0.0, 0.0, 0.0], [-0.1, -0.2, 0.3]]),
        pairs=np.array([[0, 1]]),
        pair_values=np.array([0.05]),
    )
    stages = Stages((Stage("identity", form, 3), Stage("logit", form, 3)), ("a", "b"))
    curves = curves_frame(stages)
    table = at_scores(curves, 0, 8)
    scores = table.columns.to_numpy()
    everyone, member = np.zeros((8, 2), bool), np.tile([False, True], (8, 1))
    np.testing.assert_allclose(
        table[table.index.isna()].to_numpy()[0], form.evaluate(scores, everyone), atol=1e-15
    )
    np.testing.assert_allclose(
        table.loc["b"], form.evaluate(scores, member) - form.evaluate(scores, everyone), atol=1e-15
    )
    assert largest(curves) == ["b"]
    steps = curves[(curves["group"] == "b") & (curves["stage"] == 1)]
    assert steps[["lower", "upper", "correction"]].to_numpy().tolist() == [
        [0, 0.25, -0.1], [0.25, 0.5, -0.2], [0.5, 1, 0.3]
    ]  # fmt: skip
    assert steps["link"].unique() == ["logit"]
    assert pairs_frame(stages).to_numpy().tolist() == [
        [0, "identity", "a", "b", 0.05], [1, "logit", "a", "b", 0.05]
    ]  # fmt: skip
    assert len(curves_frame(Stages((), ("a",)))) == 0
    assert "log-odds" in plots.correction_curves(curves, 1).axes[0].get_ylabel()
    with pytest.raises(ValueError, match="no stage 2"):
        plots.correction_curves(curves, 2)
    with pytest.raises(ValueError, match="at most 6"):
        plots.correction_curves(curves, 0, ["b"] * 7)


def test_names_are_never_formulas_nor_left_out_of_the_legend():
    drawn = plots.correction_curves(calibrated().curves, 0, [GROUPS[1], GROUPS[3]])
    texts = drawn.axes[0].get_legend().get_texts()
    assert [t.get_text() for t in texts] == ["every row", GROUPS[1][:25] + "…", "_hidden"]
    assert not any(t.get_parse_math() for t in texts)


def test_the_user_s_own_settings_are_left_alone():
    with mpl.rc_context({"font.size": 31}):
        plots.error_by_grid(calibrated().metrics)
        assert mpl.rcParams["font.size"] == 31


@pytest.mark.parametrize(("facts", "end"), [(rare, 1 / 75), (calibrated, 1.0)])
def test_a_reliability_diagram_of_scores_in_a_corner_shows_the_corner(facts, end):
    axes, counts = plots.reliability(facts().table).axes
    assert axes.get_xlim() == axes.get_ylim() == counts.get_xlim() == (0.0, pytest.approx(end))
