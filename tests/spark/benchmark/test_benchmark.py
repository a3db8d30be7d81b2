from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import functions as F

from mcspark.benchmark.checks import LEVELS, brute_force
from mcspark.benchmark.features import memberships
from mcspark.benchmark.measure import Options, benchmark
from mcspark.benchmark.population import make_population
from mcspark.benchmark.table import TARGETS
from mcspark.core.cells.levels import level_index, level_value
from mcspark.core.metrics.calibration_error import calibration_error
from mcspark.ml.cells.groups import GroupSet, with_categories
from mcspark.ml.cells.signatures import with_signature, word_names
from mcspark.pipelines.run import Run

KEY = ["SERIALNO", "SPORDER"]


@pytest.fixture(scope="module")
def synthetic(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmark") / "synthetic"
    return make_population(spark, 5_000, (), str(folder))


@pytest.fixture(scope="module")
def attributed(spark, synthetic):
    whole, _ = synthetic
    rows = spark.read.parquet(whole.scored).join(spark.read.parquet(whole.attributes), KEY)
    return rows.withColumn("split", F.when(F.col("score") < 0.6, "test").otherwise("fit")).cache()


@pytest.fixture(scope="module")
def groups(attributed, synthetic):
    plan = GroupSet.from_config(synthetic[0].configuration(10).groups)
    return plan.fit(with_categories(attributed.where("label is not null"), plan.families))


def test_acs_records_are_expanded_by_their_weight_to_exactly_the_wanted_rows(spark, shared_data, tmp_path):
    source = str(shared_data / "data" / "acs2024" / "p_56.parquet")
    whole, tenth = make_population(spark, 30_000, (source,), str(tmp_path / "acs"))
    scored, attributes = spark.read.parquet(whole.scored), spark.read.parquet(whole.attributes)
    assert whole.rows == scored.count() == scored.select(KEY).distinct().count() == 30_000
    assert attributes.count() == scored.join(attributes, KEY).count() == 30_000
    assert 0.08 < tenth.rows / 30_000 < 0.12
    assert tenth.rows == spark.read.parquet(tenth.attributes).count()
    assert scored.where("score < 0 or score > 1 or label not in (0, 1)").count() == 0

    persons = spark.read.parquet(str(tmp_path / "acs" / "persons" / "scored"))
    record = F.regexp_extract("SERIALNO", "^(.*)-", 1).alias("SERIALNO")
    copies = scored.groupBy(record, "SPORDER").agg(F.count("*").alias("n"), F.max("label").alias("copied"))
    total = persons.agg(F.sum("PWGTP")).first()[0]
    joined = persons.join(copies, KEY, "left").fillna(0, ["n"]).toPandas()
    wanted = joined["PWGTP"] * 30_000 / total
    assert (joined["n"] - wanted).abs().max() <= 1
    some = joined[joined["n"] > 0]
    assert (some["label"] == some["copied"]).all()


def test_a_population_that_is_there_is_used_again(spark, synthetic):
    before = [p.stat().st_mtime_ns for p in sorted(Path(synthetic[0].folder).rglob("*.parquet"))]
    again = make_population(spark, 5_000, (), str(Path(synthetic[0].folder).parent))
    after = [p.stat().st_mtime_ns for p in sorted(Path(synthetic[0].folder).rglob("*.parquet"))]
    assert again == synthetic
    assert before == after


def test_features_from_the_names_are_the_groups(attributed, groups):
    assert len(groups.names) > 30
    frame = with_signature(with_categories(attributed, groups.families), groups)
    table = frame.select(
        *word_names(groups), *(value.alias(name) for name, value in memberships(groups.names).items())
    ).toPandas()
    ours = groups.membership(table[word_names(groups)].to_numpy(np.int64))
    plain = table[[f"g{i}" for i in range(len(groups.names))]].to_numpy(bool)
    np.testing.assert_array_equal(plain, ours)


def test_brute_force_is_the_error_of_the_definition(attributed, groups):
    error, loss, worst = brute_force(attributed, "score")
    table = attributed.where("label is not null and split = 'test'")
    table = table.select(
        "score", "label", *(value.alias(name) for name, value in memberships(groups.names).items())
    ).toPandas()
    score, label = table["score"].to_numpy(), table["label"].to_numpy()
    member = table[[f"g{i}" for i in range(len(groups.names))]].to_numpy(bool)
    errors = calibration_error(level_value(level_index(score, LEVELS), LEVELS), label, member)
    assert error == pytest.approx(errors.max(), rel=1e-12)
    assert worst == groups.names[int(errors.argmax())]
    assert loss == pytest.approx(np.mean((score - label) ** 2), rel=1e-12)


@pytest.mark.synapseml
def test_the_whole_benchmark_measures_and_checks(spark, tmp_path):
    options = Options(rows=10_000, repeats=1, trees=30, folds=1, sources=(), workdir=str(tmp_path))
    run = Run("benchmark", "benchmark-test", options.configuration(), spark)
    result = benchmark(run, options)
    assert result["rows"] == 10_000
    assert all(result[name] > 0 for name in TARGETS)
    few_rows = {"loss_of_cells_within_0.2_percent", "mc_error_of_cells_within_folds"}
    failed = {name for name, fine in result["checks"].items() if not fine} - few_rows
    assert not failed
    assert [q["training"] for q in result["quality"]] == ["none", "rows", "cells"]
    assert {"scores_equal", "metrics_before_equal", "metrics_after_equal", "rows_add_up"} <= set(
        result["checks"]
    )
    assert result["trees"] <= 30
    assert set(result["costs"]) >= {"floor", "calibrate", "score", "audit", "scan", "additive", "transform"}


def test_a_benchmark_with_a_wrong_answer_is_an_error(spark, tmp_path, monkeypatch):
    from mcspark.benchmark import measure
    from mcspark.errors import McsparkError

    options = replace(Options(10_000, 1, 5, 0, (), "w"), workdir=str(tmp_path))
    wrong = {
        **dict.fromkeys(TARGETS, 1.0),
        "rows": 1,
        "trees": 1,
        "repeats": 1,
        "costs": {},
        "stages": {},
        "quality": [],
        "checks": {"scores_equal": False, "rows_add_up": True},
    }
    monkeypatch.setattr(measure, "benchmark", lambda run, options: wrong)
    run = Run("benchmark", "benchmark-test", options.configuration(), spark)
    with pytest.raises(McsparkError, match="scores_equal"):
        measure.body(options, str(tmp_path / "result.json"))(run)
    assert '"scores_equal": false' in (tmp_path / "result.json").read_text()
