"""Calibrate by segment, from the tables of a run to what it leaves, and scoring with that."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mcspark import MulticalibratorModel
from mcspark.cli.diff import diff
from mcspark.cli.explain import explain
from mcspark.cli.export import export
from mcspark.cli.report import draw_again
from mcspark.cli.score_local import score_file
from mcspark.cli.show import shown
from mcspark.cli.text import Form, Target
from mcspark.core.metrics.calibration_error import calibration_error
from mcspark.errors import ConfigurationError, ContractError, GateError
from mcspark.pipelines.calibrate import calibrate
from mcspark.pipelines.score import score
from mcspark.scorer import Scorer
from tests.tiny import tiny_tables

from .conftest import (
    ATTRIBUTES,
    KEY,
    Calibrated,
    add_columns,
    configuration,
    content,
    population,
    read,
    start,
    write_tables,
)

COUNTRIES = ["", "a/b", "nul", "small"]


def people_of(rows: int = 2600, seed: int = 3) -> pd.DataFrame:
    """People of some countries, one of which is small, with a bias of each country's own; a few have none."""
    people = population(rows, seed)
    rng = np.random.default_rng(seed)
    place = rng.choice(len(COUNTRIES), rows, p=[0.35, 0.35, 0.27, 0.03])
    shift = np.array([0.25, -0.2, 0.0, 0.3])[place]
    labels = (rng.random(rows) < np.clip(people["score"] + shift, 0, 1)).astype(float)
    country = pd.Series(np.array(COUNTRIES)[place], dtype=object)
    country[:20] = country[-20:] = None  # the first have no label
    return people.assign(country=country, label=labels.where(people["label"].notna()))


def write(folder: Path, people: pd.DataFrame) -> None:
    write_tables(folder, people)
    add_columns(folder, "attributes", people, "country")


class Run(Calibrated):
    @property
    def output(self) -> pd.DataFrame:
        return super().output.merge(self.people[[*KEY, *ATTRIBUTES, "country"]], on=KEY, how="left")

    @property
    def table(self) -> pd.DataFrame:
        return pd.read_parquet(self.summary["paths"]["segments"], partitioning=None)


