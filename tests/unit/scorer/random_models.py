"""Calibrators of every shape drawn from a seed, with rows at and beyond their edges."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mcspark.core.cells.groups import Category, Family, FittedGroups
from mcspark.core.model.additive import AdditiveForm
from mcspark.core.model.stages import Stage, Stages
from mcspark.core.saved import SavedModel

Row = dict[str, Any]

WORDS = ("a", "it's", 'a "b"', "Ä, ö", "", "NULL", "1", "A", " a", "x\\y")
DIVISORS = (100.0, 10.0, 0.1, 0.25, 3.0)
CONDITIONS = {  # the column and, by hand, what is true; null is not
    "`whole` IN (1, 2)": lambda r: r["whole"] in (1, 2),
    "(`whole` >= 3) OR (`word` = 'a')": lambda r: (r["whole"] or 0) >= 3 or r["word"] == "a",
    "`word` IS NULL": lambda r: r["word"] is None,
    "(NOT `whole` = 1) AND (`word` <> 'a')": lambda r: (
        r["whole"] not in (None, 1) and r["word"] not in (None, "a")
    ),
    "COALESCE(`whole`, 7) BETWEEN 5 AND 8": lambda r: 5 <= (7 if r["whole"] is None else r["whole"]) <= 8,
}


def random_model(seed: int, conditions: bool) -> tuple[SavedModel, list[Row]]:
    """A calibrator and rows; columns are ``whole`` and ``word``, and the doubles ``cut`` and ``ratio``."""
    rng = np.random.default_rng(seed)
    families = _families(rng, conditions)
    sizes = [len(f.categories) for f in families]
    owner = np.repeat(np.arange(len(families)), sizes)
    every = [(i, j) for i in range(len(owner)) for j in range(i + 1, len(owner)) if owner[i] != owner[j]]
    pairs = tuple(p for p in every if rng.random() < 0.1)
    groups = FittedGroups(families, pairs, features=_features(seed, families))
    links = rng.choice(["identity", "logit"], rng.integers(0, 3))
    stages = tuple(Stage(link, _form(rng, len(groups.learned_names)), 3) for link in links.tolist())
    columns = {"scoreCol": "the score", "predictionCol": "calibrated_score"}
    saved = SavedModel("trees", groups, Stages(stages, groups.learned_names), columns, 0, None)
    return saved, _rows(rng, saved)


def _features(seed: int, families: tuple[Family, ...]) -> tuple[Family, ...]:
    """Of a third of the models, the columns of the groups with all categories, and one more."""
    if seed % 3:
        return ()
    every = {"whole": (1, 2, 3, -4, 0, 2**40), "word": WORDS, "ratio": (-2, -1, 0, 1, 2, 6, 470)}
    whole = [
        replace(f, categories=tuple(dict.fromkeys([*every[f.column], *f.categories])))
        if f.kind in ("value", "divide")
        else replace(f, categories=tuple(range(len(f.bins) - 1)) if f.bins else f.categories)
        for f in families
    ]
    return (*whole, Family("bins", "cut", (0, 1), bins=(-1.0, 0.25, 2.0), columns=("cut",)))


def _families(rng: np.random.Generator, conditions: bool) -> tuple[Family, ...]:
    def some(values: Any) -> tuple[Category, ...]:
        return tuple(rng.permutation(np.array(values, dtype=object))[: rng.integers(0, len(values) + 1)])

    edges = np.unique(rng.choice([-5.0, 0.0, 0.1, 0.3, 1.0, 17.5, 60.0, 1e6], rng.integers(2, 7)))
    edges = np.array([0.0, 1.0]) if len(edges) < 2 else edges
    divisor = float(rng.choice(DIVISORS))
    found = [
        Family("value", "whole", some([1, 2, 3, -4, 0, 2**40]), columns=("whole",)),
        Family("value", "word", some(WORDS), columns=("word",)),
        Family("bins", "cut", some(range(len(edges) - 1)), bins=tuple(edges.tolist()), columns=("cut",)),
        Family("divide", "ratio", some([-2, -1, 0, 1, 2, 6, 470]), divide_by=divisor, columns=("ratio",)),
    ]
    if conditions:
        where = str(rng.choice(list(CONDITIONS)))
        columns = tuple(c for c in ("whole", "word") if c in where)
        found.append(Family("predicate", "it holds", (1,), where=where, columns=columns))
    order = rng.permutation(len(found))[: rng.integers(1, len(found) + 1)]
    return tuple(found[i] for i in order)


def _form(rng: np.random.Generator, n_groups: int) -> AdditiveForm:
    size = float(rng.choice([0.01, 0.3, 5.0]))  # the last one meets the limits
    cuts = rng.choice([rng.random(), 0.0, 1.0, 0.5, 1 / 1024, *rng.random(20)], rng.integers(0, 20))
    thresholds = np.unique(cuts)
    bins = len(thresholds) + 1
    curves = rng.normal(0, size, (n_groups, bins)) * (rng.random((n_groups, 1)) < 0.8)
    pairs = [(i, j) for i in range(n_groups) for j in range(i + 1, n_groups) if rng.random() < 0.1]
    places = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    constant, base, values = rng.normal(0, size), rng.normal(0, size, bins), rng.normal(0, size, len(pairs))
    return AdditiveForm(thresholds, float(constant), base, curves, places, values)


def _rows(rng: np.random.Generator, saved: SavedModel) -> list[Row]:
    scores = {0.0, 1.0, 1e-300, 1e-9, 1 - 1e-9, 0.5}
    for stage in saved.calibrator.stages[:1]:
        for cut in stage.form.thresholds.tolist():
            scores |= {cut, math.nextafter(cut, 1.0), math.nextafter(cut, 0.0)}
    edges = [e for f in saved.groups.signed for e in (f.bins or ())]
    ratios = [c * f.divide_by for f in saved.groups.signed if f.divide_by for c in f.categories]
    near = [math.nextafter(x, d) for x in (*edges, *ratios) for d in (-math.inf, math.inf)]
    doubles = [
        None,
        math.nan,
        math.inf,
        -math.inf,
        -0.0,
        0.3,
        0.1 * 3,
        1e15,
        -1e308,
        5e-324,
        *edges,
        *ratios,
        *near,
    ]
    drawn = [*scores, *rng.random(40).tolist()]
    return [
        {
            "id": i,
            "the score": score,
            "whole": [1, 2, 3, -4, 0, 2**40, 9, 6, None][rng.integers(9)],
            "word": [*WORDS, "unseen", None][rng.integers(len(WORDS) + 2)],
            "cut": doubles[rng.integers(len(doubles))],
            "ratio": doubles[rng.integers(len(doubles))],
        }
        for i, score in enumerate(drawn)
    ]
