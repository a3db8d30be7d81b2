"""Jobs ask for the SynapseML jars only where SynapseML trains."""

from __future__ import annotations

import pytest

from mcspark.config import Config
from mcspark.errors import ConfigurationError
from mcspark.ml import driver_training
from mcspark.pipelines import calibrate, compare

PLAIN = {"scored": {"path": "a", "key": ["id"]}, "attributes": [{"path": "b", "key": ["id"]}]}


@pytest.mark.parametrize("method", ["trees", "multiaccuracy", "lsboost", "mcboost", "squarelev", "none"])
def test_calibrate(method):
    config = Config.model_validate({**PLAIN, "calibrator": {"method": method}})
    assert calibrate.needs_lightgbm(config) is (method == "trees")


@pytest.mark.parametrize("method", ["trees", "mcboost"])
def test_calibrate_with_the_official_library(monkeypatch, method):
    config = Config.model_validate({**PLAIN, "calibrator": {"method": method, "engine": "lightgbm"}})
    assert calibrate.needs_lightgbm(config) is False
    monkeypatch.setattr(driver_training, "engine", lambda: None)
    if method == "trees":
        with pytest.raises(ConfigurationError, match=r"calibrator\.engine is lightgbm.* mcspark\[sweep\]"):
            calibrate.needs_lightgbm(config)
    else:
        assert calibrate.needs_lightgbm(config) is False


@pytest.mark.parametrize(
    ("methods", "engine", "installed", "needs"),
    [
        (["none", "trees"], "synapseml", True, True),
        (["none", "trees"], "auto", False, True),
        (["none", "trees"], "auto", True, False),
        (["trees"], "lightgbm", True, False),
        (["none", "mcboost"], "synapseml", True, False),
    ],
)
def test_compare(monkeypatch, methods, engine, installed, needs):
    monkeypatch.setattr(driver_training, "engine", lambda: "lightgbm 4" if installed else None)
    config = Config.model_validate({**PLAIN, "compare": {"methods": methods, "engine": engine}})
    assert compare.needs_lightgbm(config) is needs
