"""What every calibrator keeps to: scores in [0, 1], no larger loss, and the same bits from a file."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tables_of_rows import Rows, rows

from mcspark import MulticalibratorModel
from mcspark.core.cells.cells import Cells
from mcspark.core.cells.groups import Family, FittedGroups
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.model.additive import AdditiveForm
from mcspark.core.model.lightgbm_text import map_thresholds, parse_trees, score_threshold
from mcspark.core.model.stages import Stage, Stages
from mcspark.core.training.rounds import loss_at
from mcspark.core.training.training_table import TrainingTable, TreeSettings
from mcspark.ml.persistence import _plain, model_from_text
from mcspark.ml.training.driver_training import DriverTrainer

GROUPS = FittedGroups(
    (Family("value", "a", (1, 2), columns=("a",)), Family("value", "b", ("x",), columns=("b",)))
)
MEMBERS = np.array([[i >> k & 1 for k in range(3)] for i in range(8)], dtype=bool)
VALUES = st.floats(-3, 3) | st.sampled_from([0.0, -0.0, 1e-300, -1e-17, 0.1])


@st.composite
def forms(draw: st.DrawFn) -> AdditiveForm:
    """Any correction of three groups."""
    cuts = sorted(draw(st.sets(st.floats(0, 1), max_size=4)))
    bins = len(cuts) + 1
    pairs = sorted(draw(st.sets(st.sampled_from([(0, 1), (0, 2), (1, 2)]))))

    def values(*shape: int) -> Any:
        n = int(np.prod(shape))
        return np.array(draw(st.lists(VALUES, min_size=n, max_size=n)), dtype=float).reshape(shape)

    return AdditiveForm(
        np.array(cuts, dtype=float), draw(VALUES), values(bins), values(3, bins),
        np.array(pairs, dtype=np.int64).reshape(-1, 2), values(len(pairs)),
    )  # fmt: skip


@st.composite
def calibrators(draw: st.DrawFn) -> Stages:
    """Up to three stages of either link."""
    links = draw(st.lists(st.sampled_from(["identity", "logit"]), max_size=3))
    return Stages(tuple(Stage(link, draw(forms()), draw(st.integers(0, 99))) for link in links), GROUPS.names)


@given(calibrators(), rows())
@settings(max_examples=150, deadline=None)
def test_calibrated_scores_lie_in_the_unit_interval_and_survive_a_file(stages, table):
    scores = stages.apply(table.score, table.member)
    assert ((scores >= 0) & (scores <= 1)).all()
    signature = (table.member * [1, 2, 4]).sum(axis=1)
    fast = stages.apply_signatures(table.score, signature, MEMBERS)
    np.testing.assert_allclose(fast, scores, rtol=0, atol=1e-14)
    text = json.dumps(_plain(MulticalibratorModel(GROUPS, stages)))
    loaded = model_from_text(MulticalibratorModel, text)
    assert np.array_equal(loaded.calibrator.apply_signatures(table.score, signature, MEMBERS), fast)
    assert loaded.fitted == GROUPS
    assert json.dumps(_plain(loaded)) == text


BELOW_AN_EDGE = Rows(
    np.array([0.5625, np.nextafter(0.55, 0)]), np.array([0.0, 1.0]), np.ones(2), np.zeros((2, 3), dtype=bool)
)


@given(rows(least=4), st.floats(0.05, 1.0), st.integers(1, 12))
@example(BELOW_AN_EDGE, 1.0, 1)
@settings(max_examples=60, deadline=None)
def test_the_loss_on_the_rows_learned_from_never_grows(table, rate, trees):
    """Squared loss, no early stopping, and the cut to [0, 1] at the end."""
    cells = Cells.from_rows(
        table.score, table.label, table.member, bins=ScoreBins.uniform(20), weight=table.weight
    )
    cells = cells.take(cells.weight > 0)
    state = cells.mean_score
    training = TrainingTable(
        place=cells.bin, signature=cells.signature, membership=cells.membership,
        target=cells.label / cells.weight - state, weight=cells.weight, stop=np.zeros(len(cells), dtype=bool),
        offset=None, min_weight_in_leaf=1e-3, rows=cells.n, unit=1.0,
    )  # fmt: skip
    text = DriverTrainer()(training, TreeSettings(learning_rate=rate, max_trees=trees))
    text = map_thresholds(text, 0, score_threshold(cells.bins.edges()))
    form = AdditiveForm.from_trees(parse_trees(text), 3)
    after = Stages((Stage("identity", form, trees),), cells.groups)
    moved = after.apply_signatures(state, cells.signature, cells.membership)
    assert loss_at(cells, moved) <= loss_at(cells, state) + 1e-9
