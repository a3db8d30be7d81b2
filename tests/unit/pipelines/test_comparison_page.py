"""The ranking of a comparison: not by grids that are blind to the scores."""

from __future__ import annotations

import pytest

from mcspark.ml.training.tuning import ResultRow
from mcspark.pipelines.comparison_page import Spreads, figure, html, leads, ma_table, markdown, mc_tables

METHODS = {"none": (0.0490, 0.0020, 0.0065), "trees": (0.0490, 0.0001, 0.0012)}


def rows(share):
    """Errors at 20 and 75 levels and of the score itself; all scores lie in one level of 20."""
    found = []
    for method, (blind, itself, seeing) in METHODS.items():
        found.append(ResultRow("fraud", method, None, 0, "score_ma_error", itself))
        for m, error, full in ((20, blind, 1.0), (75, seeing, share)):
            numbers = {"mc_error": error, "level_sets": 1, "fullest_level": 0, "fullest_level_share": full}
            found += [ResultRow("fraud", method, m, 0, name, value) for name, value in numbers.items()]
    return found


@pytest.mark.parametrize(("share", "metric", "levels"), [(0.6, "mc_error", 75), (0.999, "ma_error", None)])
def test_a_blind_grid_ranks_no_method_and_what_does_is_told(share, metric, levels):
    found = rows(share)
    assert {k: leads(found)["fraud"][k] for k in ("metric", "levels")} == {"metric": metric, "levels": levels}
    table = mc_tables(found)[0]
    assert table.head == ("method", "m = 20 (blind)", "m = 75" if levels else "m = 75 (blind)")
    assert table.body == (
        ("uncalibrated", "0.0490", "0.0065"),
        ("trees", "0.0490", "0.0012 *" if levels else "0.0012"),
    )
    assert ma_table(found).body == (("uncalibrated", "–", "2.000"), ("trees", "–", "0.100 *"))
    for page in (markdown(found, {}, "lightgbm"), html(found, {}, "lightgbm", "<svg></svg>")):
        assert "fraud: The multicalibration error at 20" in page
        assert page.index("Multiaccuracy error of the score itself") < page.index(
            "Multicalibration error, fraud"
        )


def test_where_every_grid_sees_nothing_is_said_of_it():
    found = [r for r in rows(0.6) if r.m != 20]
    assert leads(found)["fraud"] == {"metric": "mc_error", "levels": 75, "blind": {}}
    page = markdown(found, {}, "lightgbm")
    assert "blind" not in page
    assert "Multiaccuracy error of the score" not in page


@pytest.mark.parametrize(("share", "left_out"), [(0.6, "20 levels"), (0.999, "20, 75 levels")])
def test_the_figure_draws_no_blind_grid_and_says_so(share, left_out):
    found = rows(share)
    assert Spreads(found).seeing("fraud") == ((75,) if share < 0.95 else ())
    assert f"left out as blind: {left_out}" in figure(found)
