"""Several scores: what goes together with them, and which columns they and what is added may be."""

import pytest

from mcspark.config import Config, load_config
from mcspark.errors import ConfigurationError

GIVEN = {
    "scored": "{path: scored, key: [id], weight: w, scores: [a, 'b.2']}",
    "attributes": "[{path: attributes, key: [id]}]",
    "groups": "{columns: [{column: sex}]}",
    "output": "{path: out}",
    "model": "{path: model}",
    "report": "{path: report.html}",
}


def config(*more, needs=("output", "model")):
    settings = [f"{key}={value}" for key, value in GIVEN.items()]
    return load_config(None, [*settings, *more], {}, needs=needs)


def test_columns():
    found = config().scored
    assert (found.all_scores, found.added) == (("a", "b.2"), ("calibrated_a", "calibrated_b.2"))
    one = config("scored.scores=null").scored
    assert (one.all_scores, one.added) == (("score",), ("calibrated_score",))
    assert config("scored.scores=[a]").scored.added == ("calibrated_a",)
    assert config("scored.label=score").scored.label == "score"


def test_classes_are_scores_by_the_label():
    found = config("scored.scores=null", "scored.classes={cat: a, 7: b}").scored
    assert found.classes == {"cat": "a", "7": "b"}
    assert (found.all_scores, found.added, found.several) == (
        ("a", "b"),
        ("calibrated_a", "calibrated_b"),
        True,
    )
    assert not config("scored.scores=null").scored.several


def test_it_can_be_written_out_and_read_again():
    found = config()
    assert Config.model_validate(found.to_plain()) == found


def test_calibrated_scores_may_be_audited():
    assert config("scored.scores=[calibrated_a, a]", needs=("output",)).scored.scores
    with pytest.raises(ConfigurationError, match=r"scored\.scores: is a column that the output adds"):
        config("scored.scores=[calibrated_a, a]")


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ("scored.score=c", "scored: has score and scores; name the scores in one of them"),
        ("scored.scores=[]", "scored.scores: is empty"),
        ("scored.scores=[a, A]", "scored.scores: names 'A' twice"),
        ("scored.scores=[a, ID]", "scored.scores: is the column 'ID', which is already key"),
        ("scored.label=A", "scored.label: is the column 'A', which is already scores"),
        ("scored.weight=b.2", "scored.weight: is the column 'b.2', which is already scores"),
        ("scored.weight=calibrated_A", "scored.scores: calibrated_A is a column that the output adds"),
        ("scored.scores=[a, split]", "scored.scores: is a column that the output adds"),
        (f"scored.scores=[{', '.join(f's{i}' for i in range(51))}]", "names 51 scores, more than 50"),
        (f"scored.scores=[a, {'b' * 250}]", "scored.scores: names 'b+', too long"),
        ("output.partition={a: x}", "output.partition.a: is a score"),
        ("output.partition={calibrated_a: x}", "output.partition.calibrated_a: is a column that the output"),
        ("segments={by: [country]}", "scored.scores: does not go with segments"),
        ("cells={path: cells}", "scored.scores: does not go with cells"),
        ("drift={against: m.json}", "scored.scores: does not go with drift.against"),
        ("attributes.0.path=out_metrics_by_score", "output.path: .*out_metrics_by_score written beside it"),
        ("model.path=report_0001.html", "report.path: .*report_0001.html written beside it"),
        (
            "compare={tasks: [{name: x, scored: {path: s, key: [id], scores: [a]},"
            " attributes: [{path: attributes, key: [id]}]}]}",
            "compare.tasks.0.scored.scores: does not go with a comparison",
        ),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(more, match):
    with pytest.raises(ConfigurationError, match=match):
        config(more)


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ("scored.classes={}", "scored.classes: names fewer than two classes"),
        ("scored.classes={cat: a}", "scored.classes: names fewer than two classes"),
        ("scored.classes={cat: a, dog: A}", "scored.classes: names the column 'A' twice"),
        ("scored.classes={cat: a, dog: ID}", "scored.classes: is the column 'ID', which is already key"),
        ("scored.classes={cat: a, dog: '(top class)'}", "'.top class.', as the largest score is called"),
        ("scored.label=a", "scored.label: is the column 'a', which is already classes"),
        ("scored.scores=[c, d]", "scored: has classes and scores"),
        ("scored.score=c", "scored: has classes and score"),
        ("scored.weight=calibrated_a", "scored.classes: calibrated_a is a column that the output adds"),
        ("segments={by: [country]}", "scored.classes: does not go with segments"),
        ("cells={path: cells}", "scored.classes: does not go with cells"),
        ("drift={against: m.json}", "scored.classes: does not go with drift.against"),
        ("labels={path: l, key: [id]}", "scored.classes: does not go with labels"),
        ("model.path=report_0002.html", "report.path: .*report_0002.html written beside it"),
    ],
)
def test_what_does_not_go_together_with_classes_is_refused(more, match):
    with pytest.raises(ConfigurationError, match=match):
        config("scored.scores=null", "scored.classes={cat: a, dog: b}", more)


def test_a_comparison_is_of_one_score():
    assert config("compare={output: {path: c}}")
    with pytest.raises(ConfigurationError, match=r"scored\.scores: does not go with a comparison"):
        config("compare={output: {path: c}}", needs=("compare.output",))
