"""What must not change a fit: the order of cells, the numbers of signatures, and cells without weight."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from miscalibrated import applied

from mcspark.core.baselines.calibrated_multiaccuracy import calibrated
from mcspark.core.baselines.lsboost import fit_lsboost
from mcspark.core.baselines.mcboost import fit_mcboost
from mcspark.core.baselines.multiaccuracy import fit_multiaccuracy
from mcspark.core.baselines.squarelev import fit_squarelev
from mcspark.core.cells.cells import SUMS, Cells

FITS = {
    "multiaccuracy": fit_multiaccuracy,
    "calibrated_multiaccuracy": lambda fit, stop: calibrated(fit_multiaccuracy(fit, stop), fit),
    "mcboost": lambda fit, stop: fit_mcboost(fit, stop, 20),
    "lsboost": lambda fit, stop: fit_lsboost(fit, stop, 20, depth=2, subsample=0.6, max_rounds=15),
    "squarelev": lambda fit, stop: fit_squarelev(fit, stop, max_rounds=40),
}


def shuffled(cells: Cells, seed: int) -> Cells:
    rng = np.random.default_rng(seed)
    number = rng.permutation(len(cells.membership))
    membership = np.empty_like(cells.membership)
    membership[number] = cells.membership
    renamed = replace(cells, membership=membership, signature=number[cells.signature])
    return renamed.take(rng.permutation(len(cells)))


def with_weightless_cells(cells: Cells) -> Cells:
    """The same cells, and each of them again on another level with rows that weigh nothing."""
    columns = {
        f.name: np.concatenate([getattr(cells, f.name)] * 2)
        for f in fields(cells)
        if f.name not in ("bins", "groups", "membership", "features")
    }
    again = np.arange(2 * len(cells)) >= len(cells)
    columns["bin"] = np.where(again, (columns["bin"] + 40) % cells.bins.n_bins, columns["bin"])
    for name in SUMS[1:]:
        columns[name] = np.where(again, 0.0, columns[name])
    return replace(cells, **columns)


@pytest.mark.parametrize("method", FITS)
@pytest.mark.parametrize("change", [lambda cells: shuffled(cells, 1), with_weightless_cells])
def test_the_same_fit(population, method, change):
    plain = FITS[method](population.fit, population.stop)
    other = FITS[method](change(population.fit), change(population.stop))
    score, membership = population.score, population.membership
    np.testing.assert_allclose(
        applied(other, score, membership), applied(plain, score, membership), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("method", FITS)
def test_rows_score_the_same_by_signature_and_in_any_company(population, method):
    fit = FITS[method](population.fit, population.stop)
    score, membership = population.score[:500], population.membership[:500]
    whole = applied(fit, population.score, population.membership)[:500]
    np.testing.assert_allclose(applied(fit, score, membership), whole, rtol=0, atol=1e-15)
    by_signature = fit.apply_signatures(score, np.arange(500)[::-1], membership[::-1])
    np.testing.assert_allclose(by_signature, whole, rtol=0, atol=1e-15)


@pytest.mark.parametrize("method", FITS)
def test_no_cells_at_all(population, method):
    nothing = population.fit.take(np.array([], dtype=int))
    fit = FITS[method](nothing, nothing)
    after = applied(fit, population.score, population.membership)
    assert np.abs(after - population.score).max() <= 1 / 40 + 1e-12
    assert applied(fit, np.zeros(0), np.zeros((0, population.membership.shape[1]), bool)).shape == (0,)
