"""The parameters of LightGBM, by its own names, that every trainer of an ensemble shares."""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from mcspark.core.cells.features import Features
from mcspark.core.training.training_table import TrainingTable, TreeSettings

CATEGORY_ROWS = 10.0
"""Rows without a residual by which a category is shrunken, and below which it goes with the others."""

ROWS_PER_SET = 100.0
"""Fewest rows by which two sets of categories that are tried differ."""

MOST_IN_SET = 4
"""Most categories of the smaller side of a split: the more may be picked, the more noise is."""

THRESHOLD_GAIN = 7.0
"""What the best of a hundred thresholds gains by chance, as a multiple of what one number does."""


def lightgbm_parameters(table: TrainingTable, settings: TreeSettings) -> dict[str, Any]:
    """Trees of depth 2 on the score bin and the groups, with a bin for every place and every cell seen.

    Parameters
    ----------
    table : TrainingTable
    settings : TreeSettings

    Returns
    -------
    dict
        By the names of LightGBM's documentation; the number of trees and early stopping are not among them.
    """
    found: dict[str, Any] = {
        "objective": settings.objective,
        "learning_rate": settings.learning_rate,
        "feature_fraction": settings.feature_fraction,
        "num_leaves": 4,
        "max_depth": 2,
        "min_data_in_leaf": 1,  # a cell is many rows: the weight in a leaf counts
        "min_sum_hessian_in_leaf": float(table.min_weight_in_leaf),
        "max_delta_step": settings.max_step,
        "max_bin": max(len(np.unique(table.place)) + 2, 16),
        "bin_construct_sample_cnt": len(table.place) + 1,
        "boost_from_average": table.offset is None,
        "seed": settings.seed,
        "deterministic": True,
    }
    features = table.features
    if settings.monotone:
        found["monotone_constraints"] = [1] + [0] * table.shown.shape[1]
    if features is not None:
        found["max_bin"] = max(found["max_bin"], max(features.sizes, default=0) + 2)
        found |= _of_categories(table, features)
    return found


def _of_categories(table: TrainingTable, features: Features) -> dict[str, Any]:
    """How splits by category are kept from following the noise of rare ones.

    LightGBM takes these as numbers of rows, but sees cells: it reckons the rows of a category by its share of
    the second derivatives. Its own defaults are turned from rows into what it counts. The best set of many
    categories gains much by chance alone, so the gains of such columns count for less: as much less as they
    are higher than a threshold's where nothing is wrong.
    """
    fit = ~table.stop
    per_row = float(fit.sum() / table.weight[fit].sum())
    weights = [
        1.0 if ordered else min(1.0, THRESHOLD_GAIN / gain_by_chance(size + 1))
        for size, ordered in zip(features.sizes, features.ordered, strict=True)
    ]
    return {
        "cat_l2": CATEGORY_ROWS * table.curvature,
        "cat_smooth": CATEGORY_ROWS * min(per_row, table.curvature),
        "min_data_per_group": max(round(ROWS_PER_SET * per_row), 1),
        "max_cat_threshold": MOST_IN_SET,
        "feature_contri": [1.0, *weights],
    }


@lru_cache(1024)
def gain_by_chance(categories: int) -> float:
    """What the best set of equally large categories gains, as a multiple of what one number does by chance.

    Where nothing is wrong, their mean residuals are normal, and the set is made of the most extreme ones.
    """
    if categories < 2:
        return 1.0
    normal = NormalDist()
    extreme = [-normal.inv_cdf((i + 0.5) / categories) for i in range(min(MOST_IN_SET, categories // 2))]
    size = np.arange(1, len(extreme) + 1)
    return float((np.cumsum(extreme) ** 2 / size / (1 - size / categories)).max())


def official_parameters(table: TrainingTable, settings: TreeSettings) -> dict[str, Any]:
    """:func:`lightgbm_parameters` for the official library, which would else leave out bins and features."""
    return {
        **lightgbm_parameters(table, settings),
        "min_data_in_bin": 1,
        "feature_pre_filter": False,
        "force_col_wise": True,
        "verbosity": -1,
    }
