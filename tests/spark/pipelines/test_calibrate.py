"""The main job: what it publishes, what it says about it, and when it publishes nothing."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from mcspark import MulticalibratorModel
from mcspark.cli.report import draw_again
from mcspark.core.metrics.calibration_error import calibration_error
from mcspark.data.leases.lease import Lease
from mcspark.data.leases.manifest import read_manifest
from mcspark.data.leases.ownership import MARK
from mcspark.data.publishing.sink import Target
from mcspark.errors import ContractError, GateError, OutputHeldError
from mcspark.ml.cells import driver_cells
from mcspark.pipelines.calibrate import calibrate

from .conftest import (
    ATTRIBUTES,
    BAD,
    DAY,
    KEY,
    UNLABELLED,
    configuration,
    content,
    population,
    read,
    start,
    write_tables,
)

FEW_TREES = {"max_trees": 3, "early_stopping_rounds": 2, "score_bins": 0}


def groups_of(people):
    """Membership by pandas alone, in the order of the names."""
    race, sex, age = people["RAC1P"], people["SEX"], people["AGEP"]
    inside = {f"RAC1P={r}": race == r for r in (1, 2, 6, 8, 9)}
    inside |= {f"SEX={s}": sex == s for s in (1, 2)}
    inside |= {
        f"AGEP=[{a},{b})": age.between(a, b, "left") for a, b in ((0, 25), (25, 45), (45, 65), (65, 120))
    }
    return inside | {"women_65_plus": (sex == 2) & (age >= 65)}


def discretized(score, m):
    edges = np.arange(m + 1) / m
    return (2 * np.minimum(np.searchsorted(edges, score, "right") - 1, m - 1) + 1) / (2 * m)


def test_rows_in_are_rows_scored_and_rows_rejected(calibrated):
    output, rejected = calibrated.output, read(calibrated.summary["paths"]["rejected"])
    rows = calibrated.summary["rows"]
    assert rows["in"] == len(calibrated.people) == len(output) + len(rejected)
    assert (rows["scored"], rows["rejected"]) == (len(output), len(rejected)) == (5000 - BAD, BAD)
    assert rows["labelled"] == output["label"].notna().sum() == 5000 - BAD - UNLABELLED
    assert rows["test"] == (output["split"] == "test").sum()
    keys = pd.concat([output, rejected])[KEY]
    expected = calibrated.people[KEY].sort_values(KEY, ignore_index=True)
    assert keys.sort_values(KEY, ignore_index=True).equals(expected.astype(keys.dtypes))
    assert sorted(map(list, rejected["reasons"])) == [["score_infinite"], *[["score_out_of_range"]] * 3]
    assert calibrated.summary["rejected_by_reason"] == {"score_infinite": 1, "score_out_of_range": 3}


def test_the_output_has_the_promised_columns(calibrated):
    output = calibrated.output
    assert list(output) == [*KEY, "score", "label", "PWGTP", "calibrated_score", "split"]
    given = calibrated.people.sort_values(KEY, ignore_index=True)
    given = given[given["score"].between(0, 1)].reset_index(drop=True)
    for name in ("score", "label", "PWGTP"):
        assert np.array_equal(output[name], given[name], equal_nan=True), name
    assert output["calibrated_score"].between(0, 1).all()
    assert (output["split"].isna() == output["label"].isna()).all()
    share = output["split"].value_counts(normalize=True)
    assert share["test"] == pytest.approx(0.4, abs=0.03)
    assert share["early_stopping"] == pytest.approx(0.6 * 0.3, abs=0.03)
    folder = calibrated.out / "calibrated" / "ds=2026-11-26"
    assert (folder / "_SUCCESS").exists()


def test_the_metrics_are_those_of_the_published_rows(calibrated):
    """MC error, MA error and loss again from the output and the attributes, by pandas and the definition."""
    table = calibrated.output.merge(calibrated.people[[*KEY, *ATTRIBUTES]], on=KEY, how="left")
    table = table[table["split"] == "test"]
    groups = groups_of(table)
    member, weight = np.column_stack(list(groups.values())), table["PWGTP"].to_numpy()
    assert calibrated.summary["groups"] == len(groups)
    for when, score in (("before", table["score"]), ("after", table["calibrated_score"])):
        found = calibrated.summary["metrics"][when]
        assert found["loss"] == pytest.approx(
            np.average((score - table["label"]) ** 2, weights=weight), abs=1e-12
        )
        for m in (10, 20):
            values = discretized(score.to_numpy(), m)
            expected = calibration_error(values, table["label"].to_numpy(), member, weight)
            level = found["by_level"][str(m)]
            assert level["mc_error"] == pytest.approx(expected.max(), abs=1e-12)
            assert level["worst_group"] == list(groups)[int(expected.argmax())]
            assert level["level_sets"] == len(np.unique(values))
    before, after = (
        calibrated.summary["metrics"][w]["by_level"]["20"]["mc_error"] for w in ("before", "after")
    )
    assert after < before / 2


def test_the_metrics_table_and_the_summary_agree(calibrated):
    table = pd.read_parquet(calibrated.summary["paths"]["metrics"], partitioning=None)
    assert set(table["stage"]) == {"before", "after"}
    assert set(table["split"]) == {"test"}
    assert table["value"].notna().all()
    for when in ("before", "after"):
        row = table[
            (table["stage"] == when) & (table["metric"] == "mc_error") & (table["levels"] == 20)
        ].iloc[0]
        level = calibrated.summary["metrics"][when]["by_level"]["20"]
        assert (row["value"], row["group"]) == (level["mc_error"], level["worst_group"])


def test_the_saved_model_is_the_one_that_scored(spark, calibrated):
    model = MulticalibratorModel.load(calibrated.summary["paths"]["model"])
    rows = spark.createDataFrame(calibrated.people[[*KEY, "score", *ATTRIBUTES]]).where(
        "score between 0 and 1"
    )
    scored = model.transform(rows).toPandas().sort_values(KEY, ignore_index=True)
    assert np.array_equal(scored["calibrated_score"], calibrated.output["calibrated_score"])
    assert calibrated.summary["stages"] == [{"trees": model.stages.trees, "link": "identity"}]


def test_the_manifest_tells_the_same_as_the_summary(spark, calibrated):
    manifest = read_manifest(spark, calibrated.summary["paths"]["manifest"])
    for name in ("run_id", "status", "rows", "metrics", "groups", "stages", "saturation"):
        assert manifest[name] == json.loads(json.dumps(calibrated.summary[name])), name
    assert manifest["configuration"]["output"]["path"] == calibrated.config.output.path
    assert {"read", "join", "cells", "fit", "write"} <= set(manifest["seconds"])
    after, saturation = manifest["metrics"]["after"], manifest["saturation"]
    rounding = after["by_level"]["20"]["loss"] - after["loss"]
    assert saturation["epsilon_round"]["20"] == pytest.approx(rounding, abs=1e-15)
    assert saturation["epsilon_loss"] == saturation["loss"] - saturation["loss_second"]
    bound = max(saturation["epsilon_loss"] + rounding, 0) ** 0.5
    assert saturation["bound"]["20"] == pytest.approx(bound, abs=1e-15)
    json.dumps(calibrated.summary, allow_nan=False)


def test_nothing_private_is_left_behind(calibrated):
    left = {p.name for p in (calibrated.out / "calibrated").iterdir()}
    assert left == {"ds=2026-11-25", "ds=2026-11-26", "_ds-2026-11-26_manifests"}
    assert {p.name for p in calibrated.out.iterdir()} == {
        "calibrated", "calibrated_rejected", "calibrated_metrics", "model",
    }  # fmt: skip


def test_the_same_rows_in_another_order_give_the_same_bits(spark, calibrated, tmp_path, monkeypatch):
    """A second run of the day on shuffled files: the day is replaced by itself, its neighbour not touched.

    The cluster chooses bins and groups this time, and sums the cells up, as if there were many rows.
    """
    monkeypatch.setattr(driver_cells, "_FEW", 0)
    shuffled = calibrated.people.sample(frac=1, random_state=1)
    write_tables(tmp_path / "tables", shuffled, files=5)
    before, output = content(calibrated.out / "calibrated" / "ds=2026-11-25"), calibrated.output
    manifests = calibrated.out / "calibrated" / "_ds-2026-11-26_manifests"
    runs = {p.name for p in manifests.iterdir() if p.suffix == ".json"}
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    try:
        again = calibrate(start(spark, "calibrate", configuration(tmp_path / "tables", calibrated.out)))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "4")
    assert read(again["paths"]["output"]).equals(output)
    for name in ("rows", "metrics", "groups", "signatures", "cells", "stages", "saturation"):
        assert again[name] == calibrated.summary[name], name
    assert content(calibrated.out / "calibrated" / "ds=2026-11-25") == before
    now = {p.name for p in manifests.iterdir() if p.suffix == ".json"}
    assert now - runs == {f"{again['run_id']}.json"}
    assert runs < now


def test_the_gate_publishes_nothing_and_keeps_the_candidate_aside(spark, calibrated):
    before = content(calibrated.out)
    report = {"path": str(calibrated.out / "report.html")}
    labels = {"codebook": "acs"}
    config = configuration(
        calibrated.tables, calibrated.out, gate={"max_mc_error": 1e-6}, calibrator=FEW_TREES, report=report,
        groups=labels,
    )  # fmt: skip
    run = start(spark, "calibrate", config)
    with pytest.raises(GateError, match=r"MC error .* at 10 levels .* above gate.max_mc_error") as caught:
        calibrate(run)
    try:
        after = content(calibrated.out)
        assert {name: after.get(name) for name in before} == before
        new = {name.split("/")[0] for name in after.keys() - before.keys()}
        assert new == {
            "calibrated_refused", "calibrated_refused_rejected", "calibrated_refused_metrics",
            "model_refused", "report_refused.html", "report_refused.md",
        }  # fmt: skip
        paths = caught.value.paths
        assert len(read(paths["output"])) == calibrated.summary["rows"]["scored"]
        model = MulticalibratorModel.load(paths["model"])
        assert model.stages.trees <= FEW_TREES["max_trees"]
        page = (calibrated.out / "report_refused.html").read_text()
        assert run.run_id in page
        assert "Race: White alone" in page
        assert "RAC1P=1" in set(read(paths["metrics"])["group"].dropna())
        again = calibrated.out.parent / "again.html"
        told = list(draw_again(paths["manifest"], str(again), force=True))
        assert "the loss as trees were added" in told[1]
        assert again.read_text().partition('id="run"')[0] == page.partition('id="run"')[0]
        assert (read_manifest(spark, paths["manifest"])["status"]) == "gate"
        for name in ("output", "report"):
            assert paths[name].removeprefix("file:") in str(caught.value)
    finally:
        for name in content(calibrated.out).keys() - before.keys():
            (calibrated.out / name).unlink()


def test_an_output_that_another_run_holds_is_left_alone(spark, calibrated):
    config = configuration(calibrated.tables, calibrated.out)
    place = Target(config.output.path, "parquet", DAY).leaf
    with Lease(spark, place, "the other run"):
        before = content(calibrated.out)
        with pytest.raises(OutputHeldError, match="the other run"):
            calibrate(start(spark, "calibrate", config))
        assert content(calibrated.out) == before


def spoilt(tables, name, change):
    file = tables / name / "part-0.parquet"
    change(pd.read_parquet(file)).to_parquet(file, index=False)


def without_rows(file):
    """The same types and no row."""
    pq.write_table(pq.read_table(file).slice(0, 0), file)


def twice(table):
    return pd.concat([table, table.iloc[:2]])


BAD_INPUTS = {
    "a key twice in the scored table": (lambda t: spoilt(t, "scored", twice), r"2 key\(s\).*are on 4 rows"),
    "a key twice in the attributes": (lambda t: spoilt(t, "attributes", twice), r"attributes: 2 key\(s\)"),
    "no score column": (lambda t: spoilt(t, "scored", lambda f: f.rename(columns={"score": "scores"})),
                        "score: missing, did you mean scores"),
    "no group column": (lambda t: spoilt(t, "attributes", lambda f: f.drop(columns="SEX")), "SEX: missing"),
    "a score of text": (lambda t: spoilt(t, "scored", lambda f: f.assign(score=f["score"].astype(str))),
                        "score string -> double: not numeric"),
    "an age of text": (lambda t: spoilt(t, "attributes", lambda f: f.assign(AGEP=f["AGEP"].astype(str))),
                       "AGEP string -> number"),
    "keys of another type": (
        lambda t: spoilt(t, "attributes", lambda f: f.assign(SPORDER=f["SPORDER"].astype(str))),
        "key SPORDER string, but bigint",
    ),
    "no finite score": (lambda t: spoilt(t, "scored", lambda f: f.assign(score=np.nan)),
                        "all 60 rows are rejected: score_n"),
    "no label": (lambda t: spoilt(t, "scored", lambda f: f.assign(label=f["label"] * np.nan)),
                 "no row has a label"),
    "negative weights": (lambda t: spoilt(t, "scored", lambda f: f.assign(PWGTP=-1.0)), "negative PWGTP"),
    "no weight": (lambda t: spoilt(t, "scored", lambda f: f.assign(PWGTP=0.0)), "PWGTP above 0"),
    "no rows": (lambda t: without_rows(t / "scored" / "part-0.parquet"), "it has no rows"),
    "a file that is no table": (lambda t: (t / "scored" / "part-0.parquet").write_text("x"),
                                "scored: part-0.parquet is not a readable Parquet file"),
    "no such folder": (lambda t: (t / "scored").rename(t / "gone"), "no such table"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD_INPUTS)
def test_bad_input_is_refused_and_the_old_output_stands(spark, calibrated, tmp_path, what):
    people = population(460).iloc[UNLABELLED:]
    write_tables(tmp_path, people)
    change, message = BAD_INPUTS[what]
    change(tmp_path)
    before = content(calibrated.out)
    with pytest.raises(ContractError, match=message) as caught:
        calibrate(start(spark, "calibrate", configuration(tmp_path, calibrated.out)))
    assert content(calibrated.out) == before
    assert caught.value.exit_code == 3


def test_an_empty_input_may_be_allowed(spark, tmp_path):
    write_tables(tmp_path, population(60))
    without_rows(tmp_path / "scored" / "part-0.parquet")
    config = configuration(tmp_path, tmp_path / "out", allow_empty=True)
    stale = tmp_path / "out" / "calibrated" / "ds=2026-11-26"
    stale.mkdir(parents=True)
    population(30).to_parquet(stale / "part-0.parquet")
    (stale / MARK).write_text("")
    summary = calibrate(start(spark, "calibrate", config))
    output = spark.read.parquet(summary["paths"]["output"])
    assert output.count() == 0
    assert dict(output.dtypes)["calibrated_score"] == "double"
    assert (summary["status"], summary["rows"]["in"]) == ("ok", 0)


def odd_categories(table):
    """Eleven people of no known race, and five of an age that is in no bin."""
    race, age = table["RAC1P"].astype("Int64"), table["AGEP"].to_numpy(copy=True)
    race.iloc[20:31], age[100:105] = pd.NA, 130
    return table.assign(RAC1P=race, AGEP=age)


def test_rows_without_attributes(spark, calibrated, tmp_path):
    """Unknown: scored as a member of no group. Reject: kept with the reason. Fail: refused.

    Rows that have attributes and no category of a column are counted by themselves.
    """
    people = population(900)
    write_tables(tmp_path, people)
    spoilt(tmp_path, "attributes", lambda f: odd_categories(f.iloc[7:]))
    attributes = {"path": str(tmp_path / "attributes"), "key": KEY}

    def run(policy):
        config = configuration(
            tmp_path, tmp_path / policy, attributes=[{**attributes, "on_unmatched": policy}],
            calibrator=FEW_TREES, gate={"must_improve": False},
        )  # fmt: skip
        return calibrate(start(spark, "calibrate", config))

    with pytest.raises(ContractError, match=r"no attributes for 7 scored row\(s\)"):
        run("fail")
    summary = run("reject")
    assert summary["rows"] == {**summary["rows"], "in": 900, "scored": 893, "rejected": 7}
    rejected = read(summary["paths"]["rejected"])
    assert [list(r) for r in rejected["reasons"]] == [["unmatched"]] * 7
    assert len(read(summary["paths"]["output"])) == 893
    assert list(summary["unmatched"].values()) == [7]
    assert summary["without_category"] == {"RAC1P": 11, "AGEP": 5}


def test_a_split_that_is_given_is_kept(spark, tmp_path):
    people = population(1200)
    write_tables(tmp_path, people)
    given = np.where(people["SPORDER"] == 1, "test", "fit")
    spoilt(tmp_path, "scored", lambda f: f.assign(part=given))
    config = configuration(
        tmp_path,
        tmp_path / "out",
        split={"column": "part"},
        calibrator=FEW_TREES,
        gate={"must_improve": False},
    )
    summary = calibrate(start(spark, "calibrate", config))
    output = read(summary["paths"]["output"])
    labelled = output[output["label"].notna()]
    assert ((labelled["split"] == "test") == (labelled["SPORDER"] == 1)).all()
    assert set(labelled["split"]) == {"fit", "early_stopping", "test"}
