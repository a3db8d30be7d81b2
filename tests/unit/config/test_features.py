"""Features: which columns they may be, and what goes together with them."""

import pytest

from mcspark.config import load_config
from mcspark.core.cells.definitions import defined, learned_from
from mcspark.errors import ConfigurationError
from mcspark.pipelines.calibrate import engine

GIVEN = {
    "scored": "{path: scored, key: [id], weight: w}",
    "attributes": "[{path: attributes, key: [id]}]",
    "groups": "{columns: [{column: sex}, {column: age, bins: [0, 18, 65]}], "
    "predicates: [{name: p, where: a > 1}]}",
    "output": "{path: out}",
    "model": "{path: model}",
    "features": "{}",
}


def config(*more, needs=("output", "model")):
    settings = [f"{key}={value}" for key, value in GIVEN.items()]
    return load_config(None, [*settings, *more], {}, needs=needs)


def families(*more):
    found = config(*more)
    return [f.group_name(0) for f in learned_from(found.features, defined(found.groups))]


def test_the_columns_of_the_groups_are_learned_from_in_any_case():
    groups = ["sex=0", "age=[0,18)", "p"]
    assert families() == groups
    assert families("features.columns=[{column: Sex}, {column: age, bins: [0, 18, 65]}]") == groups
    more = "features.columns=[{column: job}, {column: AGE, divide_by: 1}]"
    assert families(more) == [*groups, "job=0", "age/1=0"]
    assert config("features=null").features is None


def test_the_official_lightgbm_grows_the_trees():
    assert engine(config()) == "lightgbm"
    assert engine(config("features=null")) == "auto"


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ("calibrator.method=mcboost", "calibrator.method: does not learn from columns"),
        ("calibrator.method=none", "calibrator.method: does not learn from columns"),
        ("calibrator.training=rows", "calibrator.training: does not learn from columns yet"),
        ("calibrator.engine=synapseml", "calibrator.engine: .*write auto or lightgbm"),
        ("cells={path: cells}", "features: does not go with kept cells yet"),
        ("segments={by: [country]}", "features: does not go with segments yet"),
        ("features.columns=[{column: Label}]", "features.columns.0.column: is the label"),
        ("features.columns=[{column: a}, {column: score}]", "features.columns.1.column: is the score"),
        ("features.columns=[{column: ID}]", "features.columns.0.column: is part of the key"),
        ("features.columns=[{column: a}, {column: A}]", "features.columns: names 'A' twice"),
        ("features.columns=[{column: a, bins: [0, 1], divide_by: 2}]", "does not go with bins"),
        ("features.columns=[{column: a, title: A}]", "features.columns.0.title"),
    ],
)
def test_what_does_not_go_together_is_refused(more, match):
    with pytest.raises(ConfigurationError, match=match):
        config(more)


def test_a_column_that_is_one_of_several_scores_is_refused():
    scored = "scored={path: scored, key: [id], scores: [a, b]}"
    assert config(scored, "features.columns=[{column: c}]").features is not None
    with pytest.raises(ConfigurationError, match=r"features.columns.0.column: is a score"):
        config(scored, "features.columns=[{column: B}]")


def test_a_comparison_refuses_them():
    with pytest.raises(ConfigurationError, match="features: a comparison does not learn from columns yet"):
        config("compare.output.path=results", needs=("compare.output",))
