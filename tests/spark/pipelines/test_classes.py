"""Scores of classes: calibrated class by class, projected, judged together, and applied again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mcspark import MulticalibratorModel
from mcspark.cli.report import draw_again
from mcspark.cli.show import shown
from mcspark.core.metrics.calibration_error import calibration_error
from mcspark.errors import ConfigurationError
from mcspark.pipelines.audit import audit
from mcspark.pipelines.calibrate import calibrate
from mcspark.pipelines.score import score
from mcspark.report import page as page_module
from mcspark.report.pictures import SECTIONS
from tests.tiny import tiny_tables

from .conftest import ATTRIBUTES, KEY, configuration, population, read, start, write_tables
from .test_segments import inside

CLASSES = {"7": "p.7", "cat": "p_cat", "dog": "p_dog"}
NAMES, COLUMNS = list(CLASSES), list(CLASSES.values())
CALIBRATED = [f"calibrated_{name}" for name in COLUMNS]


def people_of(rows: int = 2600, seed: int = 9) -> pd.DataFrame:
    """People of three classes; scores that mistake the classes of women, and one label that is no class."""
    people = population(rows, seed)
    rng = np.random.default_rng(seed)
    x = people["score"].to_numpy()
    given = np.exp(np.column_stack([3 * x, 1.5 - 2 * x, 0.5 * rng.standard_normal(rows)]))
    given /= given.sum(axis=1, keepdims=True)
    truth = given * np.where(people[["SEX"]] == 2, [2.5, 0.6, 1.0], [0.5, 1.5, 1.0])
    truth /= truth.sum(axis=1, keepdims=True)
    drawn = (rng.random((rows, 1)) > np.cumsum(truth, axis=1)[:, :2]).sum(axis=1)
    label = pd.Series(np.array(NAMES, dtype=object)[drawn]).where(people["label"].notna(), None)
    label.iloc[-1] = "bird"
    return people.assign(**dict(zip(COLUMNS, given.T, strict=True)), label=label)


def write(folder: Path, people: pd.DataFrame) -> None:
    write_tables(folder, people)
    file = folder / "scored" / "part-0.parquet"
    scores = {name: people[name].to_numpy() for name in COLUMNS}
    pd.read_parquet(file).assign(**scores).to_parquet(file, index=False)


def config_of(tables: Path, out: Path, **sections):
    return configuration(tables, out, **{"scored": {"classes": CLASSES}, **sections})


@pytest.fixture(scope="module")
def run(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("classes")
    people = people_of()
    write(folder / "tables", people)
    report = {"path": str(folder / "out" / "report.html")}
    config = config_of(folder / "tables", folder / "out", report=report)
    with tiny_tables(spark), pytest.MonkeyPatch.context() as patch:
        # Drawing takes seconds, and other tests look at the pictures.
        patch.setattr(page_module, "_drawn", lambda facts: ({name: [] for name in SECTIONS}, None))
        yield people, folder, calibrate(start(spark, "calibrate", config))


def output_of(run):
    people, _, summary = run
    return read(summary["paths"]["output"]).merge(people[[*KEY, *ATTRIBUTES]], on=KEY)


def test_calibrated_scores_sum_to_one_and_are_those_of_the_classes_projected(spark, run):
    output, summary = output_of(run), run[2]
    assert summary["classes"]["projected"]
    assert summary["classes"]["scores"] == CLASSES
    assert list(output)[: -len(ATTRIBUTES)] == [*KEY, *COLUMNS, "label", "PWGTP", *CALIBRATED, "split"]
    frame = spark.createDataFrame(output[[*ATTRIBUTES, *COLUMNS, "SERIALNO", "SPORDER"]])
    own = []
    for name in COLUMNS:
        model = MulticalibratorModel.load(summary["scores"][name]["paths"]["model"])
        scored = model.setParams(scoreCol=name) if hasattr(model, "setParams") else model._set(scoreCol=name)
        found = scored.transform(frame).toPandas().sort_values(KEY, ignore_index=True)
        own.append(found["calibrated_score"].to_numpy())
    total = own[0] + own[1] + own[2]
    assert output[CALIBRATED].to_numpy() == pytest.approx(np.column_stack(own) / total[:, None], abs=1e-15)
    assert output[CALIBRATED].sum(axis=1).to_numpy() == pytest.approx(1, abs=1e-12)
    assert np.abs(total - 1).max() > 1e-3


def test_each_class_learns_as_a_score_alone_with_its_label(spark, run, tmp_path):
    people, _, summary = run
    good = people.iloc[:-1]
    label = (good["label"] == "dog").astype(float).where(good["label"].notna())
    write(tmp_path, good.assign(label=label))
    config = configuration(tmp_path, tmp_path / "out", scored={"score": "p_dog"})
    one = calibrate(start(spark, "calibrate", config))
    told = summary["scores"]["p_dog"]
    models = [MulticalibratorModel.load(path["paths"]["model"]) for path in (told, one)]
    assert models[0].calibrator.to_dict() == models[1].calibrator.to_dict()
    assert (told["metrics"]["before"], told["stages"]) == (one["metrics"]["before"], one["stages"])


def test_what_is_told_is_that_of_the_published_rows(run):
    """Log losses, and the MC errors of each class and of the class that is named, by their definitions."""
    output, summary = output_of(run), run[2]
    for split, key in (("early_stopping", "early_stopping"), ("test", "test")):
        rows = output[output["split"] == split]
        at = rows["label"].map(NAMES.index).to_numpy()
        told = summary["classes"]["log_loss"][key]
        for when, columns in (("before", COLUMNS), ("after", CALIBRATED)):
            own = np.maximum(rows[columns].to_numpy()[np.arange(len(rows)), at], np.finfo(float).eps)
            assert told[when] == pytest.approx(np.average(-np.log(own), weights=rows["PWGTP"]), abs=1e-9)
        assert told["after"] < told["before"]
    test = output[output["split"] == "test"]
    model = MulticalibratorModel.load(summary["scores"]["p_cat"]["paths"]["model"])
    member = np.column_stack([inside(test, name) for name in model.fitted.names])
    weight, label = test["PWGTP"].to_numpy(), test["label"].to_numpy()
    for when, columns in (("before", COLUMNS), ("after", CALIBRATED)):
        scores = test[columns].to_numpy()
        judged = {name: (scores[:, i], label == NAMES[i]) for i, name in enumerate(COLUMNS)}
        judged["(top class)"] = scores.max(axis=1), label == np.array(NAMES)[scores.argmax(axis=1)]
        assert set(judged) == set(summary["scores"])
        for name, (values, hit) in judged.items():
            middle = (np.minimum(np.floor(values * 20 + 1e-12), 19) + 0.5) / 20
            error = calibration_error(middle, hit.astype(float), member, weight).max()
            found = summary["scores"][name]["metrics"][when]["by_level"]["20"]
            assert found["mc_error"] == pytest.approx(error, abs=1e-9)
            assert found["noise_floor"] > 0


def test_a_label_that_is_no_class_is_rejected(run):
    rejected = read(run[2]["paths"]["rejected"])
    assert [list(reasons) for reasons in rejected["reasons"]] == [["label_no_class"]]


def test_reports_and_commands_know_the_class_that_is_named(run, tmp_path):
    paths, told = run[2]["paths"], run[2]["scores"]
    page = Path(paths["report"]).read_text()
    assert [Path(own["paths"]["report"]).name for own in told.values()] == [
        f"report_{number:04d}.html" for number in range(4)
    ]
    assert 'href="report_0003.html">(top class)<' in page
    assert "calibrated class by class and projected to sum to 1: log loss" in page
    assert "score (top class)</p>" in Path(told["(top class)"]["paths"]["report"]).read_text()
    assert list(draw_again(paths["manifest"], str(tmp_path / "again.html")))
    assert (tmp_path / "again.html").read_text() == page.replace("report_", "again_")
    assert "Score (top class)\n" in shown(paths["manifest"])
    assert "Calibrators of 3 score(s)" in shown(paths["model"])


def test_scoring_projects_too_and_takes_the_same_classes_alone(spark, run, tmp_path):
    _, folder, summary = run
    model = {"path": summary["paths"]["model"]}
    config = config_of(folder / "tables", tmp_path / "out", model=model)
    found = read(score(start(spark, "score", config))["paths"]["output"])
    output = read(summary["paths"]["output"])
    # It does not judge labels, and scores the row whose label is no class.
    both = found.merge(output[[*KEY]], on=KEY)
    assert len(found) == len(output) + 1
    assert both[CALIBRATED].equals(output[CALIBRATED])
    for scored in ({"classes": {"cat": "p_cat", "dog": "p.7"}}, {"scores": COLUMNS}):
        config = configuration(folder / "tables", tmp_path / "other", scored=scored, model=model)
        with pytest.raises(
            ConfigurationError, match=r"scored\.classes: .* is a model of 7: p\.7, cat: p_cat, dog"
        ):
            score(start(spark, "score", config))


def test_scores_stay_as_they_came_where_the_vector_is_no_better(spark, run, tmp_path):
    """Where no calibrator changes a score, dividing by the sum alone is no reason to."""
    people, _, _ = run
    write(tmp_path, people.assign(**{name: np.minimum(1, 1.5 * people[name]) for name in COLUMNS}))
    config = config_of(tmp_path, tmp_path / "out", calibrator={"method": "none"})
    summary = calibrate(start(spark, "calibrate", config))
    output = read(summary["paths"]["output"])
    assert not summary["classes"]["projected"]
    assert np.array_equal(output[CALIBRATED], output[COLUMNS])
    again = config_of(tmp_path, tmp_path / "again", model={"path": summary["paths"]["model"]})
    found = read(score(start(spark, "score", again))["paths"]["output"])
    assert np.array_equal(found[CALIBRATED], found[COLUMNS])


def test_an_audit_measures_the_classes_and_the_one_that_is_named(spark, run, tmp_path):
    _, folder, summary = run
    found = audit(start(spark, "audit", config_of(folder / "tables", tmp_path / "out")))
    for name, told in found["scores"].items():
        before = summary["scores"][name]["metrics"]["before"]
        assert told["metrics"]["before"]["loss"] == pytest.approx(before["loss"], abs=1e-12)
    loss = summary["classes"]["log_loss"]["test"]["before"]
    assert found["classes"]["log_loss"]["test"]["before"] == pytest.approx(loss, abs=1e-12)
