"""The parameters of LightGBM, by its own names, that every trainer of an ensemble shares."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcspark.core.training.training_table import TrainingTable, TreeSettings


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
    found = {
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
    if settings.monotone:
        found["monotone_constraints"] = [1] + [0] * table.membership.shape[1]
    return found


def official_parameters(table: TrainingTable, settings: TreeSettings) -> dict[str, Any]:
    """:func:`lightgbm_parameters` for the official library, which would else leave out bins and features."""
    return {
        **lightgbm_parameters(table, settings),
        "min_data_in_bin": 1,
        "feature_pre_filter": False,
        "force_col_wise": True,
        "verbosity": -1,
    }
