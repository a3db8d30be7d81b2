"""SynapseML's native library does not load: the driver trains on the cells, and says so."""

from __future__ import annotations

import json
from pathlib import Path

import lightgbm
import pytest

from mcspark.ml import training
from mcspark.ml.trees import SynapseTrainer


def test_the_driver_trains_and_the_manifest_names_it(strange):
    done = strange.child.jobs[0]
    assert done.exit_code == 0, (done.summary, strange.child.log[-3000:])
    engine = f"lightgbm {lightgbm.__version__} on the driver"
    assert done.summary["engine"] == engine
    manifest = json.loads(Path(done.summary["paths"]["manifest"].removeprefix("file:")).read_text())
    assert manifest["engine"] == engine
    assert "SynapseML does not load: the driver trains on the cells" in done.log
    assert "UnsatisfiedLinkError" in done.log
    assert done.summary["stages"][0]["trees"] > 0
    text = (strange.world.root / "model" / "trees_0.txt").read_text()
    assert lightgbm.Booster(model_str=text).num_trees() == done.summary["stages"][0]["trees"]
    after, before = done.summary["metrics"]["after"], done.summary["metrics"]["before"]
    assert after["loss"] < before["loss"]


def test_without_the_official_library_it_is_a_configuration_error(spark, world, monkeypatch):
    from py4j.protocol import Py4JJavaError

    class BrokenError(Py4JJavaError):
        def __init__(self):
            Exception.__init__(self)

        def __str__(self):
            return "An error\n: java.lang.UnsatisfiedLinkError: libgomp.so.1: no such file\n\tat x"

    def broken(*_):
        raise BrokenError

    monkeypatch.setattr(SynapseTrainer, "__call__", broken)
    monkeypatch.setattr(training.driver_training, "engine", lambda: None)
    done = world.refused("native LightGBM does not load here", code=2, job="calibrate")
    assert "libgomp.so.1: no such file" in done.error
    assert "mcspark[sweep]" in done.error


def test_synapse_is_named_where_it_trains(world):
    assert world.ran("calibrate").summary["engine"].startswith("synapseml 1.")


def test_the_official_library_trains_where_it_is_asked_for(world):
    done = world.ran("calibrate", calibrator={"engine": "lightgbm"})
    assert done.summary["engine"] == f"lightgbm {lightgbm.__version__} on the driver"
    by_synapse = world.ran("calibrate")
    assert done.summary["stages"] == by_synapse.summary["stages"]
    one, other = (d.summary["metrics"]["after"]["loss"] for d in (done, by_synapse))
    assert one == pytest.approx(other, abs=1e-6)  # LightGBM 4 and 3.3


def test_files_are_for_whom_the_umask_says(strange):
    """Umask 077: nothing that a run has left behind is for anybody but its owner."""
    done = strange.child.jobs[0]
    places = [Path(path.removeprefix("file:")) for path in done.summary["paths"].values()]
    files = [file for place in places for file in ([place] if place.is_file() else place.rglob("*"))]
    assert len(files) > 8
    open_to_others = [str(file) for file in files if file.stat().st_mode & 0o077]
    assert open_to_others == []
