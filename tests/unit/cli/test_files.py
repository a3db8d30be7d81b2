"""Files of the commands that start no Spark: what they read, and what they leave at the target."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scorer_models import model, people, write
from typer.testing import CliRunner

from mcspark.cli.app import app
from mcspark.cli.files import free_place, written_aside
from mcspark.cli.score_local import score_file
from mcspark.errors import ConfigurationError, ContractError
from mcspark.scorer import Scorer

SAVED = model(("identity",))
ROW = {"score": 0.3, "SEX": 1, "AGEP": 40, "OCCP": 5, "job": "a"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a model, some people and a command line in it."""
    monkeypatch.chdir(tmp_path)
    write(SAVED, tmp_path)
    table = pa.Table.from_pandas(people(100), preserve_index=False)
    pq.write_table(table, "people.parquet")
    return table


def run(*words):
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize("name", ["out", "file:{}/out", "file://{}/out", "a 'b' [c] {{d}} %20*?/out"])
def test_a_target_may_have_any_name_and_an_address(here, tmp_path, name):
    target = name.format(tmp_path)
    (tmp_path / "a 'b' [c] {d} %20*?").mkdir()
    for path, words in (
        (f"{target}.parquet", ["score-local", "model", "people.parquet"]),
        (f"{target}.json", ["export", "model", "--to", "json", "-o"]),
        (f"{target}.html", ["diff", "model", "file:model", "--html"]),
    ):
        found = run(*words, path)
        assert found.exit_code == 0, found.output
        assert Path(path.removeprefix("file:")).stat().st_size > 1000


def test_what_is_at_the_target_stays_and_a_link_stays_a_link(here, tmp_path):
    Path("dangling").symlink_to("nowhere")
    (tmp_path / "folder").mkdir()
    os.mkfifo("pipe")
    Path("theirs").write_text("theirs")
    Path("link").symlink_to("theirs")
    for target, words in (
        ("dangling", "is a link to nothing"), ("folder", "is a folder; name a file"),
        ("pipe", "is neither a file nor a folder"), ("", "is a folder; name a file"),
        ("x" * 300, "cannot be written (File name too long); name another file"),
        ("people.parquet/x", "there is no folder"),
    ):  # fmt: skip
        for force in (False, True):
            with pytest.raises(ConfigurationError) as error:
                score_file("model", "people.parquet", target, force=force)
            assert words in str(error.value)
    for target in ("theirs", "link"):
        with pytest.raises(ConfigurationError, match="replace it with --force"):
            score_file("model", "people.parquet", target)
    score_file("model", "people.parquet", "link", force=True)
    assert Path("link").readlink() == Path("theirs")
    assert pq.read_metadata("theirs").num_rows == 100
    assert Path("dangling").readlink() == Path("nowhere")
    assert list(tmp_path.glob(".*writing*")) == []


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_somebody_writes_meanwhile_stays(tmp_path, monkeypatch, links):
    if not links:  # as on some network drives
        monkeypatch.setattr(Path, "hardlink_to", lambda *_: (_ for _ in ()).throw(PermissionError(1, "no")))
    place = free_place(str(tmp_path / "out"), force=False)
    with (
        pytest.raises(ConfigurationError, match="somebody else meanwhile"),
        written_aside(place, force=False) as aside,
    ):
        aside.write_text("ours")
        place.write_text("theirs")
    assert place.read_text() == "theirs"
    place.unlink()
    with written_aside(place, force=False) as aside:
        aside.write_text("ours")
    assert place.read_text() == "ours"
    assert list(tmp_path.iterdir()) == [place]


def test_a_disk_that_is_full_is_told_and_leaves_nothing(tmp_path):
    with (
        pytest.raises(ConfigurationError, match="No space left on device"),
        written_aside(tmp_path / "out", force=True),
    ):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_the_rows_of_a_folder_are_those_of_all_its_files_and_never_of_an_output(here, tmp_path):
    for sex in (1, 2):
        Path(f"hive/SEX={sex}").mkdir(parents=True)
        part = here.filter(pa.compute.equal(here["SEX"], sex))
        pq.write_table(part.drop_columns(["SEX"]), f"hive/SEX={sex}/part.parquet")
    score_file("model", "hive", "out.parquet")
    found = pq.read_table("out.parquet")
    assert (found["calibrated_score"].to_numpy() == Scorer(SAVED).score(found)).all()
    assert sorted(found["SEX"].unique().to_pylist()) == [1, 2]
    # A file of such a folder has the columns that it has, as in Spark.
    Path("one/job=a").mkdir(parents=True)
    pq.write_table(here, "one/job=a/all.parquet")
    score_file("model", "one/job=a/all.parquet", "same.parquet")
    assert pq.read_table("same.parquet").drop_columns(["calibrated_score"]) == here
    for target in ("hive/out.parquet", "hive/SEX=1/out.parquet"):
        with pytest.raises(ConfigurationError, match="is in the folder of the rows"):
            score_file("model", "hive", target)


