"""An exported calibrator applied to one row in plain Python, as docs/use/export.md describes it."""

import math
from decimal import Decimal

CONDITIONS = {  # by hand: null is not true
    "(`SEX` = 2) AND (`AGEP` >= 65)": lambda r: r["SEX"] == 2 and r["AGEP"] is not None and r["AGEP"] >= 65,
}


def groups_of(model, row):
    inside = []
    for family in model["families"]:
        value = row.get(family["column"])
        if family["kind"] == "predicate":
            inside.append(bool(CONDITIONS[family["where"]](row)))
            continue
        if value is not None and family["kind"] == "bins":
            edges = family["bins"]
            value = next((k for k in range(len(edges) - 1) if edges[k] <= value < edges[k + 1]), None)
        if value is not None and family["kind"] == "divide":
            value = math.floor(Decimal(repr(value)) / Decimal(repr(family["divide_by"])))
        inside += [value is not None and value == category for category in family["categories"]]
    return inside + [inside[i] and inside[j] for i, j in model["intersections"]]


def score(model, row):
    inside, f = groups_of(model, row), row[model["score"]]
    for stage in model["stages"]:
        b = sum(threshold < f for threshold in stage["thresholds"])
        terms = [stage["constant"], stage["base"][b]]
        terms += [curve[b] for curve, is_in in zip(stage["curves"], inside, strict=True) if is_in]
        pairs = zip(stage["pairs"], stage["pair_values"], strict=True)
        terms += [value for (i, j), value in pairs if inside[i] and inside[j]]
        if stage["link"] == "logit":
            f = min(max(f, 1e-6), 1 - 1e-6)
            f = 1 / (1 + math.exp(-(math.log(f / (1 - f)) + math.fsum(terms))))
        else:
            f = min(max(f + math.fsum(terms), 0), 1)
    return f
