"""The few tables of an exported stage hold what its curves and pairs say; codes of numbers are bisected."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from random_models import random_model
from test_everywhere import MODELS, QUERY, drawn, worst

from mcspark.core.cells.decimals import divided
from mcspark.core.cells.groups import Family
from mcspark.export import sql
from mcspark.export.codes import code_of
from mcspark.export.lookups import lookups


def looked_up(found, bins, codes):
    total = np.zeros(len(bins))
    for one in found:
        place = bins * one.by_bin + codes[:, list(one.families)] @ np.array(one.steps, dtype=int)
        at = np.minimum(np.searchsorted(one.places, place), len(one.places) - 1)
        total += np.where(one.places[at] == place, one.terms[at], 0.0)
    return total


@pytest.mark.parametrize("most", [0, 60, 3000])
def test_terms_of_the_look_ups_add_up_to_the_form(most):
    rng = np.random.default_rng(5)
    for seed in range(40):
        saved, _ = random_model(seed, conditions=True)
        groups = saved.groups.learned
        codes = np.stack([rng.integers(0, len(f.categories) + 1, 300) for f in groups.families], axis=1)
        member = groups.membership(groups.words(codes))
        for stage in saved.calibrator.stages:
            form, score = stage.form, rng.random(300)
            found = lookups(groups, form, most)
            bins = form.bins_of(score)
            total = looked_up(found, bins, codes) + form.base[bins] + form.constant
            assert np.abs(total - form.evaluate(score, member)).max() < 1e-12
            for one in found:
                assert one.dense == (len(one.places) == one.places[-1] + 1 <= most)


def test_tables_that_together_stay_small_are_one():
    saved, _ = random_model(5, conditions=True)
    form = saved.calibrator.stages[0].form
    apart, together = (lookups(saved.groups.learned, form, most) for most in (0, 10**7))
    assert len(apart) > 3
    assert len(together) == 1
    assert sum(len(one.places) for one in apart) < len(together[0].places)


def test_duckdb_joins_the_tables_that_are_too_large_for_a_list(monkeypatch):
    monkeypatch.setattr(sql, "_IN_LIST", 60)
    for seed in MODELS[:25]:
        saved, table, _ = drawn(seed)
        with duckdb.connect(config={"threads": 1}) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE people AS SELECT * FROM given")
            for statement in sql.to_sql(saved, "duckdb", "people", ["id"]):
                connection.execute(statement)
            worst([row[0] for row in connection.execute(QUERY).fetchall()], seed)


@pytest.mark.parametrize("divide_by", [100.0, 0.1, 3.0, 1e-300, 1e300, 5e-324, 2.5])
def test_quotients_are_cut_where_the_groups_cut_them(divide_by):
    whole = [0, 1, -1, 2, 7, -3, 6, 2**53 - 1, 2**53, -(2**62), 2**63 - 1024]
    family = Family("divide", "x", tuple(whole), divide_by=divide_by, columns=("x",))
    with np.errstate(over="ignore"):
        near = np.array([c * divide_by for c in whole] + [(c + 1) * divide_by for c in whole])
        values = np.concatenate(
            [np.nextafter(near, -np.inf), near, np.nextafter(near, np.inf), [0.3, 0.7, -0.0]]
        )
        values = values[np.isfinite(values)]
        quotient = divided(values, divide_by)
    expected = [whole.index(int(q)) + 1 if q in whole else 0 for q in quotient]
    expression = code_of(family, "duckdb", "x", "")
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("CREATE TABLE t (i INT, x DOUBLE)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(values.tolist())))
        connection.execute("INSERT INTO t VALUES (9990, NULL), (9991, 'NaN'), (9992, 'inf'), (9993, '-inf')")
        codes = [row[0] for row in connection.execute(f"SELECT {expression} FROM t ORDER BY i").fetchall()]
    assert codes == [*expected, 0, 0, 0, 0]
