import numpy as np
import pytest

from mcspark.core.cells.atoms import Atoms
from mcspark.core.cells.cells import Cells
from mcspark.core.cells.levels import ScoreBins
from mcspark.core.metrics.group_noise import draw_group_sums

LEVELS = 2
DRAWS = 20_000


class Coins:
    """One fair coin a row, ±1, and twice the same coin: two quantities that vary together."""

    def __init__(self, atoms):
        rows = atoms.rows
        self.rows = rows.astype(int)
        self.covariance = np.array([[rows, 2 * rows], [2 * rows, 4 * rows]])
        self.information = rows / 4
        self.mean = np.zeros((2, len(rows)))
        self.step = 0.0
        self.asked = []

    def draw(self, rng, size, at):
        self.asked.append(at)
        coins = 2.0 * rng.binomial(self.rows[at], 0.5, (size, len(at))) - self.rows[at]
        return np.stack([coins, 2 * coins])


@pytest.fixture(scope="module")
def drawn():
    """Four groups: large ones that overlap, one of three rows a level, and one that is empty."""
    rng = np.random.default_rng(0)
    n = 4000
    score = (rng.integers(0, LEVELS, n) + 0.5) / LEVELS
    # Bits that tell the rows apart, so that a level has many atoms.
    member = np.zeros((n, 4 + 8), dtype=bool)
    member[:, 0] = True
    member[:, 1] = rng.random(n) < 0.5
    for level in range(LEVELS):
        member[np.flatnonzero(score == (level + 0.5) / LEVELS)[:3], 2] = True
    member[:, 4:] = rng.random((n, 8)) < 0.5
    atoms = Atoms.of(Cells.from_rows(score, score, member, bins=ScoreBins.uniform(LEVELS)))
    noise = Coins(atoms)
    sums = draw_group_sums(rng, DRAWS, atoms, noise, atoms.cells.membership[:, :4].astype(float))
    return atoms, noise, sums


def test_sums_vary_together_as_those_of_the_rows_do(drawn):
    atoms, _, sums = drawn
    for level in range(LEVELS):
        inside = atoms.cells.membership[:, :4][atoms.cells.signature] & (atoms.cells.bin == level)[:, None]
        expected = inside.T.astype(float) @ (inside * atoms.rows[:, None])
        both = sums[:, :, :2, level].transpose(1, 0, 2).reshape(DRAWS, 4)
        blocks = np.block(
            [[expected[:2, :2], 2 * expected[:2, :2]], [2 * expected[:2, :2], 4 * expected[:2, :2]]]
        )
        np.testing.assert_allclose(np.cov(both.T), blocks, rtol=0.05)
        np.testing.assert_allclose(both.mean(axis=0), 0, atol=5 * np.sqrt(blocks.max() / DRAWS))


def test_a_group_of_few_rows_is_drawn_by_its_rows(drawn):
    atoms, noise, sums = drawn
    assert set(np.unique(sums[0, :, 2])) == {-3, -1, 1, 3}
    assert np.array_equal(sums[1, :, 2], 2 * sums[0, :, 2])
    asked = np.concatenate(noise.asked)
    assert atoms.cells.membership[atoms.cells.signature[asked], 2].all()
    assert len(asked) == 3 * LEVELS


def test_an_empty_group_has_no_noise(drawn):
    assert not drawn[2][:, :, 3].any()


def test_levels_with_few_atoms_are_drawn_by_their_rows():
    cells = Cells.from_rows(
        np.full(1000, 0.25), np.zeros(1000), np.ones((1000, 1), dtype=bool), bins=ScoreBins.uniform(LEVELS)
    )
    atoms = Atoms.of(cells)
    sums = draw_group_sums(np.random.default_rng(0), 50, atoms, Coins(atoms), np.ones((1, 1)))
    assert np.array_equal(sums, np.rint(sums))
    assert sums[0, :, 0, 0].any()
    assert not sums[..., 1].any()
