"""Cells that outlive their run: of one partition as they are kept, and of several partitions put together.

Partitions agree about their sums without seeing each other. The unit of the sums is a power of two that the
configuration alone decides. The score bins are those of each partition itself, halvings of the same base
levels, so that the bins of several partitions have common ones: in each base level the coarsest of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mcspark.core.cells.cells import SUMS, Role
from mcspark.core.cells.levels import IntArray, ScoreBins
from mcspark.errors import ContractError, McsparkError
from mcspark.ml.cells.cell_sums import PLACE, SPREAD
from mcspark.ml.cells.cells import CellTable
from mcspark.ml.cells.fixed_point import FixedPoint
from mcspark.runtime.tasks.blocks import each_block, unpacked

SHARED_BITS = 30
"""A term of a typical row is rounded to 2^-31 of its weight; 2^32 such rows fit into a sum."""

LEAST_DEPTH = 2
"""Halvings of each base level in kept cells: as fine as a score that is only measured needs it."""

_LARGEST = 2.0**62
_SPAN = 2.0**10  # from the typical weight to the mean weight, up or down


def shared_scale(typical_weight: float) -> FixedPoint:
    """The scale of all partitions whose rows weigh about so much."""
    exponent = round(math.log2(typical_weight))
    return FixedPoint(2.0 ** (SHARED_BITS - exponent), 2.0 ** (SHARED_BITS - 2 * exponent))


def refuse_weights(scale: FixedPoint, rows: int, weight: float, weight_sq: float, source: str) -> None:
    """Refuse rows whose weights do not fit the unit.

    Parameters
    ----------
    scale : FixedPoint
        Of :func:`shared_scale`.
    rows : int
    weight, weight_sq : float
        Sums over these rows.
    source : str
        For the message.

    Raises
    ------
    ContractError
    """
    mean = weight / rows * scale.weight / 2.0**SHARED_BITS
    fits = weight * scale.weight < _LARGEST and weight_sq * scale.weight_sq < _LARGEST
    if not (1 / _SPAN <= mean <= _SPAN and fits):
        raise ContractError(
            f"{source}: {rows} labelled rows weigh {weight / rows:g} on average, which does not fit "
            "cells.typical_weight; set that to about the mean weight (all partitions are computed again then)"
        )


@dataclass(frozen=True)
class Part:
    """The kept cells of one partition, and what becomes of them.

    Parameters
    ----------
    blocks : DataFrame
        Of :mod:`mcspark.runtime.tasks.blocks`, as :attr:`mcspark.ml.cells.cells.CellTable.merged` makes them.
    kinds : str
        Schema of the category columns.
    bins : ScoreBins
    held_out : bool
        Whether all of its rows are test rows, whatever they were drawn for.
    factor : float or None
        What its weights are multiplied by. With None in one part, it is None in all.
    """

    blocks: DataFrame
    kinds: str
    bins: ScoreBins
    held_out: bool = False
    factor: float | None = None


def put_together(
    parts: Sequence[Part],
    bins: ScoreBins,
    scale: FixedPoint,
    roles: Sequence[Role] = tuple(Role),
    *,
    few: bool = False,
) -> CellTable:
    """The cells of several partitions; integers are added, so their order says nothing.

    Parameters
    ----------
    parts : sequence of Part
        At least one.
    bins : ScoreBins
        Coarser than those of the parts, or the same.
    scale : FixedPoint
        That of all parts.
    roles : sequence of Role
        Cells of which are wanted.
    few : bool
        Whether the parts have so few cells that the driver takes all of them.

    Raises
    ------
    ContractError
        If a category column has another type in one of them.
    """
    kinds = {part.kinds for part in parts}
    if len(kinds) > 1:
        raise ContractError(
            f"the group columns are of different types in the partitions of the window: {sorted(kinds)}; "
            "store them with one type"
        )
    of_roles = np.isin(np.arange(len(Role)), [int(role) for role in roles])
    frames = [
        each_block(
            part.blocks,
            partial(
                _fitted,
                kinds=part.kinds,
                own=part.bins,
                bins=bins,
                roles=of_roles,
                held_out=part.held_out,
                scale=None if part.factor is None else (part.factor, scale),
            ),
        )
        for part in parts
    ]
    return CellTable(reduce(DataFrame.union, frames), parts[0].kinds, bins, scale, few=few)


def learning_weights(blocks: DataFrame, bins: ScoreBins) -> tuple[IntArray, int]:
    """Weight of the rows in each bin that are not test rows, in the unit of the sums, and the rows of all."""
    by_place = unpacked(blocks, "place long, n long, weight long", _by_place).groupBy("place")
    table = by_place.agg(F.sum("n").alias("n"), F.sum("weight").alias("weight")).toPandas()
    role, place = np.divmod(table["place"].to_numpy(np.int64), bins.n_bins)
    learns = role != Role.test
    weight = np.zeros(bins.n_bins, dtype=np.int64)
    np.add.at(weight, place[learns], table["weight"].to_numpy(np.int64)[learns])
    return weight, int(table["n"].sum())


def window_bins(bins: Sequence[ScoreBins], weights: Sequence[IntArray], quantiles: int) -> ScoreBins:
    """Bins to learn by from several partitions: as fine as all of them have, where the scores are dense.

    Parameters
    ----------
    bins : sequence of ScoreBins
    weights : sequence of ndarray
        Of each partition, the weight in each of its bins.
    quantiles : int
        Wanted number of equally heavy bins.
    """
    common = ScoreBins.common(bins)
    total = np.zeros(common.n_bins)
    for own, weight in zip(bins, weights, strict=True):
        # Whole numbers below 2^53 of a part of the unit: the order of the partitions changes no digit.
        np.add.at(total, common.assign(own.edges()[:-1]), np.floor(np.asarray(weight) / 2.0**10))
    return common.for_weights(total, quantiles)


def _by_place(cells: pa.Table) -> pa.Table:
    place, at = np.unique(cells[PLACE].to_numpy(), return_inverse=True)
    sums = {"n": "n", "weight": "weight" if "weight" in cells.column_names else "n"}
    found = {name: np.zeros(len(place), dtype=np.int64) for name in sums}
    for name, column in sums.items():
        np.add.at(found[name], at.reshape(-1), cells[column].to_numpy())
    return pa.table({"place": place, **found})


def _fitted(
    cells: pa.Table,
    kinds: str,
    own: ScoreBins,
    bins: ScoreBins,
    roles: NDArray[np.bool_],
    held_out: bool,
    scale: tuple[float, FixedPoint] | None,
) -> pa.Table:
    """The cells of a block as the window has them."""
    _refuse_other_columns(cells, kinds)
    place = cells[PLACE].to_numpy()
    if len(place) and not 0 <= place.min() <= place.max() < len(Role) * own.n_bins:
        raise McsparkError("kept cells lie outside of their bins; remove them, and they are computed again")
    role, place = np.divmod(place, own.n_bins)
    if held_out:
        role = np.full(len(place), int(Role.test))
    place = bins.assign(own.edges()[:-1])[place]
    changed = {PLACE: role * bins.n_bins + place}
    if scale is not None:
        changed |= _scaled(cells, *scale)
    columns = {name: cells[name] for name in cells.column_names} | changed
    return pa.table(columns).filter(pa.array(roles[role]))


def _scaled(cells: pa.Table, factor: float, scale: FixedPoint) -> dict[str, IntArray]:
    """The sums of a partition that weighs less; each is rounded once, since a cell stands in one place."""
    sums = {name: cells[name].to_numpy() for name in SUMS if name in cells.column_names and name != "n"}
    if "weight" not in sums:
        n = cells["n"].to_numpy()
        sums |= {"weight": n * scale.weight, "weight_sq": n * scale.weight_sq}
    by = {name: factor**2 if name == "weight_sq" else factor for name in sums}
    return {name: np.rint(value * by[name]).astype(np.int64) for name, value in sums.items()}


def _refuse_other_columns(cells: pa.Table, kinds: str) -> None:
    """The bytes of a file may be anybody's: they are looked at before anything is computed from them."""
    cells.validate(full=True)
    wanted = dict(kind.split(" ") for kind in kinds.split(", ")) if kinds else {}
    wanted |= dict.fromkeys([PLACE, SPREAD, *(n for n in SUMS if n not in ("weight", "weight_sq"))], "bigint")
    found = {field.name: field.type for field in cells.schema}
    weights = {"weight": "bigint", "weight_sq": "bigint"}
    if set(found) - set(wanted) == set(weights):
        wanted |= weights
    types = {"bigint": pa.int64(), "string": pa.string()}
    for name, kind in found.items():
        value = kind.value_type if pa.types.is_dictionary(kind) else kind
        if value != types.get(wanted.get(name, "")):
            raise McsparkError(f"kept cells have a column {name} of {kind}; remove them")
    if set(found) != set(wanted):
        raise McsparkError(f"kept cells have the columns {sorted(found)}; remove them")
