"""The correction of a calibrator made of trees as tables: what people look at, and what databases join to."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from mcspark.core.model.stages import Stages

CURVE_COLUMNS = ("stage", "link", "group", "lower", "upper", "correction")
PAIR_COLUMNS = ("stage", "link", "first", "second", "correction")


def curves_frame(stages: Stages) -> pd.DataFrame:
    """What each stage adds across the score range, one row a step.

    Returns
    -------
    DataFrame
        ``stage`` (from 0), ``link``, ``group`` (None: every row, the constant included), ``lower`` and
        ``upper`` (the step holds the stage's incoming scores with ``lower < score <= upper``, within
        [0, 1]), ``correction`` (in score, or in log-odds with the logit link). A member of several groups
        gets the sum of their rows, that of None, and the pairs of :func:`pairs_frame`.
    """
    parts = []
    for number, stage in enumerate(stages.stages):
        table = stage.form.curves_table()
        group = table["group"]
        names = [stages.groups[g] if g >= 0 else None for g in group.tolist()]
        parts.append(
            pd.DataFrame(
                {
                    "stage": number,
                    "link": stage.link,
                    "group": names,
                    "lower": table["lower"].clip(0, 1),
                    "upper": table["upper"].clip(0, 1),
                    "correction": table["value"] + (group < 0) * stage.form.constant,
                }
            )
        )
    if not parts:
        return pd.DataFrame({name: [] for name in CURVE_COLUMNS})
    return pd.concat(parts, ignore_index=True)


def largest_curves(curves: pd.DataFrame, names: Sequence[str], most: int = 200) -> pd.DataFrame:
    """The curves of these groups, and the largest of all others: of columns there may be thousands.

    Parameters
    ----------
    curves : DataFrame
        Of :func:`curves_frame`.
    names : sequence of str
        Groups that stay in any case.
    most : int
        Others that stay.
    """
    size = (curves["correction"].abs() * (curves["upper"] - curves["lower"])).groupby(curves["group"]).sum()
    others = size[~size.index.isin(names)].sort_values(ascending=False, kind="stable").head(most)
    return curves[curves["group"].isna() | curves["group"].isin([*names, *others.index])]


def pairs_frame(stages: Stages) -> pd.DataFrame:
    """What members of two groups get on top at every score, largest first within a stage.

    Returns
    -------
    DataFrame
        ``stage``, ``link``, ``first``, ``second`` (group names) and ``correction``.
    """
    rows = [
        (number, stage.link, stages.groups[i], stages.groups[j], value)
        for number, stage in enumerate(stages.stages)
        for (i, j), value in zip(stage.form.pairs.tolist(), stage.form.pair_values.tolist(), strict=True)
    ]
    rows.sort(key=lambda row: (row[0], -abs(row[4])))
    return pd.DataFrame(rows, columns=list(PAIR_COLUMNS))
