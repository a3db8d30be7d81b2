"""Windows and kept cells: what goes together, and which days are meant."""

import pytest

from mcspark.config import load_config
from mcspark.errors import ConfigurationError
from mcspark.pipelines.reading.partitions import Partitions

GIVEN = {
    "scored": "{path: scored, key: [id], partition: {ds: '2026-03-02'}}",
    "attributes": "[{path: attributes, key: [id]}]",
    "labels": "{path: labels, key: [id], partition: {ds: '2026-03-02'}}",
    "groups": "{columns: [{column: sex}]}",
    "output": "{path: out, partition: {ds: '2026-03-02'}}",
    "model": "{path: model}",
    "cells": "{path: cells}",
    "learn": "{column: ds, last: 3, mature_after: 2}",
}


def config(*more):
    settings = [f"{key}={value}" for key, value in GIVEN.items()]
    return load_config(None, [*settings, *more], {}, needs=("output", "model"))


@pytest.mark.parametrize(
    ("more", "match"),
    [
        (["cells=null"], "learn: needs kept cells"),
        (["cells.keep=4"], "cells.keep: is less than the 5 days"),
        (["learn.last=1", "split.by=time"], "learn.last: .*nothing is left to learn from"),
        (["learn=null", "split.by=time"], "split.by: .*say which one by learn"),
        (["split.by=time", "split.column=part"], "split.column: .*leave one of them out"),
        (["calibrator.training=rows"], "calibrator.training: .*cells alone are kept"),
        (["cells.path=out/cells"], "cells.path: lies in or around output.path"),
    ],
)
def test_what_does_not_go_together_is_refused(more, match):
    with pytest.raises(ConfigurationError, match=match):
        config(*more)


def test_the_window_ends_where_labels_are_mature():
    found = Partitions(config("split.by=time"))
    assert found.window == ["ds=2026-02-26", "ds=2026-02-27", "ds=2026-02-28"]
    assert found.needed == {*found.window, "ds=2026-03-01", "ds=2026-03-02"}
    assert Partitions(config("learn=null")).window == ["ds=2026-03-02"]


def test_days_are_written_as_that_of_the_run_is():
    plain = [f"{name}.partition.ds='20260302'" for name in ("scored", "output", "labels")]
    assert Partitions(config(*plain)).window[-1] == "ds=20260228"


def test_another_day_is_read_from_every_table_that_has_days():
    there = Partitions(config()).config_of("ds=2026-02-27")
    for table in (there.scored, there.labels, there.output):
        assert table.partition == {"ds": "2026-02-27"}


@pytest.mark.parametrize(
    ("more", "match"),
    [
        (["output.partition=null"], "output.partition is missing"),
        (["output.partition={ds: '2026-03-02', st: x}"], "by one column"),
        (["scored.partition=null"], "scored.partition is missing; both must be the same"),
        (["scored.partition.ds='2026-03-01'"], "scored.partition is ds=2026-03-01"),
        (["learn.column=dt"], "learn.column is dt, and output.partition is ds="),
        (
            [
                "learn.column=st",
                "scored.partition={st: north}",
                "output.partition={st: north}",
                "labels.partition={st: north}",
            ],
            "is no date",
        ),
    ],
)
def test_partitions_of_which_no_window_can_be_told_are_refused(more, match):
    with pytest.raises(ConfigurationError, match=match):
        _ = Partitions(config(*more)).window


@pytest.mark.parametrize(
    "other",
    [
        "evaluation.levels=[7]", "calibrator.score_bins=9", "split.seed=8", "cells.typical_weight=2",
        "scored.score=s", "groups.columns.0.divide_by=2", "attributes.0.path=elsewhere",
    ],
)  # fmt: skip
def test_settings_that_decide_the_cells_tell_kept_ones_apart(other):
    ours, theirs = (
        Partitions(c).wanted("ds=2026-02-28", {}).configuration for c in (config(), config(other))
    )
    assert ours != theirs


@pytest.mark.parametrize(
    "other",
    [
        "groups.min_share=0.2", "learn.half_life=3", "calibrator.link=logit",
        "output.path=elsewhere",
    ],
)  # fmt: skip
def test_settings_that_are_of_no_matter_to_the_cells_leave_them(other):
    ours, theirs = (
        Partitions(c).wanted("ds=2026-02-28", {}).configuration for c in (config(), config(other))
    )
    assert ours == theirs
