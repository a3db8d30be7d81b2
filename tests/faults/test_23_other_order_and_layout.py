"""The input shuffled, in other files and partitions: the same split, keys, cells and scores."""

from __future__ import annotations

import re
from pathlib import Path

from mcspark.ml.cells import driver_cells

from .conftest import ATTRIBUTES, ROOT, SCORED, people_table

FORBIDDEN = r"monotonically_increasing_id|randomSplit|\brand\(\)|\brandn\(\)|F\.rand|F\.uuid|\.sample\("


def test_nothing_depends_on_it(spark, world, monkeypatch):
    """Scores, split, rejected rows and metrics; that trees stay the same is tested with the main job.

    The driver makes the cells of the rows in one file, the cluster those of the others.
    """
    people = people_table(1500, seed=4)
    people.loc[:3, "score"] = 7.0
    found = []
    for files, order in ((1, people.index), (5, people.sample(frac=1, random_state=1).index)):
        world.write("scored", people.loc[order, SCORED], files=files)
        world.write("attributes", people.loc[order[::-1], ATTRIBUTES], files=files)
        spark.conf.set("spark.sql.shuffle.partitions", str(3 + files))
        try:
            scored, audited = world.ran(), world.ran("audit")
        finally:
            spark.conf.set("spark.sql.shuffle.partitions", "4")
        summary = audited.summary
        found.append(
            (world.output(scored), world.rejected(scored), summary["metrics"], summary["signatures"])
        )
        monkeypatch.setattr(driver_cells, "_FEW", 0)
    (output, rejected, *numbers), (other, other_rejected, *other_numbers) = found
    assert output.equals(other)
    assert rejected.astype(str).equals(other_rejected.astype(str))
    assert numbers == other_numbers
    assert set(output["split"]) == {"fit", "early_stopping", "test"}


def test_nothing_in_the_code_draws_by_place():
    """No ids by place, no unseeded draws, no split by chance."""
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in sorted(Path(ROOT / "mcspark").rglob("*.py"))
        for match in re.finditer(FORBIDDEN, path.read_text())
    ]
    assert found == []
