"""Scores and labels outside [0, 1]."""

from __future__ import annotations

import numpy as np
import pytest


def spoil(table):
    for i, (name, value) in enumerate(
        [("score", 1.2), ("score", -0.1), ("label", 2.0), ("label", -1e-6), ("score", 1 + 2e-9)]
    ):
        table.loc[i, name] = value
    return table


def test_they_are_rejected_and_never_clipped(world, people):
    world.change("scored", spoil)
    done = world.ran("audit")
    assert done.summary["rejected_by_reason"] == {"score_out_of_range": 3, "label_out_of_range": 2}
    assert done.summary["rows"]["scored"] == len(people) - 5
    assert done.summary["clipped"] == 0


def test_above_the_configured_share_the_run_is_refused(world, people):
    world.change("scored", spoil)
    world.refused(
        rf"5 of {len(people)} rows rejected \(2.08%, allowed 2.00%\): .*score_out_of_range 3",
        job="audit",
        max_rejected_share=0.02,
    )
    assert world.ran("audit", max_rejected_share=0.03).exit_code == 0


def test_rounding_noise_is_clipped_and_counted(world, people):
    def noise(table):
        table.loc[:2, "score"] = [1 + 1e-9, -1e-9, -0.0]
        table.loc[:1, "label"] = [1 + 1e-12, 1.0]
        return table

    world.change("scored", noise)
    done = world.ran()
    assert (done.summary["rows"]["rejected"], done.summary["clipped"]) == (0, 2)
    output = world.output(done)
    assert list(output["score"][:3]) == [1.0, 0.0, 0.0]
    assert not np.signbit(output["score"][2])
    assert output["label"][0] == 1.0
    assert np.array_equal(output["score"][3:], people["score"][3:])


WRONG_SCALE = {
    "scores in percent": ({"score": lambda t: 100 * t["score"]}, r"scores run from .* to 9\d.*: divide by"),
    "scores in deciles": (
        {"score": lambda t: np.ceil(10 * t["score"])}, r"from 1 to 10: if they are ranks or deciles"),
    "log-odds": ({"score": lambda t: 8 * t["score"] - 4}, r"from -\d.*: if they are log-odds"),
    "labels -1 and 1": (
        {"label": lambda t: 2 * t["label"] - 1},
        r"every row with the label -1 \(\d+ rows\) would be rejected; every label that is left is 1; "
        r"labels are -1 and 1: write 0 for -1"),
    "a few labels -1, all others 1": (
        {"label": lambda t: np.where(t.index < 3, -1.0, 1.0)}, r"the label -1 \(3 rows\)"),
    "labels 1 and 2": ({"label": lambda t: t["label"] + 1}, r"labels are 1 and 2: subtract 1"),
    "a code for a missing label": (
        {"label": lambda t: np.where(t.index < 25, 99.0, t["label"])}, r"row with the label 99 \(25 rows"),
    "labels in percent": ({"label": lambda t: 37.5 + t["label"] * (t.index % 40)}, r"run from .*: divide by"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG_SCALE)
def test_another_scale_is_refused_and_guessed(world, what):
    """Once nearly all rows were rejected, and what was left was published with exit code 0."""
    columns, told = WRONG_SCALE[what]
    world.change("scored", lambda t: t.assign(**columns))
    world.refused(told, job="audit")


def test_without_a_share_twenty_rows_are_allowed_and_one_more_is_not(world):
    def spoilt(rows):
        return lambda t: t.assign(score=t["score"].where(t.index >= rows, 1.5 + t.index % 7))

    world.change("scored", spoilt(20))
    assert world.ran("audit").summary["rows"]["rejected"] == 20
    world.refused(r"20 of 240 rows rejected", job="audit", max_rejected_share=0.08)
    world.change("scored", spoilt(21))
    world.refused(r"21 of 240 rows rejected \(8.75%, allowed 1.00%\)", job="audit")
    assert world.ran("audit", max_rejected_share=0.09).summary["rows"]["rejected"] == 21


def test_faults_of_labels_are_a_share_of_the_labelled_rows(world):
    """Most rows have no label: 22 bad ones are a small share of all rows, and a large one of labels."""
    bad = 3.5 + np.arange(240) % 7

    world.change(
        "scored", lambda t: t.assign(label=np.where(t.index < 22, bad, t["label"].where(t.index < 90)))
    )
    world.refused(r"22 of 90 labelled rows rejected \(24.44%", job="audit", max_rejected_share=0.1)
