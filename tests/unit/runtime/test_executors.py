"""Processors of the driver."""

from __future__ import annotations

import os

from mcspark.runtime.tasks.executors import driver_cores


def test_the_drivers_processors_are_those_it_may_use():
    assert driver_cores() == len(os.sched_getaffinity(0))


def test_they_are_those_of_the_machine_where_it_does_not_say(monkeypatch):
    """As on macOS, where SynapseML does not load and the driver trains."""
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert driver_cores() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert driver_cores() == 1
