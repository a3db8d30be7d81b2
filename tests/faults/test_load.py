"""Much of everything; with ``MCSPARK_LOAD_ROWS=10000000`` as much as two cores can take in half an hour."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F

from .conftest import GROUPS, KEY, Done, World, run_child

pytestmark = pytest.mark.timeout(3600)

ROWS = int(os.environ.get("MCSPARK_LOAD_ROWS", "100000"))
FILES = min(5000, ROWS // 200)
SMALL_EXECUTORS = {"spark.driver.maxResultSize": "64m", "spark.sql.shuffle.partitions": "16"}
CLUSTER = "local-cluster[1,2,1024]"


def write_big(world: World, rows: int, attributes: dict[str, str], key: Column | None = None) -> None:
    """Both tables, made in Spark: scores and attributes by the hash of the place."""
    draw = [F.pmod(F.xxhash64("id", F.lit(i)), F.lit(1_000_000)) / 1_000_000 for i in range(8)]
    frame = world.spark.range(0, rows, 1, 8)
    house = key if key is not None else F.col("id").cast("string")
    frame = frame.select(house.alias("house"), F.lit(1).cast("long").alias("person"), *[
        d.alias(f"u{i}") for i, d in enumerate(draw)
    ])  # fmt: skip
    label = (F.col("u1") < F.col("u0")).cast("double")
    scored = frame.select(*KEY, F.col("u0").alias("score"), label.alias("label"), F.lit(1.0).alias("w"))
    scored.write.mode("overwrite").parquet(str(world.root / "scored"))
    columns = [F.expr(text).alias(name) for name, text in attributes.items()]
    frame.select(*KEY, *columns).write.mode("overwrite").parquet(str(world.root / "attributes"))


MANY = {f"a{i}": f"cast(u{2 + i % 6} * {5 + i} as int) % {3 + i % 4}" for i in range(12)}
ALIKE = {
    "sex": "if(u2 < 0.9, 1, 2)", "age": "if(u2 < 0.9, 40, cast(16 + u3 * 80 as int))",
    "job": "if(u2 < 0.9, 'a', concat('j', cast(u4 * 30 as int)))",
}  # fmt: skip


@pytest.fixture(scope="module")
def loaded(spark, ready, tmp_path_factory) -> list[Done]:
    """Three jobs on large tables, one after the other in one session: driver and executor of 1 GiB each."""
    repeated = F.when(F.col("id") % 10 < 9, F.lit("0")).otherwise(F.col("id").cast("string"))
    signatures = {
        "groups": {"columns": [{"column": name} for name in MANY], "predicates": []},
        "calibrator": {"max_trees": 30, "score_bins": 0},
    }
    tables = {
        "alike": ("score", (ROWS, ALIKE), {}),
        "one-key": ("score", (ROWS, {"sex": "1", "age": "40", "job": "'a'"}, repeated), {}),
        "signatures": ("calibrate", (min(ROWS, 1_000_000), MANY), signatures),
    }
    commands = []
    for name, (job, table, sections) in tables.items():
        world = World(spark, tmp_path_factory.mktemp("loaded") / name)
        shutil.copytree(ready, world.root)
        write_big(world, *table)
        commands.append([job, "--config", str(world.configure(**sections))])
    child = run_child("none", *commands, master=CLUSTER, conf=SMALL_EXECUTORS, timeout=3000)
    assert len(child.jobs) == len(commands), child.log[-3000:]
    return child.jobs


def count(done) -> int:
    files = Path(done.summary["paths"]["output"]).glob("part-*")
    return sum(len(pd.read_parquet(file, columns=["person"])) for file in files)


def test_nine_rows_in_ten_alike_under_small_executors(loaded):
    """90 % of the rows with one signature, 64 MiB for results."""
    done = loaded[0]
    assert done.exit_code == 0, (done.summary, done.log[-3000:])
    assert (done.summary["rows"]["scored"], count(done)) == (ROWS, ROWS)


def test_nine_rows_in_ten_of_one_key_are_refused(loaded):
    """No memory runs out over the many rows of the one key."""
    done = loaded[1]
    assert done.exit_code == 3, (done.summary, done.log[-3000:])
    assert f"1 key(s) (house, person) are on {ROWS // 10 * 9} rows" in done.error


def test_twenty_thousand_signatures(loaded):
    done = loaded[2]
    assert done.exit_code == 0, (done.summary, done.log[-3000:])
    assert done.summary["signatures"] >= 20_000
    assert done.summary["rows"]["scored"] == min(ROWS, 1_000_000)


def test_thousands_of_tiny_files(world, people):
    for name in ("scored", "attributes"):
        one = pd.read_parquet(world.root / name)
        table = pd.concat([one.assign(house=f"{i}-" + one["house"]) for i in range(21)])
        world.write(name, table.iloc[:FILES], files=FILES)
    done = world.ran()
    assert done.summary["rows"]["scored"] == FILES
    assert len(list(Path(done.summary["paths"]["output"]).glob("part-*"))) == 1


def test_five_hundred_columns(world, people):
    more = pd.DataFrame({f"c{i}": (people.index * (i + 7)) % (i % 5 + 2) for i in range(500)})
    world.change("attributes", lambda t: pd.concat([t, more], axis=1))
    columns = [{"column": name} for name in more]
    done = world.ran(
        "calibrate", groups={"columns": [*GROUPS["columns"], *columns]}, calibrator={"max_trees": 3}
    )
    assert done.summary["groups"] > 1000
