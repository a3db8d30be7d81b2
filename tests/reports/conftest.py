"""The small world of the faults, for inputs as people have them."""

from tests.faults.conftest import people, ready, world

__all__ = ["people", "ready", "world"]
