"""Growing one ensemble by several processes, each of which holds a part of the rows.

LightGBM's own data-parallel learner: each process sums its rows into histograms, the processes add these over
sockets, and every one of them grows the same trees. The score places and the groups are small whole numbers,
so bins are given and not found: a complete table of their values makes the same bins everywhere. What the
processes must agree on beside that, the number to start from and when to stop, is settled here, since
LightGBM would settle it by the rows of each.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcspark.core.cells.levels import FloatArray
from mcspark.core.model.lightgbm_text import plus_constant, without_addresses
from mcspark.core.training.lightgbm_parameters import official_parameters
from mcspark.core.training.training_table import TrainingTable, TreeSettings

SECONDS_AT_ONCE = 5.0
"""Time between two comparisons of the early-stopping loss: Spark's barrier takes a second for each."""

Gather = Callable[[str], Sequence[str]]
"""Waits for every process to give a text, and returns all of them by rank."""


@dataclass(frozen=True)
class Part:
    """The rows of one process.

    Parameters
    ----------
    features : scipy.sparse.csr_matrix, shape (N, 1 + G)
        Place of the score, and the groups.
    target, weight : ndarray, shape (N,)
    stop : ndarray of bool, shape (N,)
        Rows that only stop the boosting.
    """

    features: Any
    target: FloatArray
    weight: FloatArray
    stop: NDArray[np.bool_]


@dataclass(frozen=True)
class Growth:
    """How the ensemble is grown; the same for each process.

    Parameters
    ----------
    parameters : dict
        LightGBM's.
    places, groups : int
        Number of places of the score, and of groups.
    start : float
        What the trees are added to.
    max_trees, patience : int
    min_improvement : float
    stops : bool
        Whether there are early-stopping rows; if not, ``max_trees`` are grown.
    """

    parameters: dict[str, Any]
    places: int
    groups: int
    start: float
    max_trees: int
    patience: int
    min_improvement: float
    stops: bool

    @classmethod
    def of(cls, table: TrainingTable, settings: TreeSettings) -> Growth:
        """For rows that are summed up in a table, in its first round with the identity link."""
        assert table.place_of_bin is not None
        places, groups = int(table.place_of_bin.max()) + 1, table.membership.shape[1]
        parameters = {
            **official_parameters(table, settings),
            "max_bin": max(places + 2, 16),
            "bin_construct_sample_cnt": places + groups + 1,
            "enable_bundle": False,  # the complete table does not show which groups go together
            "boost_from_average": False,  # each process would start from the mean of its own rows
            "metric": "None",
        }
        fit = ~table.stop
        return cls(
            parameters, places, groups,
            start=float(np.average(table.target[fit], weights=table.weight[fit])),
            max_trees=settings.max_trees,
            patience=settings.early_stopping_rounds,
            min_improvement=float(table.min_improvement),
            stops=bool(table.stop.any()),
        )  # fmt: skip


@dataclass(frozen=True)
class Peers:
    """The processes that grow an ensemble, as one of them sees them.

    Parameters
    ----------
    addresses : sequence of str
        ``address:port`` of each, by rank; LightGBM listens there while it dials the others.
    rank : int
        This one's place among them.
    gather : callable
    timeout_minutes : int
        How long LightGBM waits for a peer.
    """

    addresses: Sequence[str]
    rank: int
    gather: Gather
    timeout_minutes: int = 120

    @property
    def parameters(self) -> dict[str, Any]:
        """LightGBM's; one process alone opens no socket."""
        if len(self.addresses) == 1:
            return {}
        return {
            "tree_learner": "data",
            "num_machines": len(self.addresses),
            "machines": ",".join(self.addresses),
            "local_listen_port": int(self.addresses[self.rank].rpartition(":")[2]),
            "time_out": self.timeout_minutes,
        }


