"""Whole inputs of a job, made from a seed: tables of a few dozen rows, and a configuration for them."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
from attribute_tables import AttributeTables
from scored_tables import ScoredTables
from shapes import DAY, Pair


def pair(seed: int) -> Pair:
    """The pair of a seed."""
    return _Maker(Random(seed)).make(seed)


class _Maker(ScoredTables, AttributeTables):
    def make(self, seed: int) -> Pair:
        rng = self.rng
        n = rng.choice([20, 40, 60, 60, 100])
        key = [self.name() for _ in range(rng.choice([1, 1, 2]))]
        key_types = {k: rng.choice([pa.int64(), pa.int32(), pa.string(), pa.date32()]) for k in key}
        keys = self.keys(key, key_types, n)
        score, label = self.name(), self.name()
        weight = self.name() if self.chance(0.5) else None
        rows = [dict(k) for k in keys]
        types: dict[str, pa.DataType] = dict(key_types)
        types[score] = self.scores(rows, score)
        types[label] = self.labels(rows, label, score)
        if weight:
            types[weight] = self.weights(rows, weight)
        scored: dict[str, Any] = {"key": key, "score": score, "label": label}
        if weight:
            scored["weight"] = weight
        split = self.split(rows, types, key)
        if self.chance(0.15):
            scored["dedupe"] = {"latest_by": self.latest(rows, types, key)}
        elif self.chance(0.04, "repeated key"):
            rows.append(dict(rng.choice(rows)))
        attributes = [self.table(keys, key, key_types) for _ in range(rng.choice([1, 1, 1, 2]))]
        cuts, conditions = self.groups(attributes, key)
        groups: dict[str, Any] = {
            "min_share": rng.choice([0, 0.01, 0.05, 0.1, 0.3]), "columns": cuts,
            "predicates": [{"name": c.name, "where": c.where} for c in conditions],
            "intersections": rng.choice([1, 1, 2]),
        }  # fmt: skip
        if self.chance(0.03, "min_share"):
            groups["min_share"] = 0.99
        rng.shuffle(rows)
        folders = [self.folder(f"t{i}") for i in range(1 + len(attributes))]
        config: dict[str, Any] = {
            "scored": scored,
            "attributes": [{"key": rng.sample(key, len(key)), "on_unmatched": table.on_unmatched}
                           for table in attributes],
            "groups": groups, "split": split, "calibrator": self.calibrator(),
            "evaluation": {"levels": rng.choice([[2], [1], [5, 10], [3, 7], [20], [10, 20, 30]]), "draws": 5,
                           "min_group_rows": rng.choice([1, 2, 2, 20])},
            "output": {"path": "table"}, "model": {"path": "model"}, "gate": {"must_improve": False},
            "max_rejected_share": 1.0,
        }  # fmt: skip
        if self.chance(0.4):
            config["output"]["partition"] = {"ds": DAY}
        if self.chance(0.05, "gate"):
            config["gate"] = {"max_mc_error": 0.001}
        elif self.chance(0.2, "gate"):
            del config["gate"]
        if self.chance(0.2, "share rejected"):
            del config["max_rejected_share"]
        if self.chance(0.1):
            config["allow_empty"] = True
        if self.chance(0.03):
            config["report"] = {"path": "report.html"}
        return Pair(seed, key, rows, types, attributes, conditions, config, folders, self.odd,
                    rng.choice([1, 1, 2, 5]))  # fmt: skip

    def calibrator(self) -> dict[str, Any]:
        rng = self.rng
        method = rng.choice(["trees"] * 5 + ["multiaccuracy", "lsboost", "mcboost", "squarelev", "none"])
        return {
            "method": method, "engine": "lightgbm", "max_trees": 3,
            "early_stopping_rounds": rng.choice([1, 3]),
            "learning_rate": rng.choice([0.1, 0.3, 1.0]), "feature_fraction": rng.choice([1.0, 0.5]),
            "link": rng.choice(["identity", "identity", "logit"]), "rounds": rng.choice([1, 1, 2, "auto"]),
            "refit": rng.random() < 0.3, "score_bins": rng.choice([0, 4, 16]),
            "min_rows_in_leaf": rng.choice([1, 5, 20]), "seed": rng.randint(0, 9),
            "multiaccuracy": {"penalties": [0.0, 0.01]},
            "mcboost": {"levels": rng.choice([1, 5, 10]), "max_patches": 20, "patience": 5},
            "lsboost": {"levels": rng.choice([1, 5]), "depth": rng.choice([1, 2]), "max_rounds": 5},
            "squarelev": {"max_rounds": 5},
        }  # fmt: skip
