"""Sessions in which no stage can train whose tasks need each other."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mcspark.errors import ConfigurationError
from mcspark.ml.training import cluster_training
from mcspark.ml.training.cluster_training import check_cluster


@pytest.fixture
def compared(monkeypatch):
    """What executors were asked for that are not the driver."""
    seen = []
    engine = SimpleNamespace(workers_are_the_drivers=lambda: False)
    monkeypatch.setattr(cluster_training, "engine_of", lambda _: engine)
    monkeypatch.setattr(cluster_training, "compare_executors", lambda _, libraries: seen.append(libraries))
    return seen


def session(**settings):
    conf = {f"spark.{name}": value for name, value in settings.items()}
    return SimpleNamespace(conf=SimpleNamespace(get=conf.get))


def test_executors_that_come_and_go_are_refused(compared):
    moving = session(master="spark://host:7077", **{"dynamicAllocation.enabled": "true"})
    with pytest.raises(ConfigurationError, match=r"set spark\.dynamicAllocation\.enabled=false, or"):
        check_cluster(moving)
    assert not compared


@pytest.mark.parametrize(
    "settings",
    [
        {"master": "spark://host:7077"},
        {"master": "yarn", "dynamicAllocation.enabled": "false"},
        {"master": "local[2]", "dynamicAllocation.enabled": "true"},  # Spark does not heed it there
    ],
)
def test_the_others_are_asked_for_the_library(compared, settings):
    check_cluster(session(**settings))
    assert compared == [{"LightGBM": "lightgbm"}]