def grow(part: Part, growth: Growth, peers: Peers, threads: int = 1) -> str:
    """LightGBM text of the ensemble, cut at the best tree; each process grows the same trees."""
    import lightgbm  # noqa: PLC0415  (takes long to import)

    parameters = {**growth.parameters, "num_threads": threads}
    # Made before the network is there, through which LightGBM would share out the search for bins.
    bins = _complete(lightgbm, growth, parameters)
    learn = _data(lightgbm, part, ~part.stop, growth, bins)
    held_out = _data(lightgbm, part, part.stop, growth, bins) if growth.stops else None
    booster = lightgbm.Booster({**parameters, **peers.parameters}, learn)
    try:
        trees = _boost(booster, held_out, growth, peers.gather)
        text = without_addresses(str(booster.model_to_string(num_iteration=trees)))
    finally:
        booster.free_network()
    return plus_constant(text, growth.start)


def _boost(booster: Any, held_out: Any, growth: Growth, gather: Gather) -> int:
    """Grow trees until the early-stopping rows of all processes say so; returns how many are best."""
    if held_out is None:
        for _ in range(growth.max_trees):
            if booster.update():
                break
        return int(booster.current_iteration())
    booster.add_valid(held_out, "stop")
    weight = float(held_out.get_weight().sum(dtype=np.float64))
    losses: list[float] = []
    best, over, at_once = 0, False, growth.patience + 1  # no fewer trees can tell
    while not over and len(losses) < growth.max_trees:
        own: list[float] = []
        began = time.monotonic()
        while not over and len(own) < min(at_once, growth.max_trees - len(losses)):
            over = booster.update()  # no leaf can be split any more, as all processes see
            if not over:
                own.append(booster.eval_valid(_loss)[0][2])
        seconds = (time.monotonic() - began) / max(len(own), 1)
        # By rank, so that each process gets the same bits of each sum, and does the same next.
        every = [json.loads(text) for text in gather(json.dumps([weight, seconds, own]))]
        losses += list(sum(np.asarray(loss) for _, _, loss in every) / sum(each[0] for each in every))
        at_once = max(int(SECONDS_AT_ONCE / max(each[1] for each in every)), 1)
        best, waited = best_tree(losses, growth.patience, growth.min_improvement)
        over = over or waited
    return max(best, 1)  # LightGBM leaves a single leaf where nothing can be split


def best_tree(losses: Sequence[float], patience: int, min_improvement: float) -> tuple[int, bool]:
    """Number of trees with the lowest loss so far, and whether so many after it were no better."""
    best, trees = np.inf, 0
    for i, loss in enumerate(losses, start=1):
        if loss < best - min_improvement:
            best, trees = loss, i
        elif i - trees >= patience:
            return trees, True
    return trees, False


def _loss(predicted: FloatArray, held_out: Any) -> tuple[str, float, bool]:
    """Sum of the weighted squares, in LightGBM's form of a metric."""
    error = predicted - held_out.get_label()
    return "loss", float(np.dot(held_out.get_weight().astype(np.float64), error * error)), False


def _complete(lightgbm: Any, growth: Growth, parameters: dict[str, Any]) -> Any:
    """A row for each place and for each group: all values that there are, and so all bins."""
    from scipy.sparse import csr_matrix  # noqa: PLC0415

    place, group = np.arange(growth.places), np.arange(growth.groups)
    rows = np.concatenate([place, growth.places + group])
    columns = np.concatenate([np.zeros_like(place), 1 + group])
    values = np.concatenate([place, np.ones_like(group)]).astype(np.float32)
    shape = (growth.places + growth.groups, 1 + growth.groups)
    table = csr_matrix((values, (rows, columns)), shape=shape)
    return lightgbm.Dataset(table, np.zeros(shape[0]), params=parameters).construct()


def _data(lightgbm: Any, part: Part, rows: NDArray[np.bool_], growth: Growth, bins: Any) -> Any:
    from scipy.sparse import csr_matrix  # noqa: PLC0415

    features, target, weight = part.features[rows], part.target[rows], part.weight[rows]
    if not len(target):  # LightGBM has no tables without rows; this one weighs nothing
        features, target, weight = csr_matrix((1, 1 + growth.groups), dtype=np.float32), *np.zeros((2, 1))
    start = np.full(len(target), growth.start)
    data = lightgbm.Dataset(
        features, target, init_score=start, reference=bins, params=bins.params
    ).construct()
    # Weights given to Dataset are dropped where all are 1, by some of the processes and not by others.
    return data.set_field("weight", weight.astype(np.float32))
