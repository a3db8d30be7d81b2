import hashlib
import json
from typing import get_args

import pytest
from pydantic import BaseModel, ValidationError

from mcspark.config import Config, Groups, required
from mcspark.errors import ConfigurationError
from tests.unit.config.config_files import small


def test_defaults():
    config = Config.model_validate(small())
    plain = config.to_plain()
    assert plain["scored"] | {"path": "", "key": []} == {
        "path": "", "table": None, "partition": None, "format": "parquet", "key": [], "score": "score",
        "scores": None, "classes": None, "label": "label", "weight": None, "dedupe": None, "csv": None,
    }  # fmt: skip
    assert plain["attributes"][0]["on_unmatched"] == "unknown"
    assert plain["groups"] == {
        "codebook": None, "min_share": 0.01, "columns": [], "predicates": [], "intersections": 1,
    }  # fmt: skip
    assert plain["split"] == {"by": "hash", "test": 0.4, "early_stopping": 0.3, "seed": 7, "column": None}
    calibrator = {k: v for k, v in plain["calibrator"].items() if not isinstance(v, dict)}
    assert calibrator == {
        "method": "trees", "recipe": "auto", "learning_rate": 0.1, "feature_fraction": 1.0,
        "max_trees": 5000, "early_stopping_rounds": 50, "link": "identity", "rounds": 1,
        "training": "cells", "score_bins": 255,
        "min_rows_in_leaf": 20, "seed": 1, "refit": False, "monotone": False, "timeout_seconds": 3600,
        "driver_cells": None,
        "engine": "auto",
    }  # fmt: skip
    assert plain["evaluation"] == {
        "levels": [10, 20, 30, 50, 75, 100], "draws": 200, "seed": 1, "min_group_rows": 2,
        "thresholds": [],
    }  # fmt: skip
    assert plain["compare"] == {
        "methods": ["none", "multiaccurate", "mcboost", "lsboost", "squarelev", "trees"],
        "partitions": 10, "sweep": "paper", "output": None, "task": "task", "tasks": [], "engine": "auto",
    }  # fmt: skip
    assert plain["gate"] == {"max_mc_error": None, "max_smece": None, "groups": {}, "must_improve": True}
    assert (plain["output"], plain["model"], plain["report"]) == (None, None, None)
    assert (plain["allow_empty"], plain["max_rejected_share"]) == (False, None)


GROUPS = {
    "columns": [{"column": "AGEP", "bins": [0, 18, 65]}, {"column": "a.b", "divide_by": 0.5}],
    "predicates": [{"name": "<old>", "where": "AGEP >= 65 and sex = 2"}],
    "intersections": 2,
}


def test_round_trip_through_json():
    config = Config.model_validate(
        small(groups=GROUPS, calibrator={"rounds": "auto"}, output={"path": "o", "partition": {"st": "01"}})
    )
    plain = json.loads(json.dumps(config.to_plain()))
    assert Config.model_validate(plain) == config
    assert config.output.partition == {"st": "01"}


def test_groups_know_the_columns_they_read():
    groups = Groups.model_validate(GROUPS)
    assert groups.attribute_columns == ("AGEP", "a.b", "sex")
    assert groups.predicates[0].sql == "(`AGEP` >= 65) AND (`sex` = 2)"
    assert groups.predicates[0].columns == {"AGEP", "sex"}


def test_required():
    config = Config.model_validate(small(output={"path": "o"}))
    assert required(config.output, "output").path == "o"
    with pytest.raises(
        ConfigurationError, match="model is missing in the configuration, and this job needs it"
    ):
        required(config.model, "model")


def test_frozen():
    config = Config.model_validate(small())
    with pytest.raises(ValidationError, match="frozen"):
        config.split.test = 0.5


def sections_of(model):
    yield model
    for field in model.model_fields.values():
        pending = [field.annotation]
        while pending:
            kind = pending.pop()
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from sections_of(kind)
            pending.extend(get_args(kind))


def test_every_key_is_described():
    sections = set(sections_of(Config))
    assert len(sections) >= 15
    fields = [(s.__name__, name, f.description) for s in sections for name, f in s.model_fields.items()]
    assert [f for f in fields if not f[2]] == []


def test_digest_is_of_the_redacted_canonical_json():
    config = Config.model_validate(small(scored={"path": "s3a://me:hush@bucket/x?token=abc"}))
    text = json.dumps(config.redacted(), sort_keys=True, separators=(",", ":"))
    assert config.digest() == hashlib.sha256(text.encode()).hexdigest()
    assert "hush" not in text
    assert "abc" not in text
    assert config.to_plain()["scored"]["path"] == "s3a://me:hush@bucket/x?token=abc"
    other = Config.model_validate(small(scored={"path": "s3a://me:new@bucket/x?token=abc"}))
    assert other.digest() == config.digest()
    assert Config.model_validate(small()).digest() != config.digest()


EDGES = {"calibrator": {"score_bins": 0, "learning_rate": 1, "rounds": 100}, "gate": {"max_mc_error": 0}}


@pytest.mark.parametrize(
    "plain",
    [
        small(**EDGES),
        small(groups={"min_share": 0}),
        small(groups=None, split=None, calibrator=None, evaluation=None, compare=None, gate=None),
        small(max_rejected_share=0, allow_empty=True),
        small(evaluation={"levels": [1]}),
        small(evaluation={"levels": [100_000]}),
        small(scored={"score": "calibrated_score"}),
        small(scored={"label": None, "weight": "größe (kg).`x`"}),
        small(scored={"path": None, "table": "lake.db.scored"}),
        small(scored={"path": None, "table": "lake.db.scored", "format": "iceberg"}),
        small(attributes=[{"path": "a", "key": ["part", "id"]}]),
        small(scored={"dedupe": {"latest_by": "ts"}}),
        small(split={"column": "split"}),
    ],
)
def test_accepted(plain):
    Config.model_validate(plain)


def test_a_table_by_name_has_the_format_table():
    config = Config.model_validate(small(scored={"path": None, "table": "lake.db.scored"}))
    assert config.scored.format == "table"


def test_both_words_for_multiaccuracy_are_known():
    config = Config.model_validate(
        small(calibrator={"method": "multiaccurate"}, compare={"methods": ["multiaccuracy"]})
    )
    assert config.calibrator.method == "multiaccuracy"
    assert config.compare.methods == ("multiaccurate",)


def test_a_comparison_takes_tasks_with_names_and_keys_of_their_own():
    task = {
        "name": "travel",
        "scored": {"path": "x", "key": ["id"]},
        "attributes": [{"path": "y", "key": ["id"]}],
    }
    plain = {**small(), "compare": {"task": "income", "tasks": [task]}}
    config = Config.model_validate(plain)
    assert (config.compare.tasks[0].name, config.compare.tasks[0].groups) == ("travel", None)
    for change, message in (
        ({"name": "Income"}, "names the task 'Income' twice"),
        ({"name": "a/b"}, "pattern"),
        ({"attributes": [{"path": "y", "key": ["other"]}]}, "table 0 has the key"),
        ({"attributes": []}, "is empty"),
    ):
        plain["compare"]["tasks"] = [{**task, **change}]
        with pytest.raises(ValidationError, match=message):
            Config.model_validate(plain)
