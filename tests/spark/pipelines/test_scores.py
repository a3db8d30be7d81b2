"""Several scores of one table: calibrated, scored and audited in one run, each as if it were alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mcspark import MulticalibratorModel
from mcspark.cli.diff import diff
from mcspark.cli.export import export
from mcspark.cli.history import as_text as told_history
from mcspark.cli.history import history_of
from mcspark.cli.report import draw_again
from mcspark.cli.score_local import score_file
from mcspark.cli.show import shown
from mcspark.cli.text import Target
from mcspark.config import Config
from mcspark.errors import ConfigurationError, ContractError, GateError
from mcspark.pipelines.audit import audit
from mcspark.pipelines.calibrate import calibrate
from mcspark.pipelines.check import check
from mcspark.pipelines.score import score
from mcspark.report import page as page_module
from mcspark.report.pictures import SECTIONS
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

ODD = "b.2 `/` x"
"""A name that no file may have, and that Spark must be told in quotes."""

BAD = {ODD: [None, 1.5, 0.2], "score": [0.5, np.nan, -3.0]}
"""Values of the last rows."""

REASONS = [
    {f"score_null: {ODD}"},
    {"score_null: score", f"score_out_of_range: {ODD}"},
    {"score_out_of_range: score"},
]


def people_of(rows: int = 2600, seed: int = 5) -> pd.DataFrame:
    """People with two scores, of which the second is the square root of the first, and three bad rows."""
    people = population(rows, seed)
    people[ODD] = np.sqrt(people["score"])
    for name, values in BAD.items():
        people.loc[people.index[-len(values) :], name] = np.array(values, dtype=float)
    people.loc[people.index[-4], ODD] = 1 + 1e-12
    return people


def write(folder: Path, people: pd.DataFrame) -> None:
    write_tables(folder, people)
    add_columns(folder, "scored", people, ODD)


def config_of(tables: Path, out: Path, *names: str, **sections: Any) -> Config:
    scored = {"scores": list(names)} if len(names) > 1 else {"score": names[0]}
    return configuration(tables, out, **{**sections, "scored": {**scored, **sections.get("scored", {})}})


@pytest.fixture(scope="module")
def run(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scores")
    people = people_of()
    write(folder / "tables", people)
    config = config_of(
        folder / "tables", folder / "out", "score", ODD, report={"path": str(folder / "out" / "report.html")}
    )  # fmt: skip
    with tiny_tables(spark):
        summary = calibrate(start(spark, "calibrate", config))
        yield Calibrated(people, folder / "tables", folder / "out", config, summary)


@pytest.fixture(scope="module")
def alone(spark, run):
    """Runs with one score each, on the rows that have both."""
    write(run.folder / "good", run.people.iloc[: -len(REASONS)])
    configs = {
        name: config_of(run.folder / "good", run.folder / f"alone-{i}", name)
        for i, name in enumerate(("score", ODD))
    }
    return {name: calibrate(start(spark, "calibrate", config)) for name, config in configs.items()}


def test_a_row_needs_all_its_scores(run):
    rows = run.summary["rows"]
    assert rows["in"] == len(run.people)
    assert (rows["scored"], rows["rejected"]) == (len(run.people) - 3, 3)
    rejected = read(run.summary["paths"]["rejected"]).set_index(KEY)["reasons"]
    keys = run.people[KEY].iloc[-3:].itertuples(index=False, name=None)
    assert [set(rejected[key]) for key in keys] == REASONS
    told = run.summary["rejected_by_reason"]
    assert told == {reason: sum(reason in one for one in REASONS) for reason in set().union(*REASONS)}
    assert run.summary["clipped"] == 1


def test_one_output_has_all_scores_before_and_after(run):
    assert list(run.output) == [
        *KEY, "score", ODD, "label", "PWGTP", "calibrated_score", f"calibrated_{ODD}", "split",
    ]  # fmt: skip
    assert {name: one["column"] for name, one in run.summary["scores"].items()} == {
        "score": "calibrated_score", ODD: f"calibrated_{ODD}",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["score", ODD])
def test_each_score_is_that_of_a_run_with_it_alone(run, alone, name):
    one, told = alone[name], run.summary["scores"][name]
    expected, found = read(one["paths"]["output"]), run.output
    assert found[told["column"]].equals(expected["calibrated_score"].rename(told["column"]))
    assert found["split"].equals(expected["split"])
    models = [MulticalibratorModel.load(path["paths"]["model"]) for path in (told, one)]
    assert models[0].calibrator.to_dict() == models[1].calibrator.to_dict()
    assert models[0].fitted == models[1].fitted
    assert models[0].texts == models[1].texts
    assert {key: told[key] for key in told if key not in ("column", "paths")} == {
        key: one[key] for key in told if key not in ("column", "paths")
    }
    assert {key: run.summary[key] for key in ("groups", "signatures")} == {
        key: one[key] for key in ("groups", "signatures")
    }
    assert told["metrics"]["after"]["loss"] < told["metrics"]["before"]["loss"]
    table = pd.read_parquet(run.summary["paths"]["metrics"], partitioning=None)
    of_one = pd.read_parquet(one["paths"]["metrics"], partitioning=None)
    place = ["stage", "metric", "group", "levels", "level"]
    table = table[table["score"] == name][list(of_one)].sort_values(place, ignore_index=True)
    pd.testing.assert_frame_equal(table, of_one.sort_values(place, ignore_index=True))


def test_scoring_takes_the_scores_that_are_named(spark, run, tmp_path):
    model = {"path": run.summary["paths"]["model"]}
    config = config_of(run.folder / "tables", tmp_path / "out", ODD, "score", model=model)
    summary = score(start(spark, "score", config))
    found, expected = read(summary["paths"]["output"]), run.output
    assert list(found) == [
        *KEY, ODD, "score", "label", "PWGTP", f"calibrated_{ODD}", "calibrated_score", "split",
    ]  # fmt: skip
    assert found.drop(columns="split").equals(expected[list(found.drop(columns="split"))])
    assert summary["scores"] == {
        ODD: {"column": f"calibrated_{ODD}"},
        "score": {"column": "calibrated_score"},
    }
    one = {"path": run.summary["scores"][ODD]["paths"]["model"]}
    alone = score(start(spark, "score", config_of(run.folder / "good", tmp_path / "one", ODD, model=one)))
    assert np.array_equal(read(alone["paths"]["output"])["calibrated_score"], expected[f"calibrated_{ODD}"])


def test_a_model_of_other_scores_is_refused(spark, run, alone, tmp_path):
    several, single = run.summary["paths"]["model"], alone["score"]["paths"]["model"]

    def scored(model, *names):
        config = config_of(run.folder / "tables", tmp_path / "out", *names, model={"path": str(model)})
        return score(start(spark, "score", config))

    with pytest.raises(ConfigurationError, match=r"no calibrator of PWGTP2; it has those of score, b\.2"):
        scored(several, "score", "PWGTP2")
    with pytest.raises(ContractError, match=r"of several scores.*name one of these"):
        scored(several, "score")
    with pytest.raises(ContractError, match=r"holds the calibrator of one score"):
        scored(single, "score", ODD)
    torn = shutil.copytree(several, tmp_path / "torn")
    shutil.rmtree(torn / "scores" / "0001")
    shutil.copytree(torn / "scores" / "0000", torn / "scores" / "0001")
    with pytest.raises(ContractError, match=r"scores/0001 was written with another model"):
        scored(torn, "score", ODD)
    shutil.rmtree(torn / "scores" / "0001")
    with pytest.raises(ContractError, match=r"scores/0001/model\.json: no readable model"):
        scored(torn, "score", ODD)
    assert not (tmp_path / "out" / "calibrated").exists()


def test_an_audit_measures_each_score(spark, run, tmp_path):
    config = config_of(run.folder / "tables", tmp_path / "out", "score", ODD)
    summary = audit(start(spark, "audit", config))
    one = audit(start(spark, "audit", config_of(run.folder / "good", tmp_path / "one", ODD)))
    told = summary["scores"]
    assert (told[ODD]["metrics"], told[ODD]["lead"]) == (one["metrics"], one["lead"])
    for name, found in told.items():
        before = run.summary["scores"][name]["metrics"]["before"]
        assert found["metrics"]["before"]["loss"] == pytest.approx(before["loss"], abs=1e-12)
    table = pd.read_parquet(summary["paths"]["metrics"], partitioning=None)
    assert set(table["score"]) == {"score", ODD}


def test_the_gate_names_the_score_and_keeps_the_candidate(spark, run, tmp_path):
    config = config_of(
        run.folder / "tables", tmp_path / "out", "score", ODD,
        gate={"max_mc_error": 0.0},
    )  # fmt: skip
    with pytest.raises(GateError) as refused:
        calibrate(start(spark, "calibrate", config))
    assert "score score: MC error" in str(refused.value)
    assert f"score {ODD}: MC error" in str(refused.value)
    kept = refused.value.paths
    assert read(kept["output"]).equals(run.output)
    assert not Path(config.model.path).exists()


def test_reports_and_commands_know_each_score(run, tmp_path, monkeypatch):
    paths = run.summary["paths"]
    page = Path(paths["report"]).read_text()
    for number, name in enumerate(("score", ODD)):
        own = run.summary["scores"][name]["paths"]
        assert own["report"] == paths["report"].replace(".html", f"_{number:04d}.html")
        assert f'href="report_{number:04d}.html">{name}<' in page
        assert f"score {name}</p>" in Path(own["report"]).read_text()
        assert "Of the score " in Path(own["report"].replace(".html", ".md")).read_text()
        assert "Calibrator: trees" in shown(own["model"])
    assert "## " not in Path(paths["report"].replace(".html", ".md")).read_text()
    monkeypatch.setattr(page_module, "_drawn", lambda facts: ({name: [] for name in SECTIONS}, None))
    list(draw_again(paths["manifest"], str(tmp_path / "again.html")))
    for number, name in enumerate(("score", ODD)):
        assert f"score {name}</p>" in (tmp_path / f"again_{number:04d}.html").read_text()
    assert (tmp_path / "again.html").read_text() == page.replace("report_", "again_")
    assert f"scores/0001  {ODD}" in shown(paths["model"])
    for told in (shown(paths["manifest"]), shown(paths["metrics"])):
        assert "Score score\n" in told
        assert f"Score {ODD}\n" in told
    history = history_of([run.config.output.path])
    assert [job.job for job in history.jobs] == [f"calibrate of {ODD}", "calibrate of score"]
    for job in history.jobs:
        own = run.summary["scores"][job.runs[0].score]
        assert job.runs[0].number("lead", "after") == own["lead"]["after"]
        assert job.runs[0].means[0] is not None
    assert "calibrate of score: 1 run(s)" in told_history(history, 5)
    with pytest.raises(ContractError, match="of several scores"):
        list(export(paths["model"], Target.json))
    assert list(export(f"{paths['model']}/scores/0001", Target.json))
    with pytest.raises(ContractError, match="manifest of a run of several scores"):
        diff(paths["manifest"], paths["manifest"])
    assert "squared loss" in diff(f"{paths['model']}/scores/0000", f"{paths['model']}/scores/0001").lower()
    rows = run.output.drop(columns="calibrated_score").merge(run.people[[*KEY, *ATTRIBUTES]], on=KEY)
    rows.to_parquet(tmp_path / "rows.parquet", index=False)
    score_file(f"{paths['model']}/scores/0000", str(tmp_path / "rows.parquet"), str(tmp_path / "s.parquet"))
    scored = pd.read_parquet(tmp_path / "s.parquet")["calibrated_score"]
    assert np.array_equal(scored, run.output["calibrated_score"])


def test_an_empty_table_gives_an_empty_output_of_the_same_columns(spark, run, tmp_path):
    write(tmp_path, run.people.iloc[:0])
    config = config_of(tmp_path, tmp_path / "out", "score", ODD, allow_empty=True)
    summary = calibrate(start(spark, "calibrate", config))
    assert list(read(summary["paths"]["output"])) == list(run.output)


def test_a_configuration_is_checked_with_all_scores(spark, run, tmp_path):
    names = ("score", "absent")
    config = config_of(run.folder / "tables", tmp_path / "out", *names)
    with pytest.raises(ContractError, match="absent: missing"):
        check("calibrate")(start(spark, "check", config))
    config = config_of(
        run.folder / "tables", tmp_path / "out", "score", ODD, model={"path": run.summary["paths"]["model"]}
    )
    assert check("score")(start(spark, "check", config))["score"] == ["score", ODD]
