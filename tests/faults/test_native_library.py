"""SynapseML cannot train here: official LightGBM does and says so, unless SynapseML was asked for."""

from __future__ import annotations

import lightgbm
import pytest

from mcspark.ml.training.trees import SynapseTrainer
from mcspark.runtime import jars

AUTO = {"calibrator": {"engine": "auto"}}
OFFICIAL = f"lightgbm {lightgbm.__version__} on the driver"


@pytest.mark.synapseml
def test_where_synapse_is_asked_for_nothing_steps_in(spark, world, monkeypatch):
    from py4j.protocol import Py4JJavaError

    class BrokenError(Py4JJavaError):
        def __init__(self):
            Exception.__init__(self)

        def __str__(self):
            return "An error\n: java.lang.UnsatisfiedLinkError: libgomp.so.1: no such file\n\tat x"

    def broken(*_):
        raise BrokenError

    monkeypatch.setattr(SynapseTrainer, "__call__", broken)
    asked = {"calibrator": {"engine": "synapseml"}}
    done = world.refused("native LightGBM does not load here", code=2, job="calibrate", **asked)
    assert "libgomp.so.1: no such file" in done.error
    assert "set calibrator.engine: auto" in done.error


@pytest.mark.synapseml
def test_synapse_is_named_where_it_trains(world):
    assert world.ran("calibrate", **AUTO).summary["engine"].startswith("synapseml 1.")


@pytest.mark.synapseml
def test_the_official_library_trains_where_it_is_asked_for(world):
    done = world.ran("calibrate", calibrator={"engine": "lightgbm"})
    assert done.summary["engine"] == OFFICIAL
    by_synapse = world.ran("calibrate", **AUTO)
    assert done.summary["stages"] == by_synapse.summary["stages"]
    one, other = (d.summary["metrics"]["after"]["loss"] for d in (done, by_synapse))
    assert one == pytest.approx(other, abs=1e-6)  # LightGBM 4 and 3.3


@pytest.fixture
def no_jars(monkeypatch):
    """A session without SynapseML's classes, whose jars nobody can fetch."""

    def fetched(*_):
        raise jars.UnresolvedError("SSLHandshakeException: the certificate there is not trusted")

    monkeypatch.setattr(jars, "fetched", fetched)
    monkeypatch.setattr(jars.class_path, "missing_classes", list)
    monkeypatch.setattr(jars, "_is_pinned", lambda: True)
    monkeypatch.delenv(jars.FOLDER_VARIABLE, raising=False)


@pytest.mark.synapseml
def test_jars_that_cannot_be_had_leave_the_official_library(world, no_jars):
    done = world.ran("calibrate", **AUTO)
    assert done.summary["engine"] == OFFICIAL
    (line,) = [line for line in done.log.splitlines() if "no SynapseML here" in line]
    assert "the official LightGBM trains" in line
    assert "the certificate there is not trusted" in line
    assert "warning" in line


@pytest.mark.synapseml
def test_jars_that_cannot_be_had_end_the_run_that_needs_them(world, no_jars):
    done = world.refused(
        "SynapseML is to train .* is not trusted", code=2, job="calibrate", calibrator={"engine": "synapseml"}
    )
    assert "calibrator.engine: auto" in done.error


def test_without_them_rows_are_trained_on_by_the_official_library_too(world, no_jars):
    done = world.ran("calibrate", calibrator={"engine": "auto", "training": "rows"})
    assert done.summary["engine"] == f"lightgbm {lightgbm.__version__} in the cluster"


@pytest.mark.synapseml
def test_a_spark_that_synapse_has_no_jars_for_says_so(world, no_jars, monkeypatch):
    monkeypatch.setattr(jars, "_is_pinned", lambda: False)
    done = world.ran("calibrate", **AUTO)
    assert done.summary["engine"] == OFFICIAL
    assert "Maven Central has none for Spark" in done.log
    asked = {"calibrator": {"engine": "synapseml"}}
    world.refused("put its maker's jars for that Spark there", code=2, job="calibrate", **asked)


@pytest.mark.synapseml
def test_a_folder_that_lacks_jars_is_a_mistake_whatever_the_engine(world, no_jars, monkeypatch, tmp_path):
    monkeypatch.setenv(jars.FOLDER_VARIABLE, str(tmp_path))
    world.refused("4 of the 4 needed are missing", code=2, job="calibrate", **AUTO)


def test_without_synapse_the_official_library_trains_and_says_why(world, monkeypatch):
    monkeypatch.setattr(jars, "find_spec", lambda _: None)
    done = world.ran("calibrate", **AUTO)
    assert done.summary["engine"] == OFFICIAL
    assert "no SynapseML here: the official LightGBM trains" in done.log
    asked = {"calibrator": {"engine": "synapseml"}}
    world.refused(r"install mcspark\[synapseml\]", code=2, job="calibrate", **asked)
