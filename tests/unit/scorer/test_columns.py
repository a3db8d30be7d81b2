"""Columns as people hand them over: what they mean, and what is refused in a sentence."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scorer_models import model

from mcspark.errors import ContractError
from mcspark.scorer import Scorer


@pytest.fixture(scope="module")
def scorer():
    return Scorer(model(("identity",)))


PEOPLE = {
    "score": [0.1, 0.5, 0.9], "SEX": [1, 2, 1], "AGEP": [20.0, 70.0, 40.0], "OCCP": [5, 105, 205],
    "job": ["a", "b", "a"],
}  # fmt: skip


def scored_as(scorer, name, same):
    """The scores of the people with plain Python values in a column."""
    return [scorer.score_one(dict(zip(PEOPLE, row, strict=True))) for row in
            zip(*(PEOPLE | {name: same}).values(), strict=True)]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "column", "same"),
    [
        ("SEX", np.ma.masked_array([1, 2, 1], [False, True, False]), [1, None, 1]),
        ("AGEP", np.ma.masked_array(np.float32([20, 70, 40]), [False, True, False]), [20.0, None, 40.0]),
        ("job", np.ma.masked_array(["a", "b", "a"], [False, True, False]), ["a", None, "a"]),
        ("SEX", np.ma.masked_array([1, 2, 1]), [1, 2, 1]),
        ("SEX", np.array([1, 2, 1], dtype=np.uint64), [1, 2, 1]),
        ("SEX", pd.array([1, None, 1], dtype="UInt64"), [1, None, 1]),
        ("SEX", np.array([1, 2, 1], dtype=">i4"), [1, 2, 1]),
        ("score", np.array([0.1, 0.5, 0.9], dtype=">f8"), [0.1, 0.5, 0.9]),
        ("score", np.array([0.1, 0.5, 0.9], dtype=">f4"), [0.1, 0.5, 0.9]),
        ("SEX", pa.array([1, None, 1]), [1, None, 1]),
        ("job", pa.chunked_array([["a"], [None, "a"]]), ["a", None, "a"]),
        ("SEX", pd.Series([1, None, 1], index=[7, 8, 9]), [1, None, 1]),
        ("score", pd.arrays.SparseArray([0.0, 0.5, 0.0]), [0.0, 0.5, 0.0]),
        ("SEX", pd.arrays.SparseArray([1, 2, 1]), [1, 2, 1]),
    ],
)  # fmt: skip
def test_a_column_of_any_library_has_the_scores_of_plain_values(scorer, name, column, same):
    expected = scored_as(scorer, name, same)
    if not isinstance(column, pd.api.extensions.ExtensionArray):
        assert scorer.score(PEOPLE | {name: column}).tolist() == expected
    if not isinstance(column, pa.Array | pa.ChunkedArray | np.ma.MaskedArray):
        values = np.asarray(column).astype(column.dtype.newbyteorder("=")) if isinstance(column, np.ndarray) \
            else column.reset_index(drop=True) if isinstance(column, pd.Series) else column  # fmt: skip
        assert scorer.score(pd.DataFrame(PEOPLE).assign(**{name: values})).tolist() == expected


@pytest.mark.parametrize(
    ("name", "column", "words"),
    [
        ("SEX", [1], "'SEX' has 1 rows, but 'score' has 3"),
        ("AGEP", [20, 30], "'AGEP' has 2 rows"),
        ("score", [0.5], "'SEX' has 3 rows, but 'score' has 1"),
        ("SEX", 1, "'SEX' is one int; give a value for every row"),
        ("job", "abc", "'job' is one str"),
        ("SEX", None, "'SEX' is one NoneType"),
        ("SEX", np.ones((3, 1), dtype=int), "'SEX' has 2 dimensions"),
        ("SEX", np.array(1), "'SEX' has 0 dimensions"),
        ("SEX", [1, True, 2], "'SEX' holds bool and int"),
        ("SEX", [1, Decimal(1), 2], "'SEX' holds Decimal and int"),
        ("SEX", [[1], [2], [1]], "'SEX' holds list"),
        ("job", [Decimal("NaN"), Decimal(1), None], "'job' holds a decimal that is no number"),
        ("AGEP", [Decimal("Infinity")] * 3, "'AGEP' holds a decimal that is no number"),
        ("AGEP", [1.0, 2**2000, 3], "'AGEP' has whole numbers beyond 64 bits"),
        ("SEX", np.array([1, 2**63, 1], dtype=np.uint64), "'SEX' has whole numbers beyond 64 bits"),
        ("SEX", pa.array([[1], [2], [1]]), "'SEX' is list<item: int64>; store text"),
        ("score", pa.array(np.float16([0, 1, 0])), "'score' is halffloat; store text"),
    ],
)
def test_a_column_that_means_nothing_is_refused_by_its_name(scorer, name, column, words):
    with pytest.raises(ContractError, match=words):
        scorer.score(PEOPLE | {name: column})


def test_pandas_whole_numbers_beyond_64_bits_are_refused_and_never_another_number(scorer):
    table = pd.DataFrame(PEOPLE).assign(SEX=pd.array([1, 2**64 - 1, 2], dtype="UInt64"))
    with pytest.raises(ContractError, match="beyond 64 bits"):
        scorer.score(table)
    with pytest.raises(ContractError, match="Series is no table"):
        scorer.score(table["score"])


@pytest.mark.parametrize("value", [[1], {}, {"a": 1}])
def test_a_score_or_an_attribute_without_meaning_is_refused_in_a_row_too(scorer, value):
    row = {name: values[0] for name, values in PEOPLE.items()}
    for name in ("score", "SEX"):
        with pytest.raises(ContractError):
            scorer.score_one(row | {name: value})
