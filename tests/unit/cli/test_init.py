"""The guessed configuration: roles, groups, words about them, and a file that loads."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from mcspark.cli.init import write_configuration
from mcspark.config import load_config
from mcspark.errors import ConfigurationError, ContractError


def people(n=600):
    rng = np.random.default_rng(2)
    scored = pd.DataFrame({
        "household": [f"H{i // 3:05d}" for i in range(n)],
        "person_id": np.arange(n) % 3,
        "p_hat": rng.random(n),
        "outcome": np.where(rng.random(n) < 0.2, np.nan, (rng.random(n) < 0.4).astype(float)),
        "sample_weight": rng.integers(1, 9, n).astype(float),
    })  # fmt: skip
    attributes = scored[["household", "person_id"]].assign(
        **{
            "region: 'a' #1": rng.choice(["north", "south"], n),
            "age": rng.integers(18, 95, n),
            "occupation": rng.integers(10, 9999, n) // 20 * 10,
            "employees": np.where(rng.random(n) < 0.3, np.nan, rng.integers(1, 6, n)),
            "note": [f"text {i}" for i in range(n)],
            "country": "here",
        }
    )
    return scored, attributes


@pytest.fixture(params=["parquet", "csv"])
def tables(request, tmp_path):
    scored, attributes = people()
    for name, table in (("scored", scored), ("attributes", attributes)):
        (tmp_path / name).mkdir()
        if request.param == "csv":
            table.to_csv(tmp_path / name / "part-0.csv", index=False)
        else:
            table.to_parquet(tmp_path / name / "part-0.parquet", index=False)
    return tmp_path, request.param


def test_roles_and_groups_are_guessed_and_said(tables):
    folder, kind = tables
    output = folder / "out" / "my.yaml"
    told = write_configuration(str(folder / "scored"), [str(folder / "attributes")], str(output))
    config = load_config(str(output), environ={}, needs=("output", "model"))
    assert config.scored.key == ("household", "person_id")
    assert (config.scored.score, config.scored.label, config.scored.weight) == (
        "p_hat",
        "outcome",
        "sample_weight",
    )
    assert config.scored.format == config.attributes[0].format == kind
    groups = {group.column: group for group in config.groups.columns}
    assert list(groups) == ["region: 'a' #1", "age", "occupation", "employees"]
    assert groups["employees"].bins is groups["region: 'a' #1"].bins is None
    edges = groups["age"].bins
    assert edges[0] <= 18
    assert edges[-1] > 94
    text = output.read_text()
    assert '# - {column: "note"}' in text
    words = "\n".join(told)
    for name in (
        "household, person_id",
        "p_hat",
        "outcome",
        "sample_weight",
        "note",
        "country: one value only",
    ):
        assert name in words
    assert "divide_by" in words
    assert f"mcspark check --config {output}" in words
    assert yaml.safe_load(text)["groups"]["min_share"] == 0.01


def test_a_file_that_is_there_stays(tables):
    folder, _ = tables
    mine = folder / "mine.yaml"
    mine.write_text("mine")
    arguments = (str(folder / "scored"), [str(folder / "attributes")], str(mine))
    with pytest.raises(ConfigurationError, match="--force"):
        write_configuration(*arguments)
    assert mine.read_text() == "mine"
    write_configuration(*arguments, force=True)
    assert mine.read_text() != "mine"


def test_tables_that_do_not_do_are_told(tmp_path):
    def table(name, columns):
        path = tmp_path / f"{name}.parquet"
        pd.DataFrame(columns).to_parquet(path)
        return str(path)

    good = table("good", {"id": [1, 2, 3], "x": [1, 1, 2]})
    out = str(tmp_path / "o.yaml")
    with pytest.raises(ContractError, match=r"no columns that name each row once.*shared: none"):
        write_configuration(table("no_key", {"code": [1, 2, 3], "score": [0.1, 0.2, 0.3]}), [good], out)
    with pytest.raises(ContractError, match=r"no numeric column within \[0, 1\]"):
        write_configuration(table("no_score", {"id": [1, 2, 3], "score": [10.0, 20.0, 3.0]}), [good], out)
    with pytest.raises(ContractError, match="nothing is there"):
        write_configuration(str(tmp_path / "gone"), [good], out)
    with pytest.raises(ContractError, match="no rows"):
        write_configuration(table("empty", {"id": [], "score": []}), [good], out)
    with pytest.raises(ConfigurationError, match="attribute table"):
        write_configuration(good, [], out)


def written(folder, name, table, suffix=".csv", **how):
    path = folder / f"{name}{suffix}"
    table.to_csv(path, index=False, **how)
    return str(path)


@pytest.mark.parametrize(
    ("suffix", "how", "csv"),
    [
        (".csv.gz", {}, None),
        (".csv", {"sep": ";"}, {"delimiter": ";"}),
        (".csv", {"sep": "\t", "encoding": "utf-16"}, {"delimiter": "\t", "encoding": "utf-16"}),
        (".csv", {"na_rep": "NA"}, None),
    ],
)
def test_a_csv_is_read_as_it_is_written_and_the_configuration_says_how(tmp_path, suffix, how, csv):
    scored, attributes = people()
    output = str(tmp_path / "my.yaml")
    write_configuration(
        written(tmp_path, "scored", scored, suffix, **how),
        [written(tmp_path, "attributes", attributes, suffix, **how)],
        output,
    )
    config = load_config(output, environ={})
    assert (config.scored.score, config.scored.label) == ("p_hat", "outcome")
    found = [
        table.csv and table.csv.model_dump(exclude_defaults=True)
        for table in (config.scored, *config.attributes)
    ]
    assert found == [csv, csv]


def test_large_numbers_are_written_so_that_the_file_loads(tmp_path):
    scored, attributes = people()
    days = pd.date_range("2024-01-01", periods=len(attributes)).strftime("%Y%m%d").astype(int)
    output = str(tmp_path / "my.yaml")
    write_configuration(
        written(tmp_path, "scored", scored),
        [written(tmp_path, "attributes", attributes.assign(day=[*days[:300], *days[:300]]))],
        output,
    )
    edges = {g.column: g.bins for g in load_config(output, environ={}).groups.columns}["day"]
    assert edges[0] <= 20240101
    assert edges[-1] > days[299]


def test_codes_with_zeros_are_no_numbers(tmp_path):
    scored, attributes = people()
    codes = [f"0{i % 30}" for i in range(len(attributes))]
    output = str(tmp_path / "my.yaml")
    write_configuration(
        written(tmp_path, "scored", scored),
        [written(tmp_path, "attributes", attributes.assign(area=codes))],
        output,
    )
    assert {g.column: g.bins for g in load_config(output, environ={}).groups.columns}["area"] is None


def test_one_file_for_both_tables_and_columns_in_both_are_told(tmp_path):
    scored, attributes = people()
    both = scored.merge(attributes, on=["household", "person_id"])
    output = tmp_path / "my.yaml"
    path = written(tmp_path, "both", both)
    with pytest.raises(ConfigurationError, match="is the scored table too"):
        write_configuration(path, [path], str(output))
    write_configuration(path, [written(tmp_path, "attributes", attributes)], str(output))
    assert '# - {column: "age"' in output.read_text()
    assert "also in" in output.read_text()


def test_decimal_commas_are_named(tmp_path):
    scored, attributes = people()
    path = written(tmp_path, "scored", scored[["household", "person_id", "p_hat"]], sep=";", decimal=",")
    with pytest.raises(ContractError, match=r"\['p_hat'\] have decimal commas"):
        write_configuration(path, [written(tmp_path, "attributes", attributes)], str(tmp_path / "o.yaml"))


def scored_and(folder, columns):
    """A scored table of 300 rows, and attributes of these columns; returns their paths and the words said."""
    rng = np.random.default_rng(3)
    key = [f"k{i:03d}" for i in range(300)]
    scored = pd.DataFrame({"id": key, "score": rng.random(300), "label": rng.integers(0, 2, 300)})
    scored.to_parquet(folder / "scored.parquet", index=False)
    pq.write_table(pa.table({"id": key, **columns}), folder / "attributes.parquet")
    paths = str(folder / "scored.parquet"), [str(folder / "attributes.parquet")]
    return "\n".join(write_configuration(*paths, str(folder / "o.yaml")))


def test_columns_of_which_no_job_makes_groups_are_left_out_with_the_reason(tmp_path):
    told = scored_and(tmp_path, {
        "sex": [1, 2] * 150,
        "visits": [[1], [2]] * 150,
        "place": [{"x": 1}, {"x": 2}] * 150,
        "photo": [b"a", b"b"] * 150,
        "nothing": pa.nulls(300),
        "line\nbreak": ["a", "b"] * 150,
        "${HOME}": ["a", "b"] * 150,
        "__faults": ["a", "b"] * 150,
    })  # fmt: skip
    groups = load_config(str(tmp_path / "o.yaml"), environ={}).groups.columns
    assert [group.column for group in groups] == ["sex"]
    assert "left out visits: list<" in told
    assert "left out photo: binary: no number, text, date or time" in told
    assert "left out __faults: names that begin with two underscores" in told


@pytest.mark.filterwarnings("error")
def test_what_is_infinite_moves_no_edge(tmp_path):
    scored_and(tmp_path, {"age": [np.inf, -np.inf, *np.linspace(0.5, 99.5, 298)]})
    (age,) = load_config(str(tmp_path / "o.yaml"), environ={}).groups.columns
    assert (age.bins[0], age.bins[-1]) == (0, 100)


def test_columns_that_differ_in_capitals_are_refused_as_the_jobs_do(tmp_path):
    with pytest.raises(ContractError, match="differ only in case"):
        scored_and(tmp_path, {"sex": [1, 2] * 150, "Sex": [1, 2] * 150})


def test_what_no_job_takes_is_not_written(tmp_path):
    table = pd.DataFrame({"split": ["a", "b", "c"], "score": [0.1, 0.2, 0.3], "sex": [1, 1, 2]})
    table[["split", "score"]].to_parquet(tmp_path / "s.parquet")
    table[["split", "sex"]].to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ConfigurationError, match="a column that the output adds"):
        write_configuration(
            str(tmp_path / "s.parquet"), [str(tmp_path / "a.parquet")], str(tmp_path / "new" / "o.yaml")
        )
    assert not (tmp_path / "new").exists()


def test_a_table_in_windows_1252_is_read_as_such(tmp_path):
    scored, attributes = people(60)
    attributes["région"] = ["é", "à"] * 30
    paths = written(tmp_path, "s", scored), [written(tmp_path, "a", attributes, encoding="windows-1252")]
    write_configuration(*paths, str(tmp_path / "o.yaml"))
    config = load_config(str(tmp_path / "o.yaml"), environ={})
    assert config.attributes[0].csv.encoding == "cp1252"
    assert "région" in [group.column for group in config.groups.columns]
