"""The benchmark's result for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

TARGETS: Mapping[str, tuple[str, float]] = {
    "calibrate_over_floor": ("<=", 3.0),
    "score_over_floor": ("<=", 1.4),
    "audit_over_scan": ("<=", 3.0),
    "additive_over_transform": (">=", 20.0),
    "cells_over_lightgbm": ("<=", 1.0),
    "fit_growth_10x": ("<=", 2.5),
    "driver_heap_gib": ("<=", 2.0),
}
"""What each ratio is to reach with 10 million rows on two cores."""


def render(result: Mapping[str, Any]) -> str:
    """All figures as aligned text."""
    what = f"{result['rows']} rows, {result['trees']} trees"
    lines = [f"{what}, medians of {result['repeats']} interleaved runs"]
    lines += ["", *_aligned([("measure", "value", "target"), *map(_ratio(result), TARGETS)])]
    costs = [
        (name, cost["seconds"], _blank(cost["cpu_seconds"]), *cost["runs"])
        for name, cost in result["costs"].items()
    ]
    lines += ["", *_aligned([("what", "seconds", "cpu", "runs"), *costs])]
    stages = [(job, *(f"{k} {v}" for k, v in found.items())) for job, found in result["stages"].items()]
    lines += ["", *_aligned(stages)]
    if result["quality"]:
        grids = list(result["quality"][0]["mc_error"])
        head = ("training", "fold", "trees", "test loss", *(f"MC {m}" for m in grids))
        rows = [
            (q["training"], q["fold"], q["trees"], _digits(q["loss"]), *map(_digits, q["mc_error"].values()))
            for q in result["quality"]
        ]
        lines += ["", *_aligned([head, *rows])]
    lines += ["", *(f"{'ok  ' if fine else 'FAIL'} {name}" for name, fine in result["checks"].items())]
    return "\n".join(lines)


def _ratio(result: Mapping[str, Any]) -> Callable[[str], tuple[str, str, str]]:
    return lambda name: (name, _blank(result[name]), " ".join(map(str, TARGETS[name])))


def _blank(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _digits(value: float) -> str:
    return f"{value:.6f}"


def _aligned(rows: Sequence[Sequence[Any]]) -> list[str]:
    texts = [[str(cell) for cell in row] for row in rows]
    columns = max(map(len, texts), default=0)
    width = [max(len(row[i]) for row in texts if i < len(row)) for i in range(columns)]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, width, strict=False)).rstrip() for row in texts]
