"""The estimator and its model, in the manner of Spark ML."""

from __future__ import annotations

import warnings
from dataclasses import replace

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from official_trainer import features
from pyspark.ml import Pipeline
from pyspark.sql import functions as F

from mcspark import GroupSet, Multicalibrator
from mcspark.core.cells.cells import Role
from mcspark.core.cells.levels import ScoreBins, base_levels
from mcspark.core.training.rounds import fit_stages
from mcspark.core.training.training_table import rows_of_weight
from mcspark.errors import ContractError
from mcspark.ml.cells.cells import ScoredColumns
from mcspark.ml.cells.groups import with_categories
from mcspark.ml.cells.working import WORKING, working_columns
from mcspark.ml.learning import learning_cells
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.ml.training.row_training import RowTrainer
from mcspark.ml.training.training import TreeTrainer

from .conftest import NAMES, SECTION, SETTINGS, membership, people_table


def loss(table, column, role="test"):
    part = table[table["split"] == role]
    return np.average((part[column] - part["label"]) ** 2, weights=part["w"])


def test_the_model_is_the_saved_trees_on_raw_scores_and_groups(fitted):
    """The text, scored by official LightGBM on (score, groups), plus the score, clipped: the Spark model."""
    assert fitted.model.fitted.names == NAMES
    raw = lgb.Booster(model_str=fitted.model.texts[0]).predict(
        features(fitted.table["score"], membership(fitted.table))
    )
    expected = np.clip(fitted.table["score"] + raw, 0, 1)
    np.testing.assert_allclose(fitted.scored["calibrated_score"], expected, rtol=0, atol=1e-12)
    assert (expected == 0).any() or (expected == 1).any() or expected.between(0, 1).all()


def test_it_calibrates_on_rows_it_has_not_seen(fitted):
    assert loss(fitted.scored, "calibrated_score") < loss(fitted.scored, "score") - 0.01
    assert fitted.scored["calibrated_score"].between(0, 1).all()


def test_transform_adds_one_column_and_keeps_the_rest(spark, fitted):
    frame = fitted.frame.withColumn("__index_level_0__", F.col("id")).withColumn("a.b c", F.lit("x"))
    scored = fitted.model.transform(frame)
    assert scored.columns == [*frame.columns, "calibrated_score"]
    assert fitted.scored.drop(columns="calibrated_score").equals(fitted.frame.orderBy("id").toPandas())


def test_transform_needs_neither_label_nor_weight_nor_order(fitted):
    few = fitted.frame.select("AGEP", "score", "job", "id", "SEX").repartition(5)
    found = fitted.model.transform(few).orderBy("id").toPandas()
    assert np.array_equal(found["calibrated_score"], fitted.scored["calibrated_score"])


def test_nothing_in_it_is_on_its_way_out(fitted):
    """Spark warns of what later versions will not have."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        fitted.model.transform(fitted.frame)


def test_a_missing_group_column_is_refused(fitted):
    with pytest.raises(ContractError, match="AGEP"):
        fitted.model.transform(fitted.frame.drop("AGEP"))


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", None, "-0.1", "1.0001"])
@pytest.mark.parametrize("column", ["score", "label"])
def test_values_that_are_no_scores_are_refused(fitted, column, value):
    spoilt = fitted.frame.withColumn(
        column, F.when(F.col("id") < 3, F.lit(value).cast("double")).otherwise(F.col(column))
    )
    if column == "label" and value is None:
        assert fitted.estimator.getOrDefault("labelCol") == "label"
        working_columns(spoilt, fitted.estimator._columns(), labelled=True)
        return
    with pytest.raises(ContractError, match=f"3 in {column}"):
        fitted.estimator.fit(spoilt)
    if column == "score":
        with pytest.raises(ContractError, match="3 in score"):
            fitted.model.transform(spoilt)


@pytest.mark.parametrize(
    ("column", "value"),
    [("w", "NaN"), ("w", "-1"), ("w", "Infinity"), ("w", None), ("split", "train"), ("split", None)],
)
def test_weights_and_splits_are_checked_before_training(fitted, column, value):
    kind = "string" if column == "split" else "double"
    spoilt = fitted.frame.withColumn(
        column, F.when(F.col("id") < 2, F.lit(value).cast(kind)).otherwise(F.col(column))
    )
    with pytest.raises(ContractError, match=f"2 in {column}"):
        fitted.estimator.fit(spoilt)


def test_an_estimator_fitted_twice_is_as_good_as_new(spark, fitted):
    """SynapseML's estimator keeps the bins of its first data; ours keeps nothing."""
    estimator = Multicalibrator(**SETTINGS)
    other = people_table(1500, seed=77)
    other["score"] = other["score"] ** 3
    estimator.fit(spark.createDataFrame(other))
    again = estimator.fit(fitted.frame.repartition(3))
    scored = again.transform(fitted.frame).orderBy("id").toPandas()
    assert np.array_equal(scored["calibrated_score"], fitted.scored["calibrated_score"])
    assert again.stages.trees == fitted.model.stages.trees


