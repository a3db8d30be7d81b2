"""Level sets and score bins: the one definition of where a score falls.

A grid of ``m`` levels cuts [0, 1] at the doubles ``k / m``. A score is in level ``k`` when
``k / m <= score < (k + 1) / m``; 1.0 is in the last level. Level ``k`` stands for its middle,
``(2 k + 1) / (2 m)`` (paper, section 4.3.2). Because ``k / m`` is correctly rounded, the edges of a grid
are bit for bit among the edges of every multiple of it, so nested grids never disagree about a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MAX_DEPTH = 10
"""A base level is halved at most this many times, so that a bin is never narrower than 1 / (1024 base)."""

DEPTH_AT_ENDS = 3
"""Least number of halvings of the first and the last base level, where bins follow the scores."""

_ROUNDED = 1e-10
"""Sums of weights come in some unit, and their quotients differ by less from one unit to another."""


def level_index(score: FloatArray, m: int | IntArray) -> IntArray:
    """Index in 0..m-1 of the level of each score (range [0, 1]) on the grid of ``m`` levels."""
    last = np.asarray(m, dtype=np.int64) - 1
    guess = np.clip(np.floor(score * m).astype(np.int64), 0, last)
    # The product may round across an edge; the edges themselves decide.
    guess = guess - (score < guess / m)
    guess = guess + (score >= (guess + 1) / m)
    return np.asarray(np.clip(guess, 0, last), dtype=np.int64)


def level_of_mean(mean: FloatArray, m: int) -> IntArray:
    """Index of the level of each mean of rounded sums: what lies below an edge by rounding alone is on it."""
    return level_index(np.clip(mean + _ROUNDED, 0.0, 1.0), m)


def level_value(index: IntArray, m: int) -> FloatArray:
    """Middle of each level, ``(2 k + 1) / (2 m)``: the value of the discretized predictor."""
    return np.asarray((2 * np.asarray(index) + 1) / (2 * m), dtype=np.float64)


def base_levels(levels: list[int] | tuple[int, ...]) -> int:
    """Least common multiple of the evaluation grids: 300 for the paper's six."""
    return int(np.lcm.reduce(np.asarray(levels, dtype=np.int64)))


