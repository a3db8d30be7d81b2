"""What trees learn from beside the score where that is columns, with all their categories, and not groups.

A column has codes: 0 where its value is missing, or none that was met in learning, and one for each category.
The columns of the groups come first, so that a signature of these codes tells the groups too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mcspark.core.cells.levels import IntArray


@dataclass(frozen=True, eq=False)
class Features:
    """The columns, and each signature's codes in them.

    Parameters
    ----------
    names : tuple of str
        Names of all categories, column by column: the groups of the trees.
    sizes : tuple of int, length K
        Number of categories of each column.
    ordered : tuple of bool, length K
        Whether the codes of a column are bins in their order.
    codes : ndarray of int, shape (S, K)
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    ordered: tuple[bool, ...]
    codes: IntArray

    @cached_property
    def members(self) -> IntArray:
        """Number of each signature's category among :attr:`names`, by column; -1 where it has none."""
        return category_numbers(self.codes, self.sizes)

    @cached_property
    def values(self) -> NDArray[np.float32]:
        """What the trees are shown: codes, and NaN for what is missing in a column with an order."""
        return np.where((self.codes == 0) & np.array(self.ordered), np.nan, self.codes).astype(np.float32)


def category_numbers(codes: IntArray, sizes: Sequence[int]) -> IntArray:
    """Number of each category among those of all columns, shape (S, K), from codes; -1 for code 0."""
    start = np.cumsum([0, *sizes])[:-1]
    return np.where(codes > 0, codes + start - 1, -1)
