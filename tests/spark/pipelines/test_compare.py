import json

import numpy as np
import pandas as pd
import pytest

from mcspark.config import Config
from mcspark.errors import ContractError
from mcspark.ml.training import tuning
from mcspark.pipelines import compare as job
from mcspark.pipelines.comparison_page import figure, mc_tables, saturation_table, smece_table
from mcspark.pipelines.run import Run

METHODS = ["none", "multiaccurate", "mcboost", "lsboost", "squarelev", "trees"]


def people(n, seed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"id": [f"{i:05d}" for i in range(n)]})
    table["SEX"], table["AGEP"] = rng.integers(1, 3, n), rng.integers(16, 90, n)
    table["score"] = np.round(rng.random(n), 4)
    truth = np.clip(table["score"] + 0.25 * (table["SEX"] == 2) - 0.2 * (table["AGEP"] > 60), 0, 1)
    table["label"] = (rng.random(n) < truth).astype(float)
    return table


def plain_config(folder, **compare):
    def tables(name):
        path = f"file://{folder}/{name}"
        return {
            "scored": {"path": f"{path}/scored", "key": ["id"]},
            "attributes": [{"path": f"{path}/attributes", "key": ["id"]}],
        }

    return {
        **tables("first"),
        "groups": {
            "min_share": 0.0,
            "columns": [{"column": "SEX"}, {"column": "AGEP", "bins": [0, 30, 60, 120]}],
        },
        "evaluation": {"levels": [10, 20]},
        "calibrator": {"recipe": "paper", "max_trees": 60, "learning_rate": 0.3, "score_bins": 40},
        "compare": {
            "task": "first", "tasks": [{"name": "second", **tables("second")}], "partitions": 3,
            "sweep": "none", "methods": METHODS, "engine": "lightgbm",
            "output": {"path": f"file://{folder}/compare"}, **compare,
        },
    }  # fmt: skip


@pytest.fixture(scope="module")
def folder(spark, tmp_path_factory):
    place = tmp_path_factory.mktemp("compare")
    for name, n, seed in (("first", 2500, 1), ("second", 2000, 2)):
        table = people(n, seed)
        # Paths of one file each; the jobs read folders.
        for part, columns in (("scored", ["id", "score", "label"]), ("attributes", ["id", "SEX", "AGEP"])):
            (place / name / part).mkdir(parents=True)
            table[columns].to_parquet(place / name / part / "part-0.parquet")
    return place


def run_of(spark, plain, name="compare-test"):
    return Run("compare", name, Config.model_validate(plain), spark)


@pytest.fixture(scope="module")
def summary(spark, folder):
    return job.compare(run_of(spark, plain_config(folder)))


@pytest.fixture(scope="module")
def results(summary, folder):
    return pd.read_parquet(folder / "compare" / "results.parquet")


def test_results_have_a_row_a_method_grid_fold_and_metric(results):
    assert list(results.columns) == ["task", "method", "m", "fold", "metric", "value"]
    assert set(results["task"]) == {"first", "second"}
    assert set(results["method"]) == set(METHODS)
    folds = results[results["metric"] == "mc_error"].groupby(["task", "method", "m"])["fold"].agg(list)
    for (_, method, _), found in folds.items():
        assert sorted(found) == ([0] if method == "none" else [0, 1, 2])
    assert len(folds) == 2 * len(METHODS) * 2
    assert not results[results["fold"].notna()].duplicated(["task", "method", "m", "fold", "metric"]).any()


def test_the_uncalibrated_errors_are_those_of_the_audited_test_rows(spark, folder, results):
    from mcspark.pipelines.audit import audit

    plain = plain_config(folder)
    plain["output"] = {"path": f"file://{folder}/audited"}
    measured = audit(run_of(spark, plain))["metrics"]["before"]
    none = results[(results["task"] == "first") & (results["method"] == "none")]
    for m in (10, 20):
        found = none[(none["metric"] == "mc_error") & (none["m"] == m)]["value"].item()
        assert found == pytest.approx(measured["by_level"][str(m)]["mc_error"], rel=1e-9)
    loss = none[(none["metric"] == "loss") & none["m"].isna()]["value"].item()
    # A cell counts with its mean score; the bins of so coarse grids are 1/160 wide.
    assert loss == pytest.approx(measured["loss"], abs=1e-5)


def test_calibrators_help(results):
    errors = results[(results["metric"] == "mc_error") & (results["m"] == 20)]
    mean = errors.groupby(["task", "method"])["value"].mean()
    for task in ("first", "second"):
        for method in METHODS[1:]:
            assert mean[task, method] < 0.95 * mean[task, "none"]
        assert mean[task, "trees"] < 0.6 * mean[task, "none"]