@dataclass(frozen=True)
class ScoreBins:
    """Score bins whose edges contain every edge of every evaluation grid.

    Level ``j`` of the grid of ``base`` levels is cut into ``2 ** depth[j]`` equal bins, deeper where scores
    are dense, so that trees see finer steps there and every evaluation grid is a union of bins.

    Parameters
    ----------
    base : int
        Number of base levels; a multiple of every evaluation grid.
    depth : tuple of int, shape (base,)
        Number of halvings of each base level, in 0..``MAX_DEPTH``.
    """

    base: int
    depth: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.base < 1 or len(self.depth) != self.base:
            raise ValueError(f"depth must have one entry for each of the {self.base} base levels")
        if not all(0 <= d <= MAX_DEPTH for d in self.depth):
            raise ValueError(f"depth must be within 0..{MAX_DEPTH}")

    @classmethod
    def uniform(cls, base: int) -> ScoreBins:
        """One bin a base level."""
        return cls(base, (0,) * base)

    @classmethod
    def from_fine_weights(cls, base: int, fine_weight: FloatArray, quantiles: int) -> ScoreBins:
        """Cut each base level until no bin outweighs ``1 / quantiles`` of the whole, or it is deepest.

        Parameters
        ----------
        base : int
        fine_weight : ndarray, shape (base * 2 ** MAX_DEPTH,)
            Weight in each level of the finest grid.
        quantiles : int
            Wanted number of equally heavy bins; 0 keeps the base levels.
        """
        fine = np.asarray(fine_weight, dtype=np.float64).reshape(base, 2**MAX_DEPTH)
        total = fine.sum()
        depth = np.zeros(base, dtype=np.int64)
        if quantiles and total > 0:
            # A hair of slack: sums of weights may differ in their last digits between partitionings.
            limit = total / quantiles * (1 + 1e-9)
            for d in range(MAX_DEPTH):
                heaviest = fine.reshape(base, 2**d, -1).sum(axis=2).max(axis=1)
                depth = np.where((heaviest > limit) & (depth == d), d + 1, depth)
            # Smooth ECE reflects at 0 and 1, where the place of a score within its bin counts twice.
            depth[[0, -1]] = np.maximum(depth[[0, -1]], DEPTH_AT_ENDS)
        return cls(base, tuple(int(d) for d in depth))

    @property
    def starts(self) -> IntArray:
        """First bin of each base level, shape (base,)."""
        return np.concatenate(([0], np.cumsum(2 ** np.asarray(self.depth, dtype=np.int64))[:-1]))

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return int(sum(2**d for d in self.depth))

    def assign(self, score: FloatArray) -> IntArray:
        """Bin in 0..n_bins-1 of each score in [0, 1]."""
        score = np.asarray(score, dtype=np.float64)
        level = level_index(score, self.base)
        parts = 2 ** np.asarray(self.depth, dtype=np.int64)[level]
        within = level_index(score, self.base * parts) - level * parts
        return np.asarray(self.starts[level] + within, dtype=np.int64)

    def edges(self) -> FloatArray:
        """Edges of the bins, shape (n_bins + 1,), from 0.0 to 1.0."""
        parts = 2 ** np.asarray(self.depth, dtype=np.int64)
        level = np.repeat(np.arange(self.base), parts)
        within = np.arange(len(level)) - self.starts[level]
        return np.append((level * parts[level] + within) / (self.base * parts[level]), 1.0)

    def level_of_bin(self, m: int) -> IntArray:
        """Level on the grid of ``m`` levels of each bin, shape (n_bins,); ``m`` must divide ``base``."""
        if self.base % m:
            raise ValueError(f"a grid of {m} levels is no union of bins: {m} does not divide {self.base}")
        base_level = np.repeat(np.arange(self.base), 2 ** np.asarray(self.depth, dtype=np.int64))
        return np.asarray(base_level // (self.base // m), dtype=np.int64)

    @classmethod
    def common(cls, several: Sequence[ScoreBins]) -> ScoreBins:
        """The finest bins of which all of these are parts: those of one base are nested.

        Raises
        ------
        ValueError
            If they have different bases, or there are none.
        """
        bases = {bins.base for bins in several}
        if len(bases) != 1:
            raise ValueError(f"score bins of the bases {sorted(bases)} have no common edges but by chance")
        return cls(
            bases.pop(), tuple(min(depths) for depths in zip(*(b.depth for b in several), strict=True))
        )

    def at_least(self, depth: int) -> ScoreBins:
        """The same bins where they are deep enough, and finer ones elsewhere."""
        return ScoreBins(self.base, tuple(max(d, depth) for d in self.depth))

    def for_weights(self, weight: FloatArray, quantiles: int) -> ScoreBins:
        """Bins as :meth:`from_fine_weights` would choose them, as far as these ones go.

        Parameters
        ----------
        weight : ndarray, shape (n_bins,)
            Weight in each of these bins.
        quantiles : int
            Wanted number of equally heavy bins.
        """
        fine = np.zeros(self.base * 2**MAX_DEPTH)
        width = np.repeat(2 ** (MAX_DEPTH - np.asarray(self.depth)), 2 ** np.asarray(self.depth))
        fine[np.cumsum(width) - width] = weight
        wanted = ScoreBins.from_fine_weights(self.base, fine, quantiles)
        return ScoreBins(self.base, tuple(map(min, wanted.depth, self.depth)))

    def coarser(self) -> ScoreBins:
        """Bins twice as wide, down to the base levels."""
        return ScoreBins(self.base, tuple(max(d - 1, 0) for d in self.depth))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {"base": self.base, "depth": list(self.depth)}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> ScoreBins:
        """Inverse of :meth:`to_dict`."""
        return cls(int(plain["base"]), tuple(int(d) for d in plain["depth"]))
