"""Calibrators by segment against the same estimator on the rows of each segment alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import functions as F

from mcspark import GroupSet, Multicalibrator, MulticalibratorModel
from mcspark.core.cells.cells import Role
from mcspark.core.segments import with_columns
from mcspark.errors import ContractError
from mcspark.ml.cells import census as census_module
from mcspark.ml.cells.census import Census
from mcspark.ml.cells.fixed_point import FixedPoint
from mcspark.ml.cells.groups import with_categories
from mcspark.ml.cells.working import WORKING, working_columns
from mcspark.ml.learning import learning_cells
from mcspark.ml.segment_fits import NOT_JUDGED, SegmentFit
from mcspark.runtime.tasks.executors import driver_cores
from mcspark.scorer import Scorer
from tests.tiny import tiny_tables

BY = ["p/lace", "kind"]
# Joined to one text, the second and the third are alike, as the fourth and the fifth but for capitals.
SEGMENTS = [
    ("../x", 0),
    ("a", 12),
    ("a1", 2),
    ("de", 7),
    ("DE", 7),
    ("", -1),
    ("one label", 5),
    ("all test", 5),
]
SMALL, LACKING = ("tiny", 1), [("de", None), (None, 7)]
ROWS, LEAST = 700, 500
SECTION: dict[str, Any] = {
    "min_share": 0.12,
    "columns": [{"column": "kind"}, {"column": "race"}, {"column": "age", "bins": [0, 30, 60, 90]}],
    "predicates": [{"name": "old men", "where": "age > 50 and race = 'a'"}],
    "intersections": 2,
}
SETTINGS: dict[str, Any] = {"engine": "lightgbm", "scoreBins": 40, "levels": [10, 20], "weightCol": "w"}


def table() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    parts = []
    for number, (place, kind) in enumerate([*SEGMENTS, SMALL, *LACKING]):
        n = 90 if (place, kind) == SMALL or None in (place, kind) else ROWS
        score = rng.beta(1 + number % 3, 2, n)
        # Of the groups of one segment, some are no groups in others.
        race = rng.choice(["a", "b", f"c{number % 3}"], n, p=[0.5, 0.25, 0.25])
        wanted = np.clip(score + 0.15 * (-1) ** number + 0.3 * (race == "a"), 0, 1)
        parts.append(pd.DataFrame({
            "p/lace": place, "kind": kind, "race": race, "age": rng.integers(0, 95, n), "score": score,
            "label": (rng.random(n) < wanted).astype(float) if place != "one label" else 1.0,
            "w": rng.gamma(2.0, 10.0 ** (number % 4), n),
            "split": "test" if place == "all test" else rng.choice([r.name for r in Role], n),
        }))  # fmt: skip
    people = pd.concat(parts, ignore_index=True).sample(frac=1, random_state=1, ignore_index=True)
    return people.assign(id=np.arange(len(people)), kind=people["kind"].astype("Int64"))


@dataclass
class Learned:
    frame: Any
    estimator: Multicalibrator
    pooled: MulticalibratorModel
    segments: Any
    model: MulticalibratorModel
    rows: pd.DataFrame

    def alone(self, value: tuple[Any, ...]) -> MulticalibratorModel:
        """What the same estimator learns from the rows of one segment."""
        return self.estimator.fit(
            self.frame.where((F.col("p/lace") == value[0]) & (F.col("kind") == value[1]))
        )


def learn(frame, estimator, **changes):
    """A pooled calibrator, and one for each segment."""
    pooled = estimator.fit(frame)
    plan = GroupSet.from_config(SECTION)
    families, places = with_columns(plan.families, BY)
    names = replace(WORKING, weight=WORKING.weight)
    labelled = with_categories(working_columns(frame, estimator._columns(), labelled=True), families)
    fit = SegmentFit(estimator, plan, [10, 20], 40, BY, places, LEAST, 600.0)
    cells, groups = learning_cells(frame, estimator)
    scale = FixedPoint.of(labelled, names.weight)
    segments = replace(fit, **changes).fit(labelled, names, groups, cells.bins, scale)
    return pooled, segments


@pytest.fixture(scope="module")
def learned(spark) -> Iterator[Learned]:
    with tiny_tables(spark):
        yield _learned(spark)


def _learned(spark) -> Learned:
    rows = table()
    frame = spark.createDataFrame(rows.astype({"kind": object}).where(rows.notna(), None), (
        "`p/lace` string, kind long, race string, age long, score double, label double, w double, "
        "split string, id long"
    ))  # fmt: skip
    frame = frame.localCheckpoint()
    estimator = Multicalibrator(groups=SECTION, **SETTINGS)
    pooled, segments = learn(frame, estimator)
    return Learned(frame, estimator, pooled, segments, segments.model(pooled), rows)


def test_the_segments_are_those_that_are_large_enough(learned):
    census = learned.segments.census
    values = [census.table.values(i) for i in range(len(census.table))]
    assert values == [*sorted(SEGMENTS), SMALL]
    assert (census.own, census.pooled, census.rows) == (len(SEGMENTS), 1, (*[ROWS] * len(SEGMENTS), 90))
    own = [learned.model.table.values(i) for i in range(len(learned.model.table))]
    assert own == sorted(SEGMENTS)
    assert len(learned.model.parts) == len(SEGMENTS)


@pytest.mark.parametrize("value", [v for v in SEGMENTS if v[0] not in ("DE", "all test")])
def test_each_is_the_model_of_its_rows_alone(learned, value):
    """Groups, trees, and the numbers of the rounds that were tried, to the last bit."""
    number = sorted(SEGMENTS).index(value)
    part, alone = learned.model.parts[number], learned.alone(value)
    assert part.fitted == alone.fitted
    threads = ("[num_threads: 1]", f"[num_threads: {driver_cores()}]")  # what no tree depends on
    assert part.texts == tuple(text.replace(*reversed(threads)) for text in alone.texts)
    assert part.calibrator.to_dict() == alone.calibrator.to_dict()
    assert (part.summary.rounds, part.summary.recipe) == (alone.summary.rounds, alone.summary.recipe)


def test_most_of_them_learn_something_and_not_the_same(learned):
    texts = [part.texts for part in learned.model.parts]
    assert len(set(filter(None, texts))) >= 6
    assert len({part.fitted for part in learned.model.parts}) > 1
    assert any(part.fitted.pairs for part in learned.model.parts)


def test_rows_are_scored_by_their_segment_and_others_by_the_pooled_calibrator(learned):
    rows = [*SEGMENTS[:3], SMALL, *LACKING, ("never seen", 7), ("a", 2)]
    given = learned.rows.sort_values("id").head(len(rows)).assign(
        **{"p/lace": [place for place, _ in rows], "kind": pd.array([kind for _, kind in rows], "Int64")}
    )  # fmt: skip
    spark = learned.frame.sparkSession
    frame = spark.createDataFrame(
        given.astype({"kind": object}).where(given.notna(), None), learned.frame.schema
    )
    found = learned.model.transform(frame).toPandas().sort_values("id")["calibrated_score"].to_list()
    models = [*(learned.alone(value) for value in SEGMENTS[:3]), *[learned.pooled] * 5]
    expected = [
        model.transform(frame.where(F.col("id") == i)).first()["calibrated_score"]
        for i, model in zip(given["id"].tolist(), models, strict=True)
    ]
    assert found == expected
    assert len(set(found)) == len(rows)


def test_saved_and_read_again_it_scores_alike_with_and_without_spark(learned, tmp_path):
    path = str(tmp_path / "model")
    learned.model.write().save(path)
    again = MulticalibratorModel.load(path)
    rows = learned.frame.where("id % 20 = 0")
    first = learned.model.transform(rows).toPandas().sort_values("id")
    second = again.transform(rows).toPandas().sort_values("id")
    assert first["calibrated_score"].equals(second["calibrated_score"])
    assert [part.texts for part in again.parts] == [part.texts for part in learned.model.parts]
    assert [part.summary for part in again.parts] == [part.summary for part in learned.model.parts]
    scorer, plain = Scorer.load(path), first.astype({"kind": "Int64"})
    assert np.array_equal(scorer.score(plain), first["calibrated_score"])
    one = rows.where("id = 60").first().asDict()
    assert scorer.score_one(one) == first["calibrated_score"].iloc[3]
    assert scorer.explain_one(one).calibrated == first["calibrated_score"].iloc[3]
    explained = learned.model.explain(first.head(2))
    assert set(explained["row"]) <= {0, 1}


def test_a_segment_without_held_out_rows_shares_the_pooled_calibrator(learned):
    frame = learned.frame.withColumn(
        "split",
        F.when((F.col("split") == "test") & (F.col("p/lace") == "de"), "fit").otherwise(F.col("split")),
    )
    _, segments = learn(frame, Multicalibrator(groups=SECTION, recipe="paper", maxTrees=2, **SETTINGS))
    number = sorted(SEGMENTS).index(("de", 7))
    assert segments.reasons == {number: NOT_JUDGED}
    assert number not in segments.models
    assert segments.pooled == 2


def test_too_many_segments_are_refused(learned, monkeypatch):
    monkeypatch.setattr(census_module, "MAX_SEGMENTS", 3)
    with pytest.raises(ContractError, match=r"8 segments by race, kind .* raise segments.min_rows"):
        frame = with_categories(learned.frame, with_columns((), ["race", "kind"])[0])
        Census.of(frame, ["race", "kind"], [0, 1], None, 300)
