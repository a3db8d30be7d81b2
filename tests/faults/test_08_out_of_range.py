"""Scores and labels outside [0, 1]."""

from __future__ import annotations

import numpy as np


def spoil(table):
    for i, (name, value) in enumerate(
        [("score", 1.2), ("score", -0.1), ("label", 2.0), ("label", -1e-6), ("score", 1 + 2e-9)]
    ):
        table.loc[i, name] = value
    return table


def test_they_are_rejected_and_never_clipped(world, people):
    world.change("scored", spoil)
    done = world.ran()
    assert done.summary["rejected_by_reason"] == {"score_out_of_range": 3, "label_out_of_range": 2}
    assert done.summary["rows"]["scored"] == len(people) - 5
    assert done.summary["clipped"] == 0


def test_above_the_configured_share_the_run_is_refused(world, people):
    world.change("scored", spoil)
    world.refused(
        rf"5 of {len(people)} rows rejected \(2.08%, allowed 2.00%\): .*score_out_of_range 3",
        max_rejected_share=0.02,
    )
    assert world.ran(max_rejected_share=0.03).exit_code == 0


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
