"""Names that would mean two columns at once are refused before Spark starts."""

import pytest

from mcspark.config import Config, load_config
from mcspark.config.name_clashes import name_clashes
from mcspark.errors import ConfigurationError
from mcspark.identifiers import folded
from tests.unit.config.config_files import small

OUTPUT = {"path": "data/out"}
GROUPS = {"columns": [{"column": "sex"}]}


def clashes(**sections):
    return [problem.line() for problem in name_clashes(Config.model_validate(small(**sections)))]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("part", "is part of the key"), ("Part", "is part of the key"), ("ID", "is part of the key"),
        ("score", "is the score"), ("SCORE", "is the score"), ("label", "is the label"),
        ("W", "is the weight"), ("calibrated_score", "is a column that the output adds"),
        ("Calibrated_Score", "is a column that the output adds"),
        ("split", "is a column that the output adds"),
        ("SPLIT", "is a column that the output adds"), ("reasons", "is a column of the rejected rows"),
        ("Source", "is a column of the rejected rows"),
    ],
)  # fmt: skip
def test_the_partition_of_the_output_is_none_of_its_columns(column, words):
    found = clashes(scored={"weight": "w"}, output={**OUTPUT, "partition": {column: "1"}})
    assert found == [f"output.partition.{column}: {words}; partition by another column"]


@pytest.mark.parametrize("column", ["Score", "LABEL", "w"])
def test_no_rows_are_chosen_by_score_label_or_weight(column):
    (found,) = clashes(scored={"weight": "w", "partition": {column: "1"}})
    assert found.startswith(f"scored.partition.{column}: is the ")


def test_no_labels_are_chosen_by_the_label():
    labels = {"path": "data/labels", "key": ["id", "part"], "label": "truth"}
    (found,) = clashes(labels={**labels, "partition": {"Truth": "1"}})
    assert found.startswith("labels.partition.Truth: is the label")
    assert not clashes(labels={**labels, "partition": {"ds": "2026-11-26"}})


def test_a_slice_by_a_day_of_the_key_is_fine():
    assert not clashes(
        scored={"partition": {"part": "1"}}, output={**OUTPUT, "partition": {"ds": "2026-11-26"}}
    )


@pytest.mark.parametrize(
    ("groups", "place"),
    [
        ({"columns": [{"column": "sex"}, {"column": "label"}]}, "groups.columns.1.column"),
        ({"columns": [{"column": "Label"}]}, "groups.columns.0.column"),
        ({"predicates": [{"name": "sick", "where": "LABEL = 1 OR sex = 2"}]}, "groups.predicates.0.where"),
    ],
)
def test_no_group_is_made_of_the_label(groups, place):
    (found,) = clashes(groups=groups)
    assert found.startswith(f"{place}: reads the label, which nobody knows of the rows to score")
    assert not clashes(groups=groups, scored={"label": "y"})
    assert not clashes(groups=groups, scored={"label": None})


def test_the_tasks_of_a_comparison_are_looked_at_too():
    task = {
        "name": "b",
        "scored": {"path": "s", "key": ["id"], "label": "sex", "partition": {"Score": "1"}},
        "attributes": [{"path": "a", "key": ["id"]}],
    }
    found = clashes(groups=GROUPS, compare={"tasks": [task]})
    assert [line.split(":")[0] for line in found] == [
        "compare.tasks.0.scored.partition.Score",
        "groups.columns.0.column",
    ]


@pytest.mark.parametrize("score", ["split", "SPLIT", "calibrated_score"])
def test_a_score_called_as_a_column_of_the_output_is_audited_but_not_calibrated(score):
    settings = ["scored.path=s", "scored.key=[id]", f"scored.score={score}", "output.path=o", "model.path=m"]
    settings += ["attributes.0.path=a", "attributes.0.key=[id]"]
    with pytest.raises(ConfigurationError, match=r"scored\.score: is a column that the output adds"):
        load_config(None, settings, {}, needs=("output", "model"))
    load_config(None, settings, {}, needs=("output",))


@pytest.mark.parametrize("name", ["reasons", "Source"])
def test_a_key_called_as_a_column_of_the_rejected_rows_is_refused(name):
    (found,) = clashes(scored={"key": [name]}, attributes=[{"path": "a", "key": [name]}])
    assert found.startswith("scored.key: names a column of the rejected rows")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Weight", "wEIGHT", True), ("région", "RÉGION", True), ("\u0131d", "ID", True),
        ("\u0130d", "id", True),
        ("\u017fex", "sex", True), ("\u212a", "k", True), ("straße", "strasse", False), ("a", "b", False),
        ("ß", "s", False), ("e\u0301", "\u00e9", False),
    ],
)  # fmt: skip
def test_names_are_folded_as_spark_compares_them(one, other, same):
    assert (folded(one) == folded(other)) is same
