"""Cells of rows in memory whose trees learn from columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mcspark.core.cells.cells import Cells
from mcspark.core.cells.features import Features


def column_cells(score, label, codes, sizes, ordered, *, bins, membership=None, **more) -> Cells:
    """Cells whose signatures are the distinct rows of ``codes``, shape (N, K)."""
    table, number = np.unique(codes, axis=0, return_inverse=True)
    number = number.reshape(-1)
    bits = max(int(number.max()).bit_length(), 1)
    spread = (number[:, None] >> np.arange(bits)[::-1]) & 1 > 0
    cells = Cells.from_rows(score, label, spread, bins=bins, **more)
    names = tuple(f"c{k}={c}" for k, size in enumerate(sizes) for c in range(1, size + 1))
    first = np.unique(number, return_index=True)[1]
    member = np.zeros((len(table), 0), dtype=bool) if membership is None else membership[first]
    return replace(
        cells, membership=member, groups=tuple(f"g{i}" for i in range(member.shape[1])),
        features=Features(names, tuple(sizes), tuple(ordered), table),
    )  # fmt: skip
