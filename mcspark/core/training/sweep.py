"""Repeated partitions and the paper's grids, as arithmetic on cells (paper, appendix "Details of …").

The test rows stay. All other rows fall into :data:`BUCKETS` buckets by a hash of their key, and a cell is
of one bucket. A partition is a choice of half of the buckets for calibration, some of those for early
stopping; the other half validates. So one table of cells holds every partition, and each half is a random
half of the rows. What differs from drawing row by row is that rows of one bucket go together in every
partition, which the spread over partitions hardly notices: there are 184,756 ways to choose.

A calibrator moves a cell as a whole, from its mean score. Score bins are narrow, and those of the test
cells narrower, so what this rounds is far below the spread over partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal

import numpy as np

from mcspark.core.baselines.method import Setting, Settings, SignatureCalibrator
from mcspark.core.calibrator import BASELINES
from mcspark.core.cells.cells import SUMS, Cells, Role
from mcspark.core.metrics.calibration_error import level_errors
from mcspark.core.metrics.lead import FullestLevel
from mcspark.core.metrics.noise import noise_floor
from mcspark.core.metrics.score_metrics import score_metrics
from mcspark.core.metrics.smooth_ece import group_smooth_ece
from mcspark.core.model.stages import Stages
from mcspark.core.training.recipe import RecipeFit, RecipeName, fit_auto, fit_paper
from mcspark.core.training.rounds import check_saturation
from mcspark.core.training.training_table import Train, TreeSettings

FLOOR_DRAWS = 100
"""Simulations of the noise floor of each result."""

BUCKETS = 20
"""Buckets of the rows that are not test; half of them is ten, so tenths of a half are whole buckets."""

COMPARED_AS = {"multiaccuracy": "multiaccurate"}
"""Methods that a comparison calls by another name."""

METHODS = {COMPARED_AS.get(name, name): method for name, method in BASELINES.items()}
"""The baselines by their names in a comparison."""

PAPER_GRIDS: Mapping[str, tuple[Setting, ...]] = {
    "none": ((),),
    **{name: method.swept for name, method in METHODS.items()},
    "trees": tuple(
        (("learning_rate", 10 ** (-2 + rate / 2)), ("feature_fraction", tenths / 10))
        for rate, tenths in product(range(5), range(1, 11))
    ),
}
"""The paper's grids."""


@dataclass(frozen=True)
class Trial:
    """One fit: a method and its setting, on one grid or (m is None) for all grids, on one partition."""

    method: str
    setting: Setting
    m: int | None
    partition: int