def test_rows_that_are_none_are_refused(here, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "two").mkdir()
    pq.write_table(here, "two/a.parquet")
    pq.write_table(here.drop_columns(["SEX"]), "two/b.parquet")
    (tmp_path / "types").mkdir()
    other = here.set_column(2, "AGEP", here["AGEP"].cast("string")).set_column(4, "job", pa.nulls(100))
    other = other.set_column(1, "SEX", here["SEX"].cast("int32")).set_column(
        3, "OCCP", here["OCCP"].cast("double")
    )
    pq.write_table(here, "types/a.parquet")
    pq.write_table(other, "types/b.parquet")
    Path("text.csv").write_text("a,b\n1,2\n")
    for source, words in (
        ("nowhere", "nowhere: nothing is there"), ("", "nothing is there"), ("empty", "empty: no file"),
        ("two", r"two: a.parquet and b.parquet differ in the column\(s\) SEX"),
        ("types", r"types: a.parquet and b.parquet differ in the column\(s\) AGEP;"),
        ("text.csv", "text.csv: cannot be read as Parquet"), ("x" * 300, "cannot be read"),
    ):  # fmt: skip
        with pytest.raises(ContractError, match=words):
            score_file("model", source, "out.parquet")
        found = run("diff", "model", "model", "--rows", source or " ")
        assert found.exit_code == 3
        found = run("explain", "model", "--key", '{"SEX": 1}', "--input", source or " ")
        assert found.exit_code == 3
    assert not Path("out.parquet").exists()
    # Numbers of another width, and a column without any value, are what they are in the other file.
    pq.write_table(other.set_column(2, "AGEP", here["AGEP"].cast("double")), "types/b.parquet")
    score_file("model", "types", "out.parquet")
    found = pq.read_table("out.parquet").slice(100)
    rows = [row | {"job": None} for row in here.to_pylist()]
    assert found["calibrated_score"].to_pylist() == [Scorer(SAVED).score_one(row) for row in rows]


@pytest.mark.parametrize("command", ["show", "history", "score-local", "report", "diff", "explain", "export"])
def test_a_path_that_the_system_refuses_is_a_sentence(here, command):
    rest = {
        "score-local": ["people.parquet", "out"], "report": ["-o", "out"], "diff": ["model"],
        "explain": ["--row", "{}"], "export": ["--to", "json"],
    }  # fmt: skip
    found = run(command, "x" * 300, *rest.get(command, []))
    assert found.exit_code in (2, 3)
    assert isinstance(found.exception, SystemExit)
    assert found.stderr.startswith("mcspark: ")


def test_a_name_that_is_no_text_is_a_sentence_and_leaves_nothing(here, tmp_path):
    odd = os.fsdecode(b"m\xff")
    Path("model").rename(odd)
    Path("other").symlink_to(odd)
    for words in (
        ["diff", odd, "other", "--html", "page"], ["export", "other", "--to", "json", "-o", odd + ".json"],
        ["export", "other", "--to", "sql", "--dialect", "sqlite", "--table", "t", "--key", odd, "-o", "page"],
    ):  # fmt: skip
        found = run(*words)
        assert (found.exit_code, type(found.exception)) == (2, SystemExit)
        assert "which is no text; rename it" in found.stderr
    assert not Path("page").exists()


def test_a_terminal_without_the_letters_is_a_sentence(here):
    found = CliRunner(charset="latin-1").invoke(app, ["explain", "model", "--row", json.dumps(ROW)])
    assert (found.exit_code, type(found.exception)) == (2, SystemExit)
    assert "the output is latin-1, which has no " in found.stderr
    assert "set PYTHONIOENCODING=utf-8" in found.stderr


def test_a_run_that_is_killed_leaves_nothing_under_the_name(here, tmp_path):
    code = "\n".join(
        [
            "import os, signal, mcspark.cli.score_local as s",
            "s.batches_of = lambda rows: (os.kill(os.getpid(), signal.SIGKILL) for _ in (1,))",
            "s.score_file('model', 'people.parquet', 'out.parquet')",
        ]
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert not Path("out.parquet").exists()
    score_file("model", "people.parquet", "out.parquet")
    assert pq.read_metadata("out.parquet").num_rows == 100


def test_a_key_is_found_in_other_capitals_and_a_column_by_its_own_first(here):
    keyed = here.append_column("Id", pa.array(np.arange(100)))
    keyed = keyed.append_column("sex", pa.array([9] * 100))  # beside SEX
    pq.write_table(keyed, "keyed.parquet")
    row = keyed.slice(7, 1).to_pylist()[0]
    found = run("explain", "model", "--key", '{"id": 7}', "--input", "keyed.parquet", "--format", "json")
    assert json.loads(found.stdout)["calibrated"] == Scorer(SAVED).score_one(row)
    for key, words in (
        ('{"nokey": 1}', "keyed.parquet: the table has no column 'nokey'"),
        (f'{{"Id": {2**70}}}', "the key 'Id' is int64 there"), ('{"Id": [1]}', "the key 'Id' is int64"),
        ('{"Id": 1000}', "keyed.parquet: there is no row with the key"),
    ):  # fmt: skip
        found = run("explain", "model", "--key", key, "--input", "keyed.parquet")
        assert (found.exit_code, words in found.stderr) == (3, True), found.stderr
    found = run("explain", "model", "--key", '{"Id": 1}', "--input", "keyed.parquet", "--score", "AGEP")
    assert found.exit_code == 3 and "column 'AGEP' are missing or outside [0, 1]" in found.stderr
