"""Jobs ask for SynapseML only where it trains, and tell it from what may step in for it."""

from __future__ import annotations

import pytest

from mcspark.config import Config
from mcspark.pipelines import calibrate, compare

PLAIN = {"scored": {"path": "a", "key": ["id"]}, "attributes": [{"path": "b", "key": ["id"]}]}


@pytest.mark.parametrize(
    ("settings", "engine"),
    [
        ({}, "auto"),
        ({"engine": "synapseml"}, "synapseml"),
        ({"engine": "lightgbm"}, "lightgbm"),
        ({"training": "rows"}, "auto"),
        ({"training": "rows", "engine": "lightgbm"}, "lightgbm"),
        *(({"method": method}, None) for method in ("multiaccuracy", "lsboost", "mcboost", "none")),
        ({"method": "squarelev", "engine": "synapseml"}, None),
    ],
)
def test_calibrate(settings, engine):
    config = Config.model_validate({**PLAIN, "calibrator": settings})
    assert calibrate.engine(config) == engine


@pytest.mark.parametrize(
    ("methods", "wanted", "engine"),
    [
        (["none", "trees"], "synapseml", "synapseml"),
        (["none", "trees"], "auto", "lightgbm"),
        (["trees"], "lightgbm", "lightgbm"),
        (["none", "mcboost"], "synapseml", None),
    ],
)
def test_compare(methods, wanted, engine):
    config = Config.model_validate({**PLAIN, "compare": {"methods": methods, "engine": wanted}})
    assert compare.engine(config) == engine
