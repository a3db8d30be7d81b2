"""Growing an ensemble in this process with the official LightGBM.

A fit in a Spark session has a fixed cost of seconds; a sweep is thousands of fits on small tables. The trees
are those of :class:`mcspark.ml.training.trees.SynapseTrainer` up to the version of the library.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

import numpy as np

from mcspark.core.training.lightgbm_parameters import official_parameters
from mcspark.core.training.training_table import TrainingTable, TreeSettings
from mcspark.errors import ConfigurationError, TransientError
from mcspark.ml.training.trees import check_table
from mcspark.runtime.process.progress import tell


def engine() -> str:
    """Name and version of the library.

    Raises
    ------
    ConfigurationError
        If it is not installed.
    """
    try:
        return f"lightgbm {version('lightgbm')}"
    except PackageNotFoundError:
        raise ConfigurationError(
            "the official LightGBM is to train on the driver, and the package lightgbm is not installed "
            "there; install mcspark with what it depends on"
        ) from None


def installed() -> bool:
    """Whether the library is there."""
    return find_spec("lightgbm") is not None


@dataclass(frozen=True)
class DriverTrainer:
    """Trains ensembles in this process; used like :class:`mcspark.ml.training.trees.SynapseTrainer`.

    Parameters
    ----------
    threads : int
        Of each fit; the trees do not depend on it.
    timeout_seconds : float, optional
        Wall-clock limit of one ensemble.
    """

    threads: int = 1
    timeout_seconds: float | None = None

    def __call__(self, table: TrainingTable, settings: TreeSettings) -> str:
        """LightGBM text of one ensemble, cut at the best tree (see ``core.training_table.Train``)."""
        import lightgbm  # noqa: PLC0415  (takes long to import; scoring needs none)

        check_table(table)
        common = self._parameters(table, settings)
        learn = _data(lightgbm, table, ~table.stop, common)
        watch = [_tell_trees(settings)]
        if self.timeout_seconds is not None:
            watch.append(_time_limit(self.timeout_seconds))
        if not table.stop.any():
            grown = lightgbm.train(common, learn, settings.max_trees, callbacks=watch)
            return str(grown.model_to_string())
        held_out = _data(lightgbm, table, table.stop, common, learn)
        booster = lightgbm.train(
            common, learn, settings.max_trees, valid_sets=[held_out],
            callbacks=[*watch, lightgbm.early_stopping(
                settings.early_stopping_rounds, verbose=False, min_delta=table.min_improvement
            )],
        )  # fmt: skip
        return str(booster.model_to_string(num_iteration=booster.best_iteration))

    def _parameters(self, table: TrainingTable, settings: TreeSettings) -> dict[str, Any]:
        return {**official_parameters(table, settings), "num_threads": self.threads}


def _tell_trees(settings: TreeSettings) -> Callable[[Any], None]:
    """A callback that LightGBM runs after every tree."""

    def reported(env: Any) -> None:
        losses = [f", held-out loss {result[2]:.6f}" for result in env.evaluation_result_list or ()]
        tell(f"{env.iteration + 1:,} of at most {settings.max_trees:,} trees{''.join(losses[:1])}")

    return reported


def _time_limit(seconds: float) -> Callable[[Any], None]:
    """A callback that LightGBM runs after every tree."""
    end = time.monotonic() + seconds

    def check(_: Any) -> None:
        if time.monotonic() > end:
            raise TransientError(
                f"training the trees did not end within {seconds:g} s and was given up; try again, or raise "
                "calibrator.timeout_seconds"
            )

    return check


def _data(lightgbm: Any, table: TrainingTable, rows: Any, parameters: Any, reference: Any = None) -> Any:
    known = table.features
    categorical: Any = "auto"
    if known is not None:
        categorical = [i for i, ordered in enumerate(known.ordered, start=1) if not ordered]
    features = np.column_stack([table.place[rows], table.shown[table.signature[rows]]]).astype(np.float32)
    return lightgbm.Dataset(
        features, table.target[rows], weight=table.weight[rows],
        init_score=None if table.offset is None else table.offset[rows],
        categorical_feature=categorical, params=parameters, reference=reference,
    )  # fmt: skip
