import os
import subprocess
import sys
from dataclasses import replace

import pytest

from mcspark.benchmark.checks import same_errors
from mcspark.benchmark.clock import processor_seconds
from mcspark.benchmark.measure import Options
from mcspark.benchmark.population import population_name
from mcspark.benchmark.quality import Quality, same_quality
from mcspark.benchmark.table import TARGETS, render
from mcspark.errors import ConfigurationError

OPTIONS = Options(rows=1000, repeats=1, trees=10, folds=1, sources=(), workdir="w")

RESULT = {
    "rows": 1000,
    "trees": 12,
    "repeats": 3,
    **dict.fromkeys(TARGETS, 1.25),
    "costs": {"floor": {"seconds": 2.5, "cpu_seconds": None, "runs": [2.4, 2.5, 2.6]}},
    "stages": {"calibrate": {"join": 1.5, "fit": 20.25}},
    "quality": [
        {"training": "rows", "fold": 0, "trees": 7, "loss": 0.125, "mc_error": {"20": 0.01}},
    ],
    "checks": {"scores_equal": True, "metrics_after_equal": False},
}


def quality(training: str, fold: int, loss: float, error: float) -> Quality:
    return Quality(training, fold, 10, loss, {"10": error, "20": error, "75": error})


def test_the_table_shows_every_figure_its_target_and_what_failed() -> None:
    text = render(RESULT)
    for shown in ("calibrate_over_floor", "1.25", "<= 1.4", ">= 20.0", "2.4", "2.6", "fit 20.25", "0.125000"):
        assert shown in text
    assert "FAIL metrics_after_equal" in text
    assert "ok   scores_equal" in text


def test_the_table_does_without_a_comparison_of_quality() -> None:
    assert "test loss" not in render({**RESULT, "quality": []})


def test_given_files_come_before_the_shared_ones(tmp_path) -> None:
    folder = tmp_path / "data" / "acs2024"
    folder.mkdir(parents=True)
    for name in ("p_02.parquet", "p_01.parquet", "notes.txt"):
        (folder / name).touch()
    environ = {"MCSPARK_SHARED": str(tmp_path)}
    shared = tuple(str(folder / name) for name in ("p_01.parquet", "p_02.parquet"))
    assert Options.found([], environ) == shared
    assert Options.found(["a.csv"], environ) == ("a.csv",)
    assert Options.found([], {"MCSPARK_SHARED": str(tmp_path / "none")}) == ()


def test_a_missing_source_is_refused_before_spark_starts() -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.parquet"):
        replace(OPTIONS, sources=("nowhere.parquet",)).configuration()


def test_populations_of_other_sizes_or_sources_have_folders_of_their_own() -> None:
    names = [
        population_name(10, ()),
        population_name(20, ()),
        population_name(10, ("a",)),
        population_name(10, ("a", "b")),
    ]
    assert len(set(names)) == 4
    assert population_name(10, ("b", "a")) == population_name(10, ("a", "b"))
    assert OPTIONS.folder == "w/synthetic-1000"


def test_the_jobs_get_the_six_grids_and_the_wanted_trees() -> None:
    config = OPTIONS.configuration()
    assert config.evaluation.levels == (10, 20, 30, 50, 75, 100)
    assert config.calibrator.max_trees == 10
    assert config.scored.path == "w/synthetic-1000/whole/scored"


def test_metrics_that_differ_in_one_grid_are_not_the_same() -> None:
    one = {"by_level": {m: {"mc_error": 0.1, "ma_error": 0.05, "loss": 0.2} for m in ("10", "20")}}
    other = {"by_level": {**one["by_level"], "20": {"mc_error": 0.1, "ma_error": 0.05, "loss": 0.2001}}}
    fewer = {"by_level": {"10": one["by_level"]["10"]}}
    assert same_errors(one, one)
    assert not same_errors(one, other)
    assert not same_errors(one, fewer)


def test_quality_is_the_same_within_the_limits_only() -> None:
    rows = [quality("rows", 0, 0.100, 0.010), quality("rows", 1, 0.100, 0.014)]
    fine = [quality("cells", 0, 0.1001, 0.015), quality("cells", 1, 0.0999, 0.015)]
    assert set(same_quality([*rows, *fine]).values()) == {True}
    lossy = [quality("cells", 0, 0.1003, 0.01), quality("cells", 1, 0.0999, 0.01)]
    assert same_quality([*rows, *lossy]) == {
        "loss_of_cells_within_0.2_percent": False,
        "mc_error_of_cells_within_folds": True,
    }
    uncalibrated = [quality("cells", 0, 0.1, 0.02), quality("cells", 1, 0.1, 0.02)]
    assert same_quality([*rows, *uncalibrated]) == {
        "loss_of_cells_within_0.2_percent": True,
        "mc_error_of_cells_within_folds": False,
    }


@pytest.mark.skipif(processor_seconds({os.getpid()}) is None, reason="no /proc on this system")
def test_processor_time_of_children_counts_after_their_end() -> None:
    before = processor_seconds({os.getpid()})
    burn = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    subprocess.run([sys.executable, "-c", burn], check=True)
    after = processor_seconds({os.getpid()})
    assert before is not None
    assert after is not None
    assert after - before >= 0.3
