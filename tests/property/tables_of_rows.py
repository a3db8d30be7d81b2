"""Generated tables of rows: scores on and beside level edges, overlapping groups, weights of 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

EDGES = sorted({k / m for m in (5, 10, 15, 20) for k in range(m + 1)})
SCORES = st.one_of(
    st.floats(0, 1),
    st.sampled_from(EDGES),
    st.sampled_from(EDGES).map(lambda x: float(np.clip(np.nextafter(x, 0), 0, 1))),
    st.sampled_from(EDGES).map(lambda x: float(np.clip(np.nextafter(x, 1), 0, 1))),
)
LABELS = st.sampled_from([0.0, 1.0]) | st.floats(0, 1)
WEIGHTS = st.sampled_from([0.0, 1.0, 2.0, 0.5]) | st.floats(0.01, 100)


@dataclass(frozen=True)
class Rows:
    """N rows of G groups."""

    score: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    member: np.ndarray

    def take(self, order: np.ndarray) -> Rows:
        return Rows(self.score[order], self.label[order], self.weight[order], self.member[order])


@st.composite
def rows(draw: st.DrawFn, least: int = 1, most: int = 30, groups: int = 3) -> Rows:
    """A table in which some weight is positive."""
    n = draw(st.integers(least, most))

    def column(values: st.SearchStrategy[float]) -> np.ndarray:
        return np.array(draw(st.lists(values, min_size=n, max_size=n)), dtype=float)

    weight = column(WEIGHTS)
    weight[0] = weight[0] or 1.0
    bits = np.array(draw(st.lists(st.integers(0, 2**groups - 1), min_size=n, max_size=n)))
    return Rows(column(SCORES), column(LABELS), weight, (bits[:, None] >> np.arange(groups) & 1).astype(bool))
