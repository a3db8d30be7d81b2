"""Segments: what goes together with them, and which columns they may be made of."""

import pytest

from mcspark.config import load_config
from mcspark.errors import ConfigurationError
from mcspark.pipelines.calibrate import engine

GIVEN = {
    "scored": "{path: scored, key: [id], weight: w}",
    "attributes": "[{path: attributes, key: [id]}]",
    "groups": "{columns: [{column: sex}]}",
    "output": "{path: out}",
    "model": "{path: model}",
    "segments": "{by: [country]}",
}


def config(*more):
    settings = [f"{key}={value}" for key, value in GIVEN.items()]
    return load_config(None, [*settings, *more], {}, needs=("output", "model"))


def test_defaults():
    found = config().segments
    assert (found.by, found.min_rows, found.max_mc_error) == (("country",), 5000, None)
    assert config("segments=null").segments is None
    assert config("segments.by=[sex, id]").segments.by == ("sex", "id")


def test_the_driver_grows_the_trees():
    assert engine(config()) == "lightgbm"
    assert engine(config("segments=null")) == "auto"


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ("calibrator.method=mcboost", "calibrator.method: learns none by segment"),
        ("calibrator.method=none", "calibrator.method: learns none by segment"),
        ("calibrator.training=rows", "calibrator.training: trains on rows"),
        ("calibrator.engine=synapseml", "calibrator.engine: .*write lightgbm or auto"),
        ("cells={path: cells}", "segments: does not go with kept cells"),
        ("segments.by=[label]", "segments.by: names the label"),
        ("segments.by=[Score]", "segments.by: names the score"),
        ("segments.by=[country, W]", "segments.by: names the weight"),
        ("segments.by=[]", "segments.by: is empty"),
        ("segments.by=[country, Country]", "segments.by: names 'Country' twice"),
        ("segments.by=[a, b, c, d, e, f, g]", "segments.by: names 7 columns, more than 6"),
        ("segments.min_rows=0", "segments.min_rows: must be at least 1"),
        ("attributes.0.path=out_segments", "output.path: .*out_segments written beside it"),
    ],
)
def test_what_does_not_go_together_is_refused(more, match):
    with pytest.raises(ConfigurationError, match=match):
        config(more)