def test_either_engine_grows_the_same_trees(spark, fitted):
    """The versions of the library differ; its splits do not."""
    other = Multicalibrator(**SETTINGS, engine="lightgbm").fit(fitted.frame)
    assert other.summary.engine.startswith("lightgbm 4")
    assert other.stages.trees == fitted.model.stages.trees
    scored = other.transform(fitted.frame).orderBy("id").toPandas()
    np.testing.assert_allclose(
        scored["calibrated_score"], fitted.scored["calibrated_score"], rtol=0, atol=1e-6
    )


def test_weight_two_is_the_row_twice(spark, fitted):
    table = people_table(1500, seed=6)
    twice = table.loc[np.repeat(table.index, table["w"].astype(int))].assign(w=1.0)
    models, least = [], 20
    for rows, weight in ((table, "w"), (twice, None)):
        estimator = Multicalibrator(**{**SETTINGS, "weightCol": weight, "minRowsInLeaf": least})
        cells, groups = learning_cells(spark.createDataFrame(rows), estimator)
        models.append(estimator.fit_cells(cells, groups, estimator.trainer(spark), saturation=False))
        if weight:
            first = cells
            # The least leaf is counted in effective rows: fewer than rows, where weights differ.
            least = round(20 / rows_of_weight(cells.of_role(Role.fit)))
    for name in ("weight", "score", "label", "score_sq", "label_sq", "score_label"):
        one, other = getattr(first, name), getattr(cells, name)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-15 * one.sum(), err_msg=name)
    assert models[0].stages.trees == models[1].stages.trees > 0
    scored = [m.transform(fitted.frame).orderBy("id").toPandas()["calibrated_score"] for m in models]
    # LightGBM holds weights as floats of 32 bits.
    np.testing.assert_allclose(scored[0], scored[1], rtol=0, atol=1e-6)


@pytest.mark.synapseml
def test_training_on_rows_is_nearly_training_on_cells(spark, fitted):
    """The same bins, the same objective up to a constant: only the compression differs."""
    estimator = fitted.estimator
    columns = ScoredColumns("score", "label", "w", "split")
    frame = working_columns(fitted.frame, columns, labelled=True)
    frame = with_categories(frame, fitted.model.fitted.families).persist()
    cells = fitted.model.summary.cells
    trainer = RowTrainer(
        frame, WORKING, fitted.model.fitted, cells.bins, TreeTrainer(spark, engine="synapseml")
    )
    by_rows = fit_stages(cells, replace(estimator.settings, max_trees=40), trainer)
    frame.unpersist()
    score, member = fitted.table["score"].to_numpy(), membership(fitted.table)
    found = fitted.table.assign(
        by_rows=by_rows.stages.apply(score, member), by_cells=fitted.scored["calibrated_score"]
    )
    assert loss(found, "by_rows") == pytest.approx(loss(found, "by_cells"), abs=0.002)
    assert loss(found, "by_rows") < loss(found, "score") - 0.01
    assert np.abs(found["by_rows"] - found["by_cells"]).mean() < 0.02


def test_a_perfect_score_ships_as_it_is(spark, caplog):
    """Do no harm: nothing is gained on held-out rows, so nothing is changed."""
    table = people_table(1200, seed=8)
    table["label"] = table["score"]
    frame = spark.createDataFrame(table)
    model = Multicalibrator(**{**SETTINGS, "maxTrees": 20}).fit(frame)
    assert model.stages.stages == ()
    assert model.texts == ()
    assert [r.kept for r in model.summary.rounds] == [False]
    scored = model.transform(frame).toPandas()
    assert np.array_equal(scored["calibrated_score"], scored["score"])