@pytest.fixture(scope="module")
def run(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("segments")
    people = people_of()
    write(folder / "tables", people)
    config = configuration(
        folder / "tables", folder / "out", segments={"by": ["country"], "min_rows": 300},
        report={"path": str(folder / "out" / "report.html")},
    )  # fmt: skip
    with tiny_tables(spark):
        summary = calibrate(start(spark, "calibrate", config))
        yield Run(people, folder / "tables", folder / "out", config, summary)


def test_the_summary_tells_who_has_a_calibrator(run):
    told = run.summary["segments"]
    assert (told["by"], told["min_rows"], told["own"], told["pooled"]) == (["country"], 300, 3, 1)
    assert told["rows"]["own"] + told["rows"]["pooled"] == run.summary["rows"]["labelled"]
    assert (told["reasons"], told["unmet"]) == ({}, [])
    assert told["worst"]["segment"] == run.table.sort_values("number")["segment"].iloc[0]
    assert run.summary["engine"].startswith("lightgbm")


@pytest.mark.parametrize("country", COUNTRIES[:3])
def test_each_segment_is_scored_as_by_a_run_on_its_rows_alone(spark, run, tmp_path, country):
    people = run.people[run.people["country"] == country].reset_index(drop=True)
    write(tmp_path, people)
    config = configuration(tmp_path, tmp_path / "out", gate={"must_improve": False})
    alone = calibrate(start(spark, "calibrate", config))
    found = run.output[run.output["country"] == country].reset_index(drop=True)
    expected = read(alone["paths"]["output"])
    assert found[list(expected)].equals(expected)
    model = MulticalibratorModel.load(run.summary["paths"]["model"])
    number = sorted(COUNTRIES[:3]).index(country)
    one = MulticalibratorModel.load(alone["paths"]["model"])
    assert model.parts[number].calibrator.to_dict() == one.calibrator.to_dict()
    assert model.parts[number].fitted == one.fitted


def test_the_others_are_scored_as_by_a_run_without_segments(spark, run, tmp_path):
    config = configuration(run.folder / "tables", tmp_path / "out")
    alone = calibrate(start(spark, "calibrate", config))
    others = run.output["country"].isna() | (run.output["country"] == "small")
    assert 80 < others.sum() < 250
    expected = read(alone["paths"]["output"])
    assert run.output[others]["calibrated_score"].equals(expected[others]["calibrated_score"])
    assert run.summary["groups"] == alone["groups"]
    assert "segments" not in alone
    assert "segments" not in alone["paths"]


def test_the_table_of_segments_is_that_of_the_published_rows(run):
    """Rows, MC error and loss of each again from the output, by pandas and the definition."""
    table, output = run.table.set_index("segment"), run.output
    assert sorted(run.table["segment"].dropna()) == [f"country={c}" for c in sorted(COUNTRIES)]
    assert run.table["segment"].isna().sum() == 1
    assert not table.loc["country=small", "own"]
    model = MulticalibratorModel.load(run.summary["paths"]["model"])
    levels = run.summary["lead"]["levels"]
    for number, country in enumerate(sorted(COUNTRIES[:3])):
        rows = output[(output["country"] == country) & output["label"].notna()]
        test, found = rows[rows["split"] == "test"], table.loc[f"country={country}"]
        assert (found["rows"], found["test_rows"], found["levels"]) == (len(rows), len(test), levels)
        member = np.column_stack([inside(test, name) for name in model.parts[number].fitted.names])
        label, weight = test["label"].to_numpy(), test["PWGTP"].to_numpy()
        for when, column in (("before", "score"), ("after", "calibrated_score")):
            middle = (np.minimum(np.floor(test[column] * levels + 1e-12), levels - 1) + 0.5) / levels
            error = calibration_error(middle.to_numpy(), label, member, weight)
            assert found[f"error_{when}"] == pytest.approx(error.max(), abs=1e-9)
            loss = np.average((test[column] - label) ** 2, weights=weight)
            assert found[f"loss_{when}"] == pytest.approx(loss, abs=1e-9)
        assert found["error_after"] < found["error_before"] or country == "nul"


def inside(people: pd.DataFrame, name: str) -> pd.Series:
    if name == "women_65_plus":
        return (people["SEX"] == 2) & (people["AGEP"] >= 65)
    column, value = name.split("=")
    if value.startswith("["):
        low, high = map(float, value.strip("[)").split(","))
        return people[column].between(low, high, "left")
    return people[column] == int(value)


def test_the_report_has_the_segments_and_can_be_drawn_again(run, tmp_path):
    page = Path(run.summary["paths"]["report"]).read_text()
    assert 'id="segments"' in page
    assert "country=a/b" in page
    list(draw_again(run.summary["paths"]["manifest"], str(tmp_path / "again.html")))
    part = slice(page.index('id="segments"'), page.index('id="score"'))
    again = (tmp_path / "again.html").read_text()
    assert again[again.index('id="segments"') : again.index('id="score"')] == page[part]
    card = Path(run.summary["paths"]["report"].replace(".html", ".md")).read_text()
    assert "## Segments" in card


def test_scoring_takes_the_calibrator_of_the_segment(spark, run, tmp_path):
    people = run.people.assign(country=run.people["country"].replace({"small": "never seen"}))
    write(tmp_path, people)
    config = configuration(tmp_path, tmp_path / "out", model={"path": run.summary["paths"]["model"]})
    summary = score(start(spark, "score", config))
    assert summary["segments"] == {"by": ["country"], "own": 3}
    found, expected = read(summary["paths"]["output"]), run.output
    assert found["calibrated_score"].equals(expected["calibrated_score"])


def test_commands_without_spark_know_segments(run, tmp_path):
    path = run.summary["paths"]["model"]
    rows = run.output.drop(columns="calibrated_score")
    rows.to_parquet(tmp_path / "rows.parquet", index=False)
    score_file(path, str(tmp_path / "rows.parquet"), str(tmp_path / "scored.parquet"))
    scored = pd.read_parquet(tmp_path / "scored.parquet")
    assert np.array_equal(scored["calibrated_score"], run.output["calibrated_score"])
    row = run.output.dropna(subset=["country"]).iloc[0]
    given = {
        "score": row["score"],
        **{name: int(row[name]) for name in ATTRIBUTES},
        "country": row["country"],
    }
    told = json.loads(explain(path, json.dumps(given), None, None, None, Form.json))
    assert told["calibrated"] == row["calibrated_score"]
    assert "3 segments have a calibrator of their own" in shown(path)
    assert "Segments by country: 3 with a calibrator" in shown(run.summary["paths"]["manifest"])
    assert "country=a/b" in shown(run.summary["paths"]["segments"])
    with pytest.raises(ConfigurationError, match=r"export the folder of one segment, such as segments/0000"):
        list(export(path, Target.json))
    assert list(export(f"{path}/segments/0001", Target.json))
    same = diff(path, path, str(tmp_path / "rows.parquet"))
    assert "3 in A, 3 in B, 3 in both" in same
    assert "The two models give every row the same score" in same


def other_part(model: Path) -> None:
    shutil.copy(model / "segments/0000/model.json", model / "segments/0001/model.json")


NOT_WHOLE = {
    "no readable model": lambda model: (model / "segments/0001/model.json").unlink(),
    "segments/0001/model.json: it was written with another model": other_part,
    "segments/0002/model.json: it was changed": lambda model: changed(model / "segments/0002/model.json"),
}


def changed(file: Path) -> None:
    file.write_text(file.read_text().replace('"trees"', '"trees" ', 1).replace("0.", "0.1", 1))


@pytest.mark.parametrize("message", NOT_WHOLE)
def test_a_model_that_is_not_whole_is_refused(spark, run, tmp_path, message):
    place = tmp_path / "model"
    shutil.copytree(run.summary["paths"]["model"], place, ignore=shutil.ignore_patterns(".*.crc"))
    NOT_WHOLE[message](place)
    for load in (MulticalibratorModel.load, Scorer.load):
        with pytest.raises(ContractError, match=message):
            load(str(place))


def test_dates_and_parts_of_the_key_are_segments_too(spark, tmp_path):
    people = people_of(900)
    write(tmp_path, people)
    file = tmp_path / "scored" / "part-0.parquet"
    days = np.where(people.index % 2, np.datetime64("2026-02-28", "D"), np.datetime64("NaT"))
    frame = pd.read_parquet(file).assign(day=pd.Series(days).dt.date)
    frame.to_parquet(file, index=False)
    settings = {"calibrator": {"max_trees": 2, "score_bins": 0}, "gate": {"must_improve": False}}
    by = {"by": ["day", KEY[1]], "min_rows": 60}
    config = configuration(tmp_path, tmp_path / "out", segments=by, **settings)
    summary = calibrate(start(spark, "calibrate", config))
    table = pd.read_parquet(summary["paths"]["segments"], partitioning=None).set_index("segment")
    labelled = people[people["label"].notna() & (people.index % 2 == 1)]
    count = labelled.groupby(KEY[1]).size()
    assert {n: table.loc[f"day=2026-02-28 & SPORDER={n}", "rows"] for n in count.index} == count.to_dict()
    assert summary["segments"]["own"] == (count >= 60).sum() > 0
    assert summary["segments"]["pooled"] == (count < 60).sum()
    large = configuration(tmp_path, tmp_path / "out", segments={**by, "min_rows": 10_000}, **settings)
    none = calibrate(start(spark, "calibrate", large))
    assert (none["segments"]["own"], none["segments"]["pooled"]) == (0, len(count))
    model = MulticalibratorModel.load(none["paths"]["model"])
    assert (model.table, model.parts) == (None, ())
    frame.assign(day=pd.Series([None] * len(frame), dtype="object")).astype({"day": "string"}).to_parquet(
        file, index=False
    )
    nobody = calibrate(start(spark, "calibrate", large))["segments"]
    assert (nobody["own"], nobody["pooled"], nobody["worst"]) == (0, 0, None)


def test_a_limit_of_the_segments_refuses_the_run(spark, run):
    before = content(run.folder / "out" / "calibrated")
    config = run.config.model_copy(
        update={"segments": run.config.segments.model_copy(update={"max_mc_error": 0.001})}
    )
    with pytest.raises(GateError, match=r"segment country=.*above segments.max_mc_error 0.001") as caught:
        calibrate(start(spark, "calibrate", config))
    assert content(run.folder / "out" / "calibrated") == before
    manifest = json.loads(Path(caught.value.paths["manifest"].removeprefix("file:")).read_text())
    assert len(manifest["segments"]["unmet"]) >= 3
    assert len(pd.read_parquet(caught.value.paths["segments"], partitioning=None)) == 5
