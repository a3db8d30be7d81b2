"""Learning from columns: calibrate, score, explain and what is refused, against LightGBM and pandas."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from mcspark import MulticalibratorModel
from mcspark.cli.score_local import score_file
from mcspark.cli.show import shown
from mcspark.export.sql import to_sql
from mcspark.pipelines.calibrate import calibrate
from mcspark.pipelines.score import score
from mcspark.scorer import Scorer
from mcspark.scorer.scoring import read_model
from tests.tiny import tiny_tables

from .conftest import (
    ATTRIBUTES,
    KEY,
    Calibrated,
    add_columns,
    configuration,
    population,
    read,
    start,
    write_tables,
)

SHOPS = ["", "it's", 'a "b" \\n', "ü/1", "null", "NaN", *(f"s{i}" for i in range(90))]
COLUMNS = [{"column": "Shop no."}, {"column": "hours", "bins": [0, 10, 20, 30, 40, 60]}]
NEVER_MET = "never met"


def people_of(rows: int = 2600, seed: int = 5) -> pd.DataFrame:
    """People whose labels depend on their shop; some have none, and the first, without labels, a new one."""
    people = population(rows, seed)
    rng = np.random.default_rng(seed)
    # Half of them in a few shops, the others in all of them.
    place = np.where(rng.random(rows) < 0.5, rng.integers(0, 8, rows), rng.integers(0, len(SHOPS), rows))
    shift = np.resize([-0.35, 0.3, 0.0], len(SHOPS))[place]
    labels = (rng.random(rows) < np.clip(people["score"] + shift, 0, 1)).astype(float)
    shop = pd.Series(np.array(SHOPS)[place], dtype=object)
    shop[50:90] = shop[-40:] = None
    shop[:50] = NEVER_MET
    hours = pd.Series(rng.uniform(0, 70, rows))
    hours[::9] = np.nan
    more = {"Shop no.": shop, "hours": hours, "label": labels.where(people["label"].notna())}
    return people.assign(**more)


def write(folder: Path, people: pd.DataFrame) -> None:
    write_tables(folder, people)
    add_columns(folder, "attributes", people, "Shop no.", "hours")


class Run(Calibrated):
    @property
    def rows(self) -> pd.DataFrame:
        keep = [*KEY, *ATTRIBUTES, "Shop no.", "hours"]
        return self.output.merge(self.people[keep], on=KEY, how="left")

    @property
    def model(self) -> Path:
        return self.out / "model"


@pytest.fixture(scope="module")
def run(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("features")
    people = people_of()
    write(folder / "tables", people)
    config = configuration(
        folder / "tables", folder / "out", features={"columns": COLUMNS},
        calibrator={"link": "logit", "rounds": 2, "refit": True, "engine": "auto"},
        report={"path": str(folder / "out" / "report.html")},
    )  # fmt: skip
    with tiny_tables(spark):
        summary = calibrate(start(spark, "calibrate", config))
        yield Run(people, folder / "tables", folder / "out", config, summary)


def test_the_trees_have_learned_from_the_columns(run):
    assert run.summary["features"]["columns"] == 6
    assert run.summary["features"]["categories"] > 100
    assert run.summary["groups"] < 20
    assert run.summary["engine"].startswith("lightgbm")
    plain = json.loads((run.model / "model.json").read_text())
    shops = next(f for f in plain["features"] if f["column"] == "Shop no.")
    assert set(shops["categories"]) == set(SHOPS)
    text = (run.model / "trees_0.txt").read_text()
    assert "num_cat=1" in text
    curves = pd.read_parquet(run.model / "curves")
    assert curves["value"][curves["group_name"] == "Shop no.=it's"].abs().max() > 0.1
    assert (run.folder / "out" / "report.html").stat().st_size > 10_000
    assert "Learned from 6 columns" in shown(str(run.model), 5)


def test_scores_are_those_of_lightgbms_own_trees(run):
    """The categories are looked up by pandas, the trees are run by LightGBM."""
    plain, rows = json.loads((run.model / "model.json").read_text()), run.rows
    codes = []
    for feature in plain["features"]:
        places = {c: float(i) for i, c in enumerate(feature["categories"], start=1)}
        if feature["kind"] == "predicate":
            codes.append(((rows["SEX"] == 2) & (rows["AGEP"] >= 65)).astype(float))
        elif feature["kind"] == "bins":
            place = pd.cut(rows[feature["column"]], feature["bins"], right=False, labels=False)
            codes.append(place.map(places))
        else:
            codes.append(rows[feature["column"]].map(places).fillna(0.0))
    score = rows["score"].to_numpy()
    for i in range(len(run.summary["stages"])):
        booster = lightgbm.Booster(model_file=str(run.model / f"trees_{i}.txt"))
        added = booster.predict(np.column_stack([score, *codes]), raw_score=True)
        inner = np.clip(score, 1e-6, 1 - 1e-6)
        score = 1 / (1 + np.exp(-(np.log(inner / (1 - inner)) + added)))
    assert np.ptp(rows["calibrated_score"][rows["Shop no."].isna()]) > 0
    np.testing.assert_allclose(rows["calibrated_score"], score, rtol=0, atol=1e-12)


def test_everything_that_scores_gives_the_same_bits(spark, run, tmp_path):
    rows = run.rows
    wanted = rows["calibrated_score"].to_numpy()
    scorer = Scorer.load(run.model)
    table = rows[["score", *ATTRIBUTES, "Shop no.", "hours"]]
    assert np.array_equal(scorer.score(table), wanted)
    some = table.iloc[::37].to_dict("records")
    assert [scorer.score_one(row) for row in some] == wanted[::37].tolist()
    for row, value in zip(some[:5], wanted[::37], strict=False):
        found = scorer.explain_one(row)
        assert found.calibrated == value
        assert row["Shop no."] is None or f"Shop no.={row['Shop no.']}" in found.groups or row[
            "Shop no."
        ] == NEVER_MET  # fmt: skip
    table.to_parquet(tmp_path / "rows.parquet")
    score_file(str(run.model), str(tmp_path / "rows.parquet"), str(tmp_path / "local.parquet"))
    local = pd.read_parquet(tmp_path / "local.parquet")
    assert np.array_equal(local["calibrated_score"], wanted)
    config = configuration(run.folder / "tables", tmp_path / "out", model={"path": str(run.model)})
    summary = score(start(spark, "score", config))
    again = read(summary["paths"]["output"])
    assert np.array_equal(again["calibrated_score"], wanted)
    assert summary["unseen_categories"] == {"Shop no.": 50}


def test_a_loaded_model_is_the_same(spark, run):
    model = MulticalibratorModel.load(str(run.model))
    frame = spark.createDataFrame(run.rows.drop(columns=["calibrated_score"]).head(200))
    found = model.transform(frame.repartition(3)).toPandas().sort_values(KEY)
    assert np.array_equal(found["calibrated_score"], run.rows.head(200)["calibrated_score"])
    rows = run.rows
    steps = model.explain(rows[rows["Shop no."] == "it's"].head(3))
    assert set(steps["name"][steps["kind"] == "group"]) >= {"Shop no.=it's"}


def test_the_exported_model_gives_the_same_scores_in_a_database(run):
    rows = run.rows.drop(columns=["calibrated_score"])
    with duckdb.connect() as connection:
        connection.register("given", pa.Table.from_pandas(rows))
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
        for statement in to_sql(read_model(run.model), "duckdb", "people", KEY):
            connection.execute(statement)
        found = connection.execute("SELECT * FROM people_calibrated").df()
    both = run.rows.merge(found, on=KEY, suffixes=("", "_there"))
    assert len(both) == len(rows)
    np.testing.assert_allclose(both["calibrated_score_there"], both["calibrated_score"], rtol=0, atol=1e-12)


def test_several_scores_learn_from_the_columns_each_as_if_it_were_alone(spark, run, tmp_path):
    people = run.people.assign(root=np.sqrt(run.people["score"]))
    write(tmp_path / "tables", people)
    add_columns(tmp_path / "tables", "scored", people, "root")
    calibrator = {"link": "logit", "rounds": 2, "refit": True, "engine": "auto"}
    config = configuration(
        tmp_path / "tables", tmp_path / "out", features={"columns": COLUMNS}, calibrator=calibrator,
        scored={"scores": ["score", "root"]},
    )  # fmt: skip
    scores = calibrate(start(spark, "calibrate", config))["scores"]
    one, other = (MulticalibratorModel.load(scores[name]["paths"]["model"]) for name in ("score", "root"))
    alone = MulticalibratorModel.load(str(run.model))
    assert (one.fitted, one.texts) == (alone.fitted, alone.texts)
    assert one.calibrator.to_dict() == alone.calibrator.to_dict()
    assert other.fitted == alone.fitted
    assert scores["root"]["metrics"]["after"]["loss"] < scores["root"]["metrics"]["before"]["loss"]
