"""Writes the golden cases: `python tests/golden/make.py`, from the root of the repository."""

import json
import math
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests/golden"), str(ROOT / "tests/unit/scorer")]

from brute_force import score  # noqa: E402
from scorer_models import model, people  # noqa: E402

from mcspark.export.plain import to_plain  # noqa: E402

LINKS = {
    "none": (),
    "identity": ("identity",),
    "logit": ("logit",),
    "rounds": ("logit", "identity", "identity"),
}
FOLDER = Path(__file__).parent / "cases"


def case(name):
    plain = to_plain(model(LINKS[name], seed=len(name), bins=6))
    thresholds = [t for stage in plain["stages"] for t in stage["thresholds"]]
    rows = people(30, seed=2).to_dict("records")
    rows += [{**rows[9], "score": f} for t in thresholds[:3] for f in (t, math.nextafter(t, 1))]
    rows += [{**rows[9], name: None} for name in ("SEX", "AGEP", "OCCP", "job")]
    rows += [{**rows[9], "AGEP": edge, "OCCP": edge * 10} for edge in (0, 30, 59, 60, 65, 120, -1)]
    return {"model": plain, "cases": [{"row": row, "expected": score(plain, row)} for row in rows]}


def text(name):
    return json.dumps(case(name), separators=(",", ":")) + "\n"


if __name__ == "__main__":
    for name in LINKS:
        (FOLDER / f"{name}.json").write_text(text(name))
