"""A local disk, as Spark would reach it, for tests without Spark."""

from __future__ import annotations

import pytest
from local_hadoop import Disk, session


@pytest.fixture
def disk():
    return Disk()


@pytest.fixture
def spark(disk):
    return session(disk)
