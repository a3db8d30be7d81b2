"""Chance in the sums over groups and base levels, drawn level by level.

A group's sum over a level with many rows is normal, and all that matters is how the groups' sums vary
together, which one small matrix a level says: its cost does not grow with the rows. Where a group has too few
rows in a level for that, the numbers of its own rows are drawn.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mcspark.core.cells.atoms import Atoms
from mcspark.core.cells.levels import FloatArray, IntArray

ENOUGH = 12.0
"""Least information (n·p·(1 − p) of a binomial count) of a sum that is taken as normal."""


class AtomNoise(Protocol):
    """Independent chance in one or more quantities of each atom.

    Attributes
    ----------
    mean : ndarray, shape (V, A)
    covariance : ndarray, shape (V, V, A)
        Of the V quantities of each atom.
    information : ndarray, shape (A,)
        How near to normal an atom's noise is; sums add up, see :data:`ENOUGH`.
    step : float
        Sums are multiples of this; 0 where they may be any number.
    """

    mean: FloatArray
    covariance: FloatArray
    information: FloatArray
    step: float

    def draw(self, rng: np.random.Generator, size: int, at: IntArray) -> FloatArray:
        """Values of the atoms at these places, shape (V, size, len(at))."""


def draw_group_sums(
    rng: np.random.Generator, size: int, atoms: Atoms, noise: AtomNoise, member: FloatArray
) -> FloatArray:
    """Draws of the sums over each group and base level.

    Parameters
    ----------
    rng : Generator
    size : int
        Number of draws, D.
    atoms : Atoms
    noise : AtomNoise
    member : ndarray, shape (S, G)
        1 where a signature is in a group, 0 elsewhere.

    Returns
    -------
    ndarray, shape (V, D, G, base)
    """
    base = atoms.cells.bins.base
    out = np.zeros((len(noise.covariance), size, member.shape[1], base))
    edge = np.searchsorted(atoms.cells.bin, np.arange(base + 1))
    for level in np.flatnonzero(np.diff(edge)):
        at = np.arange(edge[level], edge[level + 1])
        out[..., level] = _level(rng, size, noise, at, member[atoms.cells.signature[at]])
    return out


def _level(
    rng: np.random.Generator, size: int, noise: AtomNoise, at: IntArray, inside: FloatArray
) -> FloatArray:
    """Draws of one level's sums, shape (V, size, G)."""
    few = noise.information[at] @ inside < ENOUGH
    if few.all() or len(at) <= len(noise.covariance) * len(few):  # then its own rows are the cheaper way
        return np.asarray(noise.draw(rng, size, at) @ inside)
    sums = _normal(rng, size, noise.covariance[..., at], inside) + (noise.mean[:, at] @ inside)[:, None]
    if noise.step:  # a count that is taken as normal stays whole, or ties would count as nought
        sums = np.rint(sums / noise.step) * noise.step
    touched = inside[:, few].any(axis=1)
    sums[..., few] = noise.draw(rng, size, at[touched]) @ inside[np.ix_(touched, few)]
    return sums


def _normal(rng: np.random.Generator, size: int, covariance: FloatArray, inside: FloatArray) -> FloatArray:
    quantities, groups = len(covariance), inside.shape[1]
    joint = np.empty((quantities, groups, quantities, groups))
    for i, row in enumerate(covariance):
        for j, value in enumerate(row):
            joint[i, :, j] = inside.T @ (inside * value[:, None])
    values, vectors = np.linalg.eigh(joint.reshape(quantities * groups, -1))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = rng.standard_normal((size, len(root))) @ root.T
    return np.ascontiguousarray(drawn.reshape(size, quantities, groups).transpose(1, 0, 2))