@pytest.mark.parametrize("part", ["fit", "early_stopping"])
def test_too_few_rows_for_a_split_give_the_identity(spark, part):
    table = people_table(200, seed=9)
    table["split"] = np.where(table["split"] == "test", "test", part)
    model = Multicalibrator(**SETTINGS).fit(spark.createDataFrame(table))
    assert (model.stages.stages, model.summary.saturation) == ((), None)


def test_rows_without_a_label_are_not_learned_from(spark, fitted):
    more = (
        fitted.frame.limit(500)
        .withColumn("label", F.lit(None).cast("double"))
        .withColumn("score", F.lit(0.9))
    )
    cells, groups = learning_cells(fitted.frame.unionByName(more), fitted.estimator)
    assert groups == fitted.model.fitted
    assert np.array_equal(cells.label, fitted.model.summary.cells.label)


def test_no_label_at_all_is_refused(fitted):
    bare = fitted.frame.withColumn("label", F.lit(None).cast("double"))
    with pytest.raises(ContractError, match="no labelled row has any weight"):
        fitted.estimator.fit(bare)


def test_the_summary_tells_what_was_done(fitted):
    summary = fitted.model.summary
    assert [r.kept for r in summary.rounds] == [True]
    assert summary.rounds[0].trees == fitted.model.stages.trees > 3
    # A cell is clipped at its mean, its rows one by one.
    assert summary.saturation.loss == pytest.approx(loss(fitted.scored, "calibrated_score"), abs=1e-5)
    assert abs(summary.saturation.epsilon_loss) < 0.01
    assert summary.cells.of_role(Role.test).n.sum() == (fitted.table["split"] == "test").sum()


def test_score_bins_hold_every_edge_of_the_grids(fitted):
    bins = fitted.model.summary.cells.bins
    assert bins.base % base_levels(SETTINGS["levels"]) == 0
    assert bins != ScoreBins.uniform(bins.base)


def test_parameters_copies_and_pipelines(spark, fitted):
    copied = fitted.estimator.copy({fitted.estimator.learningRate: 0.05})
    assert copied.settings.learning_rate == 0.05
    assert fitted.estimator.settings.learning_rate == 0.3
    assert fitted.estimator.getGroups() == GroupSet.from_config(SECTION)
    assert "learningRate: shrinkage" in fitted.estimator.explainParams()
    other = fitted.model.copy({fitted.model.predictionCol: "better"})
    assert isinstance(other, MulticalibratorModel)
    assert other.transform(fitted.frame).columns[-1] == "better"
    assert fitted.model.transform(fitted.frame).columns[-1] == "calibrated_score"
    stages = Pipeline(stages=[fitted.model]).fit(fitted.frame)
    first = stages.transform(fitted.frame).orderBy("id").limit(5).toPandas()
    assert np.array_equal(first["calibrated_score"], fitted.scored["calibrated_score"][:5])
    with pytest.raises(ValueError, match="groups are not set"):
        Multicalibrator().fit(fitted.frame)


def test_scores_of_other_numeric_types_are_the_same(spark, fitted):
    table = fitted.frame.withColumn("score", F.round("score", 3))
    expected = fitted.model.transform(table).orderBy("id").toPandas()["calibrated_score"]
    decimal = fitted.model.transform(table.withColumn("score", F.col("score").cast("decimal(6,3)")))
    found = decimal.orderBy("id").toPandas()["calibrated_score"]
    assert isinstance(found, pd.Series)
    assert np.array_equal(found, expected)


def test_what_the_recipe_auto_tried_is_kept_with_the_model(fitted, tmp_path):
    settings = {key: value for key, value in SETTINGS.items() if key != "learningRate"}
    model = Multicalibrator(**{**settings, "recipe": "auto", "engine": "lightgbm"}).fit(fitted.frame)
    model.save(str(tmp_path / "model"))
    loaded = MulticalibratorModel.load(str(tmp_path / "model"))
    assert loaded.summary == model.summary
    assert loaded.summary.recipe.name == "auto"
    assert sum(candidate.chosen for candidate in loaded.summary.recipe.candidates) == 1
