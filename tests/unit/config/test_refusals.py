"""Configurations that are refused, and with which words."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mcspark.config import Config
from mcspark.config.problems import problems_of
from tests.unit.config.config_files import small


def wrongs(plain):
    with pytest.raises(ValidationError) as caught:
        Config.model_validate(plain)
    return {".".join(p.place): p.what for p in problems_of(caught.value, Config)}


COLUMN = {"column": "AGEP"}
REFUSED = [
    # key and columns
    ({"scored": {"key": []}}, "scored.key", "is empty; name at least one column"),
    ({"scored": {"key": ["id", "ID"]}}, "scored.key", "names 'ID' twice"),
    ({"scored": {"key": "id"}}, "scored.key", "must be a list, such as [a, b]"),
    ({"scored": {"key": ["split"]}}, "scored.key", "names 'split', a column that the output adds"),
    ({"scored": {"key": [""]}}, "scored.key.0", "a column name is empty; name a column"),
    ({"scored": {"key": [1]}}, "scored.key.0", "must be text; put it in quotes"),
    ({"scored": {"score": "a\nb"}}, "scored.score", "holds a control character; rename the column"),
    ({"scored": {"score": "${env:HOME}"}}, "scored.score", "would be substituted by Spark"),
    ({"scored": {"score": "x" * 256}}, "scored.score", "longer than 255 characters"),
    ({"scored": {"label": "score"}}, "scored.label", "is the column 'score', which is already score"),
    ({"scored": {"label": "ID"}}, "scored.label", "is the column 'ID', which is already key"),
    ({"scored": {"weight": "Label"}}, "scored.weight", "is the column 'Label', which is already label"),
    ({"scored": {"weight": "Split"}}, "scored.weight", "is 'Split', a column that the output adds"),
    ({"scored": {"label": "calibrated_score"}}, "scored.label", "a column that the output adds"),
    # where tables are
    ({"scored": {"path": None}}, "scored.table", "path and table are both missing; give one of them"),
    ({"scored": {"table": "a.b"}}, "scored.table", "path and table are both given; give one of them"),
    ({"scored": {"path": " "}}, "scored.path", "a path is empty; name a folder or file"),
    ({"scored": {"path": "a "}}, "scored.path", "begins or ends with a space"),
    ({"scored": {"path": "a/{{ ds }}"}}, "scored.path", "'{{' in a path is a template left unrendered"),
    ({"scored": {"path": None, "table": "a b"}}, "scored.table", "'a b' is no table name"),
    ({"scored": {"path": None, "table": "a..b"}}, "scored.table", "is no table name"),
    ({"scored": {"format": "orc"}}, "scored.format", "must be parquet | csv | delta | iceberg | table"),
    ({"scored": {"format": "parque"}}, "scored.format", "did you mean parquet?"),
    ({"scored": {"format": "table"}}, "scored.format", "'table' does not go with path"),
    (
        {"scored": {"path": None, "table": "a.b", "format": "parquet"}},
        "scored.format",
        "does not go with table; leave format out, or write table, delta or iceberg",
    ),
    (
        {"output": {"path": "o", "format": "csv"}},
        "output.format",
        "must be parquet | delta | iceberg | table",
    ),
    ({"output": {}}, "output.table", "path and table are both missing"),
    ({"scored": {"dedupe": {}}}, "scored.dedupe.latest_by", "is missing; add it"),
    ({"scored": {"partition": {}}}, "scored.partition", "is empty; give key: value"),
    ({"scored": {"partition": {"ds": True}}}, "scored.partition.ds", "must be text; put it in quotes"),
    ({"scored": {"partition": {"ds": None}}}, "scored.partition", "partition ds='' is empty"),
    ({"scored": {"partition": {"d-s": "x"}}}, "scored.partition", "'d-s' is no identifier"),
    (
        {"output": {"path": "o", "partition": {"a": "..", "ds": "2026-13-01"}}},
        "output.partition",
        "partition a='..' would leave the folder of the table; remove the dots; "
        "partition ds='2026-13-01' is a date that does not exist; write a real one as YYYY-MM-DD",
    ),
    ({"attributes": []}, "attributes", "is empty; name at least one attribute table"),
    (
        {"attributes": [{"path": f"a{i}", "key": ["id", "part"]} for i in range(61)]},
        "attributes",
        "names 61 tables, more than 60",
    ),
    ({"attributes": None}, "attributes", "must be a list"),
    (
        {"attributes": [{"path": "a", "key": ["id"]}]},
        "attributes",
        "table 0 has the key ['id'], but the scored table has ['id', 'part']; use the same names",
    ),
    (
        {"attributes": [{"path": "a", "key": ["id", "part"], "on_unmatched": "drop"}]},
        "attributes.0.on_unmatched",
        "must be unknown | reject | fail",
    ),
    # groups
    ({"groups": {"min_share": -0.1}}, "groups.min_share", "must be at least 0"),
    ({"groups": {"min_share": 1}}, "groups.min_share", "must be less than 1"),
    ({"groups": {"min_share": "0.1"}}, "groups.min_share", "must be a number, without quotes"),
    ({"groups": {"min_share": math.nan}}, "groups.min_share", "must be a finite number"),
    ({"groups": {"intersections": 3}}, "groups.intersections", "must be at most 2"),
    ({"groups": {"intersections": 0}}, "groups.intersections", "must be at least 1"),
    ({"groups": {"columns": [COLUMN, {"column": "agep"}]}}, "groups.columns", "names 'agep' twice"),
    ({"groups": {"columns": [COLUMN | {"bins": [1]}]}}, "groups.columns.0.bins", "needs at least two edges"),
    (
        {"groups": {"columns": [COLUMN | {"bins": [0, 5, 5]}]}},
        "groups.columns.0.bins",
        "must be strictly increasing, but 5 follows 5; sort the edges",
    ),
    (
        {"groups": {"columns": [COLUMN | {"bins": [0, math.inf]}]}},
        "groups.columns.0.bins.1",
        "must be a finite number",
    ),
    (
        {"groups": {"columns": [COLUMN | {"divide_by": 0}]}},
        "groups.columns.0.divide_by",
        "must be greater than 0",
    ),
    (
        {"groups": {"columns": [COLUMN | {"bins": [0, 1], "divide_by": 2}]}},
        "groups.columns.0.divide_by",
        "does not go with bins; give one of them",
    ),
    (
        {"groups": {"predicates": [{"name": "a", "where": "true"}, {"name": "A", "where": "true"}]}},
        "groups.predicates",
        "has two groups named 'A'; give each its own name",
    ),
    (
        {"groups": {"columns": [COLUMN], "predicates": [{"name": "AgeP", "where": "true"}]}},
        "groups.predicates",
        "names a group 'AgeP' like a group column; rename it",
    ),
    (
        {"groups": {"predicates": [{"name": "a\x00", "where": "true"}]}},
        "groups.predicates.0.name",
        "must be 1 to 200 printable characters",
    ),
    (
        {"groups": {"predicates": [{"name": "a", "where": "reflect('a')"}]}},
        "groups.predicates.0.where",
        "the function reflect() is not allowed",
    ),
    # split, calibrator, evaluation, compare, gate
    ({"split": {"test": 0}}, "split.test", "must be greater than 0"),
    ({"split": {"test": 1.0}}, "split.test", "must be less than 1"),
    ({"split": {"early_stopping": 1}}, "split.early_stopping", "must be less than 1"),
    ({"split": {"early_stopping": 0}}, "split.early_stopping", "must be greater than 0"),
    ({"split": {"seed": -1}}, "split.seed", "must be at least 0"),
    ({"calibrator": {"method": "tree"}}, "calibrator.method", "did you mean trees?"),
    ({"calibrator": {"learning_rate": 0}}, "calibrator.learning_rate", "must be greater than 0"),
    ({"calibrator": {"feature_fraction": 1.1}}, "calibrator.feature_fraction", "must be at most 1"),
    ({"calibrator": {"max_trees": 0}}, "calibrator.max_trees", "must be at least 1"),
    ({"calibrator": {"max_trees": 10.0}}, "calibrator.max_trees", "must be a whole number"),
    ({"calibrator": {"max_trees": True}}, "calibrator.max_trees", "must be a whole number"),
    ({"calibrator": {"early_stopping_rounds": 0}}, "calibrator.early_stopping_rounds", "must be at least 1"),
    ({"calibrator": {"link": "log"}}, "calibrator.link", "must be identity | logit; did you mean logit?"),
    ({"calibrator": {"rounds": 0}}, "calibrator.rounds", "must be a whole number from 1 to 100, or auto"),
    ({"calibrator": {"rounds": True}}, "calibrator.rounds", "from 1 to 100, or auto"),
    ({"calibrator": {"rounds": "Auto"}}, "calibrator.rounds", "from 1 to 100, or auto"),
    (
        {"calibrator": {"method": "isotonic", "monotone": True}},
        "calibrator.monotone",
        "is a promise of the trees alone; set calibrator.method: trees",
    ),
    ({"calibrator": {"engine": "LightGBM"}}, "calibrator.engine", "must be auto | synapseml | lightgbm"),
    ({"calibrator": {"refit": 1}}, "calibrator.refit", "must be true or false, without quotes"),
    ({"calibrator": {"timeout_seconds": 0}}, "calibrator.timeout_seconds", "must be at least 1"),
    ({"calibrator": {"lsboost": {"depth": 3}}}, "calibrator.lsboost.depth", "must be at most 2"),
    (
        {"calibrator": {"multiaccuracy": {"penalties": [0, -1]}}},
        "calibrator.multiaccuracy.penalties",
        "must not be negative; write 0 for no penalty",
    ),
    ({"evaluation": {"levels": []}}, "evaluation.levels", "is empty; give at least one number of levels"),
    (
        {"labels": {"path": "x", "key": ["id"]}},
        "labels",
        "the table has the key ['id'], but the scored table has ['id', 'part']; use the same names",
    ),
    (
        {"labels": {"path": "x", "key": ["id", "part"]}, "scored": {"label": None}},
        "labels",
        "is given, but scored.label is null; name the column that they have in the output",
    ),
    (
        {"evaluation": {"thresholds": [0.5, 0.123]}},
        "evaluation.thresholds",
        "names 0.123, which is no multiple of 1/300, so no edge of these levels; name another, or add 1000",
    ),
    ({"evaluation": {"thresholds": [0.5, 0.50]}}, "evaluation.thresholds", "names 0.5 twice; name each once"),
    ({"evaluation": {"levels": [0]}}, "evaluation.levels", "must be positive whole numbers"),
    ({"evaluation": {"levels": [20, 10, 20]}}, "evaluation.levels", "names a number of levels twice"),
    (
        {"evaluation": {"levels": [7, 11, 13, 17, 19]}},
        "evaluation.levels",
        "need score bins at 323323 common edges, more than 100000; choose grids that divide one another",
    ),
    ({"evaluation": {"levels": 20}}, "evaluation.levels", "must be a list"),
    ({"compare": {"methods": []}}, "compare.methods", "is empty; name at least one method"),
    ({"compare": {"methods": ["trees", "trees"]}}, "compare.methods", "names a method twice"),
    ({"compare": {"methods": ["three"]}}, "compare.methods.0", "must be none | multiaccurate | mcboost"),
    ({"compare": {"sweep": None}}, "compare.sweep", "must be paper | none"),
    ({"gate": {"max_mc_error": 2}}, "gate.max_mc_error", "must be at most 1"),
    ({"gate": {"must_improve": "yes"}}, "gate.must_improve", "must be true or false, without quotes"),
    ({"gate": 1}, "gate", "must be a section of key: value lines"),
    ({"model": {}}, "model.path", "is missing; add it"),
    ({"max_rejected_share": 1.5}, "max_rejected_share", "must be at most 1"),
    # unknown keys
    ({"groups": {"min_shar": 1}}, "groups.min_shar", "unknown key; did you mean min_share?"),
    ({"min_share": 1}, "min_share", "unknown key; did you mean groups.min_share?"),
    ({"gate": {"Must_Improve": True}}, "gate.Must_Improve", "unknown key; did you mean must_improve?"),
    (
        {"groups": {"columns": [{"column": "A", "bin": [0, 1]}]}},
        "groups.columns.0.bin",
        "unknown key; did you mean bins?",
    ),
    ({"model": {"path": "m", "qqq": 1}}, "model.qqq", "unknown key; known here are path"),
]


@pytest.mark.parametrize(
    ("change", "place", "words"), REFUSED, ids=[f"{place}-{i}" for i, (_, place, _) in enumerate(REFUSED)]
)
def test_refused(change, place, words):
    found = wrongs(small(**change))
    assert list(found) == [place]
    assert words in found[place]


def test_all_problems_at_once():
    changes = {
        "scored": {"label": "score", "format": "orc", "partition": {"ds": "None"}, "keys": 1},
        "attributes": [{"path": "a", "key": ["id"]}],
        "groups": {"min_share": 2, "columns": [{"column": "A", "bins": [2, 1]}], "predicates": [{}]},
        "split": {"test": 1},
        "gat": {},
    }
    assert set(wrongs(small(**changes))) == {
        "scored.label", "scored.format", "scored.partition", "scored.keys", "groups.min_share",
        "groups.columns.0.bins", "groups.predicates.0.name", "groups.predicates.0.where", "split.test", "gat",
    }  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from([*Config.model_fields]), JSON)
def test_garbage_is_refused_with_words_or_survives_the_round_trip(name, value):
    plain = small() | {name: value}
    try:
        config = Config.model_validate(plain)
    except ValidationError as error:
        problems = problems_of(error, Config)
        assert problems
        assert all("Input should" not in problem.what for problem in problems)
    else:
        assert Config.model_validate(json.loads(json.dumps(config.to_plain()))) == config
