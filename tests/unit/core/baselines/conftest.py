from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import ScoreBins, level_index, level_value


@dataclass(frozen=True)
class Population:
    """Rows with a known truth, their cells, and how far a score is from calibrated on the test rows."""

    score: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    truth: np.ndarray
    membership: np.ndarray
    role: np.ndarray
    cells: Cells

    def of_role(self, role: Role) -> np.ndarray:
        return self.role == int(role)

    @property
    def fit(self) -> Cells:
        return self.cells.of_role(Role.fit)

    @property
    def stop(self) -> Cells:
        return self.cells.of_role(Role.early_stopping)

    def mc_error(self, score: np.ndarray, m: int) -> float:
        """Paper, definition of the MC error, group by group and level by level, on the test rows."""
        test = self.of_role(Role.test)
        level = level_index(score[test], m)
        y, w, groups = self.label[test], self.weight[test], self.membership[test]
        off = w * (level_value(level, m) - y) / w.sum()
        return max(
            sum(abs(off[groups[:, g] & (level == k)].sum()) for k in range(m)) for g in range(groups.shape[1])
        )

    def loss(self, score: np.ndarray) -> float:
        test = self.of_role(Role.test)
        return float(np.average((score[test] - self.label[test]) ** 2, weights=self.weight[test]))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def make_population(n: int, seed: int, families: tuple[int, ...], *, binary: bool = False) -> Population:
    """Scores that are wrong by group, by level, and by pairs of groups."""
    rng = np.random.default_rng(seed)
    codes = [rng.choice(k, n, p=rng.dirichlet(np.full(k, 3.0))) for k in families]
    membership = np.concatenate(
        [np.ones((n, 1), bool)]
        + [np.eye(k, dtype=bool)[code] for k, code in zip(families, codes, strict=True)],
        axis=1,
    )
    raw = rng.normal(-0.3, 1.1, n)
    effect = membership @ rng.normal(0, 0.5, membership.shape[1])
    pair = rng.normal(0, 0.5, (families[0], families[1]))[codes[0], codes[1]]
    slope = rng.uniform(0.5, 1.4, families[0])[codes[0]]
    score, truth = sigmoid(raw), sigmoid(slope * raw + effect + pair)
    label = (rng.random(n) < truth).astype(float) if binary else rng.beta(8 * truth, 8 * (1 - truth))
    weight = rng.integers(1, 6, n).astype(float)
    role = rng.choice(3, n, p=[0.42, 0.18, 0.4])
    cells = Cells.from_rows(score, label, membership, bins=ScoreBins.uniform(300), weight=weight, role=role)
    return Population(score, label, weight, truth, membership, role, cells)


@pytest.fixture(scope="session", params=[False, True], ids=["real", "binary"])
def population(request: pytest.FixtureRequest) -> Population:
    return make_population(30_000, 4, (6, 2, 5, 7), binary=request.param)