def test_the_summary_names_means_and_files(summary, results, folder):
    mean = results.query("task == 'second' and method == 'trees' and metric == 'mc_error' and m == 10")
    found = summary["results"]["second"]["trees"]["mc_error"]["10"]
    assert found == pytest.approx(mean["value"].mean(), rel=1e-12)
    json.dumps(summary, allow_nan=False)
    for name in ("results", "compare.md", "compare.html", "figure.svg", "manifest"):
        assert summary["paths"][name].startswith("file:")
    assert {"results.parquet", "compare.md", "compare.html", "figure.svg"} <= {
        p.name for p in (folder / "compare").iterdir()
    }
    page = (folder / "compare" / "compare.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1
    assert "src=" not in page and 'href="http' not in page
    assert "figure.svg" in (folder / "compare" / "compare.md").read_text(encoding="utf-8")


def rows_of(results):
    return [
        tuning.ResultRow(
            r.task,
            r.method,
            None if pd.isna(r.m) else int(r.m),
            None if pd.isna(r.fold) else int(r.fold),
            r.metric,
            r.value,
        )
        for r in results.itertuples()
    ]


def test_tables_show_mean_and_spread(results):
    rows = rows_of(results)
    first = results[(results["task"] == "first") & results["fold"].notna()]

    def of(method, metric, m):
        grid = first["m"].isna() if m is None else first["m"] == m
        return first[(first["method"] == method) & (first["metric"] == metric) & grid]["value"]

    body = {line[:2]: line[2] for line in smece_table(rows).body}
    smece = of("mcboost", "worst_group_smece", 20) * 1000
    assert body["MCBoost", "20"].removesuffix(" *") == f"{smece.mean():.2f} ± {smece.std(ddof=1):.2f}"
    assert sum(text.endswith("*") for text in body.values()) == 1
    loss, second = (of("trees", metric, None).mean() for metric in ("loss", "loss_second"))
    assert saturation_table(rows).body[0][2:] == (
        *saturation_table(rows).body[0][2:4],
        f"{loss - second:.1e}",
    )
    assert saturation_table(rows).body[0][0] == "first"
    error = of("trees", "mc_error", 20)
    table = {line[0]: line[1:] for line in mc_tables(rows)[0].body}
    assert table["trees"][1].removesuffix(" *") == f"{error.mean():.4f} ± {error.std(ddof=1):.4f}"


def test_the_figure_is_the_same_bytes_for_the_same_results(results):
    rows = rows_of(results)
    picture = figure(rows)
    assert picture == figure(rows)
    for text in ("first", "second", "non-empty level sets", "MCBoost"):
        assert text in picture


def test_a_second_run_takes_every_trial_from_the_store(spark, folder, summary, results, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a trial ran again")

    monkeypatch.setattr(tuning.Workers, "submit", refuse)
    again = job.compare(run_of(spark, plain_config(folder), "compare-again"))
    assert again["results"] == summary["results"]
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "compare" / "results.parquet"), results)


def test_a_damaged_or_missing_trial_runs_again(spark, folder, summary, monkeypatch):
    kept = sorted((folder / ".compare.trials").rglob("report-mcboost-20-1.json"))
    assert len(kept) == 2
    kept[0].write_text("[[")
    ran = []
    submit = tuning.Workers.submit
    monkeypatch.setattr(
        tuning.Workers, "submit", lambda self, trial, **k: ran.append(trial) or submit(self, trial, **k)
    )
    again = job.compare(run_of(spark, plain_config(folder), "compare-damaged"))
    assert [(t.method, t.m, t.partition) for t in ran] == [("mcboost", 20, 1)]
    assert again["results"] == summary["results"]


def test_other_settings_are_other_trials(spark, folder, summary):
    plain = plain_config(folder, methods=["trees"], partitions=1, tasks=[])
    plain["compare"]["output"] = {"path": f"file://{folder}/compare"}
    plain["calibrator"]["max_trees"] = 3
    changed = job.compare(run_of(spark, plain, "compare-changed"))
    assert changed["results"]["first"]["trees"] != summary["results"]["first"]["trees"]


@pytest.mark.synapseml
def test_trees_of_synapseml_are_those_of_the_official_library(spark, folder, summary):
    plain = plain_config(folder, methods=["trees"], partitions=1, tasks=[], engine="synapseml")
    plain["compare"]["output"] = {"path": f"file://{folder}/compare_synapse"}
    found = job.compare(run_of(spark, plain, "compare-synapse"))
    assert found["engine"] == "SynapseML"
    plain["compare"] |= {"engine": "lightgbm", "output": {"path": f"file://{folder}/compare_official"}}
    wanted = job.compare(run_of(spark, plain, "compare-official"))
    assert wanted["engine"].startswith("lightgbm ")
    loss = [r["results"]["first"]["trees"]["loss"]["all"] for r in (found, wanted)]
    assert loss[0] == pytest.approx(loss[1], rel=1e-3)


def test_the_papers_grid_is_swept_for_the_method_asked_for(spark, folder):
    plain = plain_config(folder, methods=["multiaccurate"], sweep="paper", tasks=[])
    plain["compare"]["output"] = {"path": f"file://{folder}/compare_paper"}
    job.compare(run_of(spark, plain, "compare-paper"))
    found = pd.read_parquet(folder / "compare_paper" / "results.parquet")
    chosen = found[found["metric"] == "chosen_penalty"]["value"].item()
    assert chosen in (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
    kept = sorted((folder / ".compare_paper.trials").rglob("validate-multiaccurate-all-*.json"))
    values = np.mean([json.loads(path.read_text()) for path in kept], axis=0)
    assert len(kept) == 3
    assert (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)[int(np.argmin(values))] == chosen


def test_a_table_without_test_rows_is_refused(spark, folder):
    plain = plain_config(folder, tasks=[])
    plain["split"] = {"test": 1e-9}
    with pytest.raises(ContractError, match="in and outside the test split"):
        job.compare(run_of(spark, plain, "compare-none"))
