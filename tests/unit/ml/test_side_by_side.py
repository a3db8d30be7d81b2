"""Pieces of work in processes of their own: in order, a few ahead, and an error is the caller's."""

from __future__ import annotations

import operator

import pytest

from mcspark.ml.training.side_by_side import side_by_side


@pytest.mark.parametrize("pieces", [3, 40])
def test_results_come_in_the_order_of_their_pieces(pieces):
    taken = []

    def given():
        for i in range(pieces):
            taken.append(i)
            yield f"piece {i}", (i, 2)

    with side_by_side(pieces) as workers:
        results = workers.map(operator.truediv, given())
        assert next(results) == ("piece 0", 0.0)
        assert len(taken) < 20  # the others are not in memory yet
        assert list(results) == [(f"piece {i}", i / 2) for i in range(1, pieces)]
        with pytest.raises(ZeroDivisionError):
            list(workers.map(operator.truediv, [("x", (1, 0))]))
