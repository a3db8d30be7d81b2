"""What each partition of a window reads."""

from __future__ import annotations

import pytest

from mcspark.config import Config
from mcspark.errors import ConfigurationError
from mcspark.pipelines.reading.partitions import Partitions

DAY = {"ds": "2026-11-26"}


def partitions(labels: dict[str, str] | None) -> Partitions:
    plain = {
        "scored": {"path": "s", "key": ["id"], "partition": DAY},
        "attributes": [{"path": "a", "key": ["id"]}],
        "labels": {"path": "l", "key": ["id"], "partition": labels},
        "output": {"path": "o", "partition": DAY},
        "cells": {"path": "c"},
        "learn": {"column": "ds", "last": 3},
    }
    return Partitions(Config.model_validate(plain))


@pytest.mark.parametrize("labels", [DAY, {**DAY, "source": "bank"}, None])
def test_each_day_has_its_own_scores_and_labels(labels):
    of_window = partitions(labels)
    assert of_window.window == ["ds=2026-11-24", "ds=2026-11-25", "ds=2026-11-26"]
    for name in of_window.window:
        config, there = of_window.config_of(name), {"ds": name.partition("=")[2]}
        assert config.scored.partition == there
        assert config.labels.partition == (None if labels is None else {**labels, **there})


@pytest.mark.parametrize("labels", [{"day": "2026-11-26"}, {"ds": "2026-12-03"}, {"ds": "20261126"}])
def test_labels_of_a_partition_that_is_not_the_days_are_refused(labels):
    # Of another day of the window nobody could say which of them are meant: those of one day for all of them?
    with pytest.raises(ConfigurationError, match=r"name ds=2026-11-26 there too"):
        _ = partitions(labels).window
