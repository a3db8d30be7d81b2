"""Codes: '01' in a partition folder, PUMAs, alphanumeric serial numbers, from CSV."""

from __future__ import annotations

import pandas as pd
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def coded(world, people):
    """The scored table as CSV below folders ``st=01`` and ``st=36``; PUMA in the attributes, as CSV too."""
    table = people.assign(
        house=[f"2024HU{i:07d}" if i % 2 else f"000{i}E10" for i in range(len(people))],
        puma=[("00100", "03701", "1e3")[i % 3] for i in range(len(people))],
        st=[("01", "36")[i % 2] for i in range(len(people))],
    )
    for st, part in table.groupby("st"):
        folder = world.root / "coded" / f"st={st}"
        folder.mkdir(parents=True)
        part[["house", "person", "score", "label", "w"]].to_csv(folder / "part.csv", index=False)
    (world.root / "areas").mkdir()
    table[["house", "person", "st", "puma"]].to_csv(world.root / "areas" / "part.csv", index=False)
    return world, table


def test_they_stay_text_from_end_to_end(coded):
    world, table = coded
    key = ["house", "person", "st"]
    done = world.ran(
        "calibrate",
        scored={"path": str(world.root / "coded"), "format": "csv", "key": key},
        attributes=[{"path": str(world.root / "areas"), "format": "csv", "key": key}],
        groups={"columns": [{"column": "puma"}, {"column": "st"}], "predicates": []},
        calibrator={"method": "multiaccuracy"},
        output={"partition": None, "path": str(world.root / "coded_out")},
    )
    schema = {
        f.name: str(f.type) for f in pq.read_table(done.summary["paths"]["output"], partitioning=None).schema
    }
    assert {schema[name] for name in key} == {"string"}
    output = world.output(done).set_index("house").sort_index()
    expected = table.set_index("house").sort_index()
    assert list(output.index) == list(expected.index)
    assert list(output["st"]) == list(expected["st"])
    assert list(output["person"]) == list(expected["person"].astype(str))
    metrics = pd.read_parquet(done.summary["paths"]["metrics"], partitioning=None)
    assert {"puma=00100", "puma=03701", "puma=1e3", "st=01", "st=36"} <= set(metrics["group"].dropna())
    assert list(done.summary["unmatched"].values()) == [0]


def test_one_partition_is_chosen_by_its_text(coded):
    world, table = coded
    sections = {
        "attributes": [{"path": str(world.root / "areas"), "format": "csv", "key": ["house", "person"]}],
        "groups": {"columns": [{"column": "puma"}], "predicates": []},
        "calibrator": {"method": "none"},
        "output": {"partition": None, "path": str(world.root / "coded_out")},
    }
    scored = {"path": str(world.root / "coded"), "format": "csv"}
    done = world.ran("calibrate", scored={**scored, "partition": {"st": "01"}}, **sections)
    assert done.summary["rows"]["in"] == (table["st"] == "01").sum()
    done = world.run("calibrate", scored={**scored, "partition": {"st": "1"}}, **sections)
    assert done.exit_code == 3
