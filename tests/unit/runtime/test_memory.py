"""The memory of the machine, or less in a container."""

from __future__ import annotations

from mcspark.runtime.process.memory import memory_bytes


def test_a_container_has_what_it_is_given(tmp_path):
    (tmp_path / "max").write_text("max\n")
    (tmp_path / "limit").write_text("123456789\n")
    machine = memory_bytes((str(tmp_path / "none"), str(tmp_path / "max")))
    assert machine > 2**28
    assert memory_bytes((str(tmp_path / "max"), str(tmp_path / "limit"))) == 123456789
