import os
from pathlib import Path

import pytest
import yaml

from mcspark.config import Config, load_config

ROOT = Path(__file__).resolve().parents[3]
JOB_NEEDS = ("output", "model", "report", "compare.output")


@pytest.fixture
def example():
    path = Path(os.environ.get("MCSPARK_SHARED", ROOT.parent / "shared")) / "guide" / "config.example.yaml"
    if not path.is_file():
        pytest.skip(f"no example configuration at {path}: set MCSPARK_SHARED")
    return path


def assert_within(wanted, found, place=""):
    """Every value of ``wanted`` stands in ``found``."""
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            assert_within(value, found[key], f"{place}.{key}")
    elif isinstance(wanted, list):
        assert len(wanted) == len(found), place
        for value, other in zip(wanted, found, strict=True):
            assert_within(value, other, place)
    else:
        assert found == wanted, place


def test_the_example_loads_unchanged(example):
    config = load_config(str(example), (), {}, needs=JOB_NEEDS)
    plain = yaml.safe_load(example.read_text(encoding="utf-8"))
    assert set(plain) == set(Config.model_fields) - {
        "allow_empty",
        "cells",
        "max_rejected_share",
        "drift",
        "labels",
        "learn",
        "segments",
        "features",
        "tracking",
    }
    assert_within(plain, config.to_plain())
    assert (config.gate.max_mc_error, config.gate.must_improve) == (None, True)


def test_the_defaults_are_those_of_the_example(example):
    config = load_config(str(example), (), {})
    bare = Config.model_validate(
        {
            "scored": {"path": "x", "key": ["id"]},
            "attributes": [{"path": "x", "key": ["id"]}],
            "compare": {"output": {"path": "data/compare"}},
        }
    )
    for section in ("split", "calibrator", "evaluation", "compare", "gate"):
        assert getattr(bare, section) == getattr(config, section)
    assert bare.groups.min_share == config.groups.min_share
    assert bare.groups.intersections == config.groups.intersections


@pytest.mark.parametrize("task", ["income", "income_class", "travel"])
def test_the_acs_configurations_load(task):
    config = load_config(str(ROOT / "conf" / f"acs_{task}.yaml"), (), {}, needs=JOB_NEEDS)
    home = f"mcspark-run/acs_{task}"
    assert config.scored.path == f"{home}/scored"
    assert [table.path for table in config.attributes] == [f"{home}/attributes"]
    assert (config.scored.key, config.scored.weight) == (("SERIALNO", "SPORDER"), None)
    assert config.groups.attribute_columns == ("RAC1P", "SEX", "AGEP", "SCHL", "OCCP")
    assert config.output.path.startswith(f"{home}/")
    assert config.split.test == 0.4


def test_the_acs_groups_are_those_of_the_example(example):
    wanted = load_config(str(example), (), {}).groups
    for task in ("income", "income_class", "travel"):
        groups = load_config(str(ROOT / "conf" / f"acs_{task}.yaml"), (), {}).groups
        assert groups.columns == wanted.columns
        assert groups.predicates == ()
