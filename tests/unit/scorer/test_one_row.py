"""One row at a time: the quick look-up of its groups is that of tables, and takes microseconds."""

from __future__ import annotations

import datetime
import itertools
import math
import time
from decimal import Decimal

import numpy as np
import pytest
from scorer_models import form, model

from mcspark.core.cells.groups import Family, FittedGroups
from mcspark.core.model.stages import Stage, Stages
from mcspark.core.saved import SavedModel
from mcspark.errors import ContractError
from mcspark.scorer import Scorer
from mcspark.scorer.categories import FamilyCodes
from mcspark.scorer.columns import column_of
from mcspark.scorer.one_row import OtherValueError, one_row_code

VALUES = [
    None, 0, 1, -1, 2, 65, 66, 2**53 + 1, 2**61, 2**62, 2**63 - 1, 2**63, -(2**63), True, False, "", "a", "1",
    "1.0", " 1", "65", "Ä", "b", 0.0, -0.0, 0.1, 0.3, 0.1 * 3, 0.6, 0.65, 1.0, 1.5, 65.0, 65.5, -0.5,
    math.nan, math.inf, -math.inf, 5e-324, 1e-300, 1e300, 1e15, 2.0**62, np.float32(0.6), np.float64(0.6),
    np.int8(1), np.str_("a"), Decimal("0.6"), Decimal("1"), datetime.date(2024, 2, 29), b"a", [1],
]  # fmt: skip
FAMILIES = [
    Family("value", "c", (1, 2, 2**61, -1), columns=("c",)),
    Family("value", "c", ("a", "", "1", "1.0", "0.6", "true", "2024-02-29"), columns=("c",)),
    Family("value", "c", (), columns=("c",)),
    Family("bins", "c", (1, 0), bins=(0.0, 0.1, 0.6, 65.0), columns=("c",)),
    Family("divide", "c", (6, 0, -1, 650, 3, 2**60), divide_by=0.1, columns=("c",)),
    Family("divide", "c", (0, 1, -1), divide_by=65.0, columns=("c",)),
]
CONDITIONS = [
    "`c` = 1", "`c` <> 65", "`c` >= 0.6", "`c` < -0.5", "`c` BETWEEN 0 AND 65", "NOT `c` BETWEEN 0.1 AND 1.5",
    "`c` IN (1, 65)", "`c` IN (0.6, 1.5)", "NOT `c` IN (1, 2)", "`c` = 'a'", "`c` > 'a'", "`c` IN ('a', '1')",
    "`c` IS NULL", "NOT `c` IS NULL", "(`c` IS NULL) OR (`c` = 1)", "(`c` > 0) AND (NOT `c` = 1)", "`C` = 1",
    "`c` IN (1, 'a')", "`c` = 1e0", "`c` <=> 1", "`c` = TRUE", "(`c` + 1) > 65", "`c` = 9223372036854775807",
    "COALESCE(`c`, 1) = 1", "`c` IN (1, NULL)", "`c` LIKE 'a%'",
]  # fmt: skip
FAMILIES += [Family("predicate", "p", (1,), where=where, columns=("c",)) for where in CONDITIONS]


def by_table(family, value):
    try:
        return int(FamilyCodes(family).of(lambda name: column_of({"c": [value]}, name))[0])
    except (ContractError, TypeError):
        return "refused"


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.where or f"{f.kind} {f.divide_by}")
def test_a_value_that_is_looked_up_has_the_code_of_a_table_and_one_that_is_refused_never_has(family):
    quick = one_row_code(family)
    if quick is None:
        assert family.where in CONDITIONS[-9:]
        return
    looked_up = 0
    for value in VALUES:
        try:
            code = quick(value)
        except OtherValueError:
            continue
        looked_up += 1
        assert code == by_table(family, value), value
    assert looked_up >= 5


def test_truth_of_two_columns_is_three_valued():
    for where in ("(`a` = 1) AND (`b` = 1)", "(`a` = 1) OR (`b` = 1)", "NOT ((`a` = 1) OR (`b` = 1))"):
        family = Family("predicate", "p", (1,), where=where, columns=("a", "b"))
        for a, b in itertools.product((None, 0, 1), repeat=2):
            table = {"a": [a, 5], "b": [b, 5]}
            expected = FamilyCodes(family).of(lambda name, t=table: column_of(t, name))[0]
            assert one_row_code(family)(a, b) == expected, (where, a, b)


def test_values_that_were_never_seen_take_microseconds():
    scorer, rng = Scorer(model(("logit",), bins=300)), np.random.default_rng(3)
    rows = [
        {"score": f, "SEX": 9 + i, "AGEP": 100 * f, "OCCP": 1e3 * f, "job": str(i)}
        for i, f in enumerate(rng.random(2000).tolist())
    ]
    started = time.process_time()
    for row in rows:
        scorer.score_one(row)
    assert time.process_time() - started < 2000 * 100e-6  # 20 on an idle core


def test_rows_of_groups_that_were_never_met_together_take_little_more():
    rng = np.random.default_rng(1)
    families = tuple(Family("value", c, tuple(range(20)), columns=(c,)) for c in "abcd")
    crossed = tuple((i, 20 + j) for i in range(20) for j in range(20))
    groups = FittedGroups(families, crossed)
    stages = tuple(Stage(link, form(len(groups.names), 300, rng), 7) for link in ("logit", "identity"))
    columns = {"scoreCol": "score", "predictionCol": "p"}
    saved = SavedModel("trees", groups, Stages(stages, groups.names), columns, 0, None)
    rows = [{"score": rng.random(), **{c: int(rng.integers(20)) for c in "abcd"}} for _ in range(1000)]
    scorer = Scorer(saved)
    started = time.process_time()
    found = [scorer.score_one(row) for row in rows]
    assert time.process_time() - started < 1000 * 500e-6  # 100 on an idle core: 480 groups and 69,000 pairs
    table = {name: [row[name] for row in rows] for name in rows[0]}
    assert found == scorer.score(table).tolist()
