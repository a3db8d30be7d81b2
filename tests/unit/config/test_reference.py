"""The reference of the configuration is that of the models."""

from __future__ import annotations

from pathlib import Path

from mcspark.config import Config
from mcspark.config.reference import main, reference

FILE = Path(__file__).resolve().parents[3] / "docs" / "configuration.md"


def test_the_reference_is_current():
    assert FILE.read_text(encoding="utf-8") == reference(), (
        "a model of the configuration has changed; run "
        "python -m mcspark.config.reference docs/configuration.md"
    )


def test_every_key_is_in_it(tmp_path):
    assert main([str(tmp_path / "x.md")]) == 0
    text = (tmp_path / "x.md").read_text(encoding="utf-8")
    for name, field in Config.model_fields.items():
        assert f"| `{name}` |" in text
        for key in getattr(field.annotation, "model_fields", {}):
            assert f"| `{key}` |" in text
    assert "| `key` | list of texts | required |" in text
    assert "| `test` | number > 0, < 1 | `0.4` |" in text
    assert "## `groups.columns[]`" in text
    assert "## `calibrator.lsboost`" in text


def test_usage():
    assert main([]) == 2