@dataclass(frozen=True, eq=False)
class Sweep:
    """What trials of one task share.

    Parameters
    ----------
    learning : Cells
        Of all rows that are not test; ``role`` is the bucket, 0..``BUCKETS`` - 1.
    test : Cells
        Of the test rows, in bins that refine those of ``learning``.
    levels : tuple of int
        Evaluation grids.
    seed : int
        Where the random partitions start.
    early_stopping : float
        Share of a calibration half that only stops, in (0, 1).
    trees : TreeSettings
        Those that are not swept.
    rounds : int or 'auto'
    recipe : {'auto', 'paper'}
        How a trial without a setting of its own grows trees.
    given : frozenset of str
        Settings of ``trees`` and ``rounds`` that the recipe ``auto`` keeps.
    settings : mapping of str to Settings
        Of the baselines, where a trial has none; their own defaults where they are absent.
    min_rows : int
        Groups with fewer rows are left out of every maximum.
    """

    learning: Cells
    test: Cells
    levels: tuple[int, ...]
    seed: int
    early_stopping: float
    trees: TreeSettings = field(default_factory=TreeSettings)
    rounds: int | Literal["auto"] = 1
    recipe: RecipeName = "paper"
    given: frozenset[str] = frozenset()
    settings: Mapping[str, Settings] = field(default_factory=dict)
    min_rows: int = 1

    def grids(self, method: str) -> tuple[int | None, ...]:
        """Grids for each of which a method is fitted: every one, or None for one fit that serves all."""
        return self.levels if method in METHODS and METHODS[method].by_grid else (None,)

    def parts(self, partition: int, early_stopping: float | None = None) -> tuple[Cells, Cells]:
        """The calibration half, with roles ``fit`` and ``early_stopping``, and the validation half.

        Parameters
        ----------
        partition : int
        early_stopping : float, optional
            Share of the calibration half, instead of the sweep's own.
        """
        share = self.early_stopping if early_stopping is None else early_stopping
        order = np.random.default_rng([self.seed, partition]).permutation(BUCKETS)
        half = BUCKETS // 2
        stop = min(max(round(half * share), 1), half - 1)
        role = np.full(BUCKETS, Role.test, dtype=np.int64)
        role[order[:half]] = Role.fit
        role[order[:stop]] = Role.early_stopping
        cells = replace(self.learning, role=role[self.learning.role]).merged(self.learning.bin)
        return cells.of_role(Role.fit, Role.early_stopping), cells.of_role(Role.test)

    def fit(self, trial: Trial, train: Train) -> tuple[SignatureCalibrator, Cells, Cells]:
        """Fit one trial; returns the calibrator, and the two halves as in :meth:`parts`."""
        found, _, calibration, validation = self._fitted(trial, train)
        return found, calibration, validation

    def _fitted(self, trial: Trial, train: Train) -> tuple[SignatureCalibrator, TreeSettings, Cells, Cells]:
        """The calibrator, the settings of its trees if it has any, and the two halves."""
        values = dict(trial.setting)
        calibration, validation = self.parts(trial.partition, values.get("early_stopping"))
        found: SignatureCalibrator
        settings = self.trees
        if trial.method == "none":
            found = Stages((), calibration.groups)
        elif trial.method in METHODS:
            method, own = METHODS[trial.method], self.settings.get(trial.method, {})
            if method.by_grid and trial.m is None:
                raise ValueError(f"{trial.method} needs a grid m")
            found = method.learn(calibration, {"seed": self.trees.seed, **own, **values, "grid": trial.m})
        elif trial.method == "trees":
            grown = self._trees(trial, calibration, train)
            found, settings = grown.fit.stages, grown.settings
        else:
            raise ValueError(f"unknown method {trial.method!r}; known are {', '.join(PAPER_GRIDS)}")
        return found, settings, calibration, validation

    def _trees(self, trial: Trial, calibration: Cells, train: Train) -> RecipeFit:
        """A trial without a setting of its own is left to the recipe."""
        if not trial.setting:
            if self.recipe == "auto":
                return fit_auto(calibration, self.trees, train, self.rounds, given=self.given)
            return fit_paper(calibration, self.trees, train, self.rounds)
        values = dict(trial.setting)
        settings = replace(
            self.trees, learning_rate=values["learning_rate"], feature_fraction=values["feature_fraction"]
        )
        return fit_paper(calibration, settings, train, self.rounds)

    def validate(self, trial: Trial, train: Train) -> float:
        """What a setting is chosen by: the validation half's MC error on the trial's grid if that sees its
        scores, else its loss.
        """
        calibrator, _, validation = self.fit(trial, train)
        after = recalibrated(validation, calibrator)
        full = None if trial.m is None else FullestLevel.of(validation, trial.m)
        if trial.m is None or (full is not None and full.blind):  # the MC error would tell no setting apart
            return after.loss()
        error = level_errors(after, trial.m, self.min_rows).mc_error
        return float("nan") if error is None else error

    def report(self, trial: Trial, train: Train) -> list[tuple[str, int | None, float | None]]:
        """Metrics of one trial on the test rows: (metric, m, value), m None where there is no grid.

        ``score_ma_error`` is the MA error of the score itself, not rounded to a grid.
        ``loss_second`` is the loss after the trees run once more on their own output (paper, table 1).
        """
        calibrator, settings, calibration, _ = self._fitted(trial, train)
        found: list[tuple[str, int | None, float | None]] = []
        after = recalibrated(self.test, calibrator)
        grids = self.levels if trial.m is None else (trial.m,)
        floors = noise_floor(after, grids, FLOOR_DRAWS, self.seed, min_rows=self.min_rows)
        for m in grids:
            full = FullestLevel.of(self.test, m)  # before calibration
            errors = level_errors(after, m, self.min_rows)
            found += [
                ("mc_error", m, errors.mc_error),
                ("ma_error", m, errors.ma_error),
                ("level_sets", m, errors.level_sets),
                ("loss", m, errors.loss),
                ("noise_floor", m, floors[m].expected),
                ("fullest_level", m, None if full is None else full.level),
                ("fullest_level_share", m, None if full is None else full.share),
            ]
        # With a grid, the loss is that of the rounded score, as above.
        of_score = score_metrics(after, self.min_rows)
        found += [(k, trial.m, v.value) for k, v in of_score.items() if k != "loss" or trial.m is None]
        found.append(("score_ma_error", trial.m, floors[None].observed))
        found.append(("worst_group_smece", trial.m, group_smooth_ece(after, self.min_rows).worst))
        if isinstance(calibrator, Stages) and trial.method == "trees":
            found.append(("trees", None, calibrator.trees))
            second = check_saturation(_joined(calibration, self.test), calibrator, settings, train)
            found.append(("loss_second", None, None if second is None else second.loss_second))
        return found


def recalibrated(cells: Cells, calibrator: SignatureCalibrator) -> Cells:
    """Cells of the calibrated score: each cell at the calibrated value of its mean score."""
    cells = cells.take(cells.weight > 0)
    value = calibrator.apply_signatures(cells.mean_score, cells.signature, cells.learned)
    return replace(
        cells, bin=cells.bins.assign(value), score=value * cells.weight,
        score_sq=value**2 * cells.weight, score_label=value * cells.label,
    )  # fmt: skip


def _joined(calibration: Cells, test: Cells) -> Cells:
    """One table of both, in the bins of ``calibration``."""
    test = test.take(test.weight > 0)
    places = {
        "bin": calibration.bins.assign(test.mean_score),
        "signature": test.signature + len(calibration.membership),
        "role": np.full(len(test), Role.test, dtype=np.int64),
    }
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(calibration, name), places.get(name, getattr(test, name))])
        for name in (*places, *SUMS)
    }
    membership = np.concatenate([calibration.membership, test.membership])
    return replace(calibration, membership=membership, **columns)
