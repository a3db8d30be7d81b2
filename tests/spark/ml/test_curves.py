"""The correction as tables: what they say is what the model does, by joins in pandas alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcspark import MulticalibratorModel
from mcspark.core.cells.groups import FittedGroups
from mcspark.core.model.stages import Stages
from tests.spark.ml.conftest import NAMES, membership


def test_the_tables_alone_give_the_calibrated_scores(fitted):
    model, people = fitted.model, fitted.table
    assert [stage.link for stage in model.stages.stages] == ["identity"]
    rows = people[["id", "score"]]
    member = pd.DataFrame(membership(people), columns=list(NAMES)).set_index(people["id"])
    of = member.stack().rename_axis(["id", "group"])
    of = of[of].reset_index()[["id", "group"]]
    curves = model.curves()
    curves["group"] = curves["group"].fillna("")
    groups = pd.concat([of, rows[["id"]].assign(group="")])
    steps = groups.merge(rows, on="id").merge(curves, on="group")
    # The first step holds its lower end too: no score lies below it.
    here = (steps["score"] > steps["lower"]) | (steps["lower"] == 0)
    steps = steps[here & (steps["score"] <= steps["upper"])]
    assert not steps.duplicated(["id", "group"]).any()
    total = steps.groupby("id")["correction"].sum()
    for pair in model.pairs().itertuples():
        total = total + pair.correction * (member[pair.first] & member[pair.second])
    expected = np.clip(rows.set_index("id")["score"] + total, 0, 1)
    np.testing.assert_allclose(fitted.scored.set_index("id")["calibrated_score"], expected, atol=1e-12)


def test_pairs_come_largest_first(fitted):
    assert fitted.model.pairs()["correction"].abs().is_monotonic_decreasing


def test_the_training_curve_falls_to_where_it_was_stopped(fitted, tmp_path):
    curve = fitted.model.training_curve()
    assert curve["trees"].iloc[-1] == fitted.model.stages.trees
    assert curve["early_stopping"].iloc[-1] == curve["early_stopping"].min()
    [tried] = fitted.model.summary.rounds
    assert curve["early_stopping"].iloc[0] == pytest.approx(tried.loss_before, rel=1e-6)
    # Trees are grown without the clipping to [0, 1], which lowers the loss of a stage a little more.
    assert curve["early_stopping"].iloc[-1] == pytest.approx(tried.loss_after, rel=2e-3)
    fitted.model.save(str(tmp_path / "model"))
    with pytest.raises(ValueError, match="loaded model"):
        MulticalibratorModel.load(str(tmp_path / "model")).training_curve()


def test_a_calibrator_without_trees_has_no_curves():
    model = MulticalibratorModel(FittedGroups(()), Stages((), ()), method="none")
    assert len(model.curves()) == len(model.pairs()) == 0
