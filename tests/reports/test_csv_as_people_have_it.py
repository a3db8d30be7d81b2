"""CSV files as spreadsheets, statistics packages and databases write them: right values, or a sentence."""

from __future__ import annotations

import gzip

import pandas as pd
import pytest

from mcspark.config import AttributeTable, ScoredTable
from mcspark.data.formats.csv_reader import as_numbers
from mcspark.data.rows.contract import FAULTS, apply_row_rules
from mcspark.data.rows.csv_faults import faults_told
from mcspark.data.rows.keys import supersede
from mcspark.data.rows.row_report import inspect, refuse_rejected
from mcspark.data.tables import read_table
from mcspark.errors import ContractError


@pytest.fixture
def read(spark, tmp_path):
    """Rows of a CSV of this content, with the columns that must be numbers."""

    def rows(content: str | bytes, numbers=(), name="part.csv", **options):
        data = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        table = AttributeTable(path=str(tmp_path), key=["k"], format="csv", csv=options or None)
        with faults_told(spark, [(table, numbers)]):
            return sorted(map(tuple, as_numbers(read_table(spark, table), numbers, "csv").collect()))

    return rows


def test_a_line_break_inside_quotes_is_part_of_the_value(read):
    assert read('k,a\n1,"x\ny"\n2,"z\r\n,"\n') == [("1", "x\ny"), ("2", "z\r\n,")]


def test_a_compressed_file_has_its_own_header(read):
    assert read("k,a\n01,x\n", name="part.csv.gz") == [("01", "x")]


def test_semicolons_tabs_other_quotes_and_encodings_are_options(read):
    assert read("k;a\n1;'é;'\n".encode("cp1252"), delimiter=";", quote="'", encoding="windows-1252") == [
        ("1", "é;")
    ]
    assert read("k\ta\n1\té\n".encode("utf-16"), delimiter="\t", encoding="utf-16") == [("1", "é")]
    assert read('k,a\n1,"x\\"y"\n', escape="\\") == [("1", 'x"y')]
    assert read('k,a\n1,x"y\n', quote=None) == [("1", 'x"y')]


def test_missing_values_are_null_by_every_usual_text_and_by_ones_own(read):
    assert read("k,a\n1,NA\n2,\n3,NULL\n4,nan\n5,none\n") == [
        *((k, None) for k in "1234"), ("5", "none")
    ]  # fmt: skip
    assert read("k,a\n1,NA\n2,-9\n", null_values=["-9"]) == [("1", "NA"), ("2", None)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("k,a,b\n1,2\n3,4,5\n6\n", r"2 line\(s\) with not 3 values.*'1,2' in file:.*part\.csv"),
        ("k,a,b\n1,Smith, Jones,2\n", r"1 line\(s\) with not 3 values.*Smith, Jones"),
        ('k,a,b\n1,"x,2\n3,4,5\n', r"1 line\(s\) with not 3 values, or a quote that is not closed"),
        ('k,a,b\n1,2,"x\n3,4,5\n6,7,8\n', r"1 line\(s\) with a quote that is not closed"),
        ('k,a,b\n1,"x"y,2\n', r"1 line\(s\) with a quote inside quotes that is not escaped"),
        (b"k,a,b\n1,2,3\n4,5,\xe9\n", r"byte 16 is not utf-8; set csv: \{encoding"),
        (
            b"k,a,b\n" + b"1,2,3\n" * 50_000 + b"4,5,\xe9\n",
            r"1 line\(s\) with bytes that are not utf-8; set csv.encoding",
        ),
        ("k;a;b\n1;2;3\n", r"the delimiter seems to be ';'"),
    ],
)
def test_lines_that_do_not_fit_are_refused_with_their_text_and_count(read, content, words):
    with pytest.raises(ContractError, match=words):
        read(content)


def test_ages_with_decimal_commas_and_words_are_refused_and_null_values_mend_it(read):
    text = "k;age\n1;34,5\n2;17,0\n3;unknown\n"
    with pytest.raises(
        ContractError, match=r"(?s)3 line\(s\) with age is no number.*2 value\(s\) of age have"
    ):
        read(text, ["age"], delimiter=";")
    assert read("k,age\n1,34.5\n3,unknown\n", ["age"], null_values=["unknown"]) == [("1", 34.5), ("3", None)]


@pytest.mark.parametrize("what", ["score", "label", "weight"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0,25", "; 30 {}s have a decimal comma, such as '0,25': write 0.25"),
        (",5 ", "; 30 {}s have a decimal comma, such as ',5': write .5"),
        ("25 %", "; 30 {}s are written as percent: divide by 100, without the sign"),
        ("high", None),
    ],
)
def test_a_number_in_another_spelling_is_told_as_what_it_is(spark, tmp_path, what, text, words):
    frame = pd.DataFrame({"k": range(40), "score": 0.5, "label": 1, "weight": 2}).astype(object)
    frame.loc[:29, what] = text
    frame.to_csv(tmp_path / "part.csv", index=False, sep=";")
    scored = ScoredTable(
        path=str(tmp_path), key=["k"], label="label", weight="weight", format="csv", csv={"delimiter": ";"}
    )
    report = inspect(apply_row_rules(read_table(spark, scored), scored), scored)
    with pytest.raises(ContractError) as refused:
        refuse_rejected(report, source="s")
    assert f"30 of 40 rows rejected (75.00%, allowed 1.00%): {what}_not_numeric 30" in str(refused.value)
    told = str(refused.value).split("_not_numeric 30")[1].split("; correct the rows")[0]
    assert told == words.format(what) if words else "write" not in told


@pytest.mark.parametrize(
    ("texts", "latest"),
    [
        (["9", "10", "2"], "10"),
        (["9007199254740993", "9007199254740992", ""], "9007199254740993"),
        (["2026-01-31", "2026-02-01", "2025-12-31"], "2026-02-01"),
        (["2026-01-31T10:00:00+02:00", "2026-01-31 09:00:00Z", "NA"], "2026-01-31 09:00:00Z"),
        (["31.01.2026", "01.02.2026", ""], None),
        (["2026-01-31", "20260201", ""], None),
    ],
)
def test_the_latest_row_of_a_csv_is_latest_by_value(spark, tmp_path, texts, latest):
    table = pd.DataFrame({"k": "a", "score": 0.5, "at": texts})
    table.to_csv(tmp_path / "part.csv", index=False)
    scored = ScoredTable(path=str(tmp_path), key=["k"], label=None, format="csv", dedupe={"latest_by": "at"})
    rows = apply_row_rules(read_table(spark, scored), scored, keep=["at"])

    def kept():
        with faults_told(spark, [(scored, [])]):
            return [row["at"] for row in supersede(rows, ["k"], "at").where(f"{FAULTS} = 0").collect()]

    if latest is None:
        with pytest.raises(ContractError, match="at is text and orders nothing in time"):
            kept()
    else:
        assert kept() == [latest]


def test_a_job_on_csv_tables_refuses_and_publishes_nothing(world, people):
    for name, columns in (
        ("s", ["house", "person", "score", "label", "w"]),
        ("a", ["house", "person", "sex", "age", "job"]),
    ):
        people[columns].to_csv(world.root / f"{name}.csv", index=False)
    with (world.root / "a.csv").open("a") as file:
        file.write("x,1,2,old,b\n")
    key = ["house", "person"]
    sections = {
        "scored": {"path": str(world.root / "s.csv"), "format": "csv", "key": key, "weight": "w"},
        "attributes": [{"path": str(world.root / "a.csv"), "format": "csv", "key": key}],
        "groups": {"columns": [{"column": "age", "bins": [0, 40, 120]}], "predicates": []},
    }
    world.refused(r"a\.csv: 1 line\(s\) with age is no number, such as 'x,1,2,old,b'", 3, "audit", **sections)


def test_codes_that_java_takes_for_numbers_are_no_numbers(read, spark):
    """``45D`` and ``0x1p-2`` are codes; only what people write as numbers is one."""
    told = r"1 line\(s\) with a is no number, such as '1,45D'"
    with pytest.raises(ContractError, match=told):
        read("k,a\n1,45D\n2,44\n", numbers=["a"])
    assert read("k,a\n1, +.5e-1 \n2,-3.\n", numbers=["a"]) == [("1", 0.05), ("2", -3.0)]
    scored = ScoredTable(path="x", key=["k"], weight="w", format="csv")
    texts = [
        ("a", "0.5d", "1", "1"),
        ("b", "0.5", "1F", "1"),
        ("c", "0.5", "1", "0x1p0"),
        ("d", "5e-1", "", "1"),
    ]
    ruled = apply_row_rules(
        spark.createDataFrame(texts, "k string, score string, label string, w string"), scored
    )
    assert inspect(ruled, scored).reasons == {
        "score_not_numeric": 1, "label_not_numeric": 2, "weight_not_numeric": 1
    }  # fmt: skip


def test_a_table_of_many_columns_is_read(read):
    columns = [f"c{i}" for i in range(1200)]
    table = read(f"k,{','.join(columns)}\n1,{','.join(['x'] * 1200)}\n")
    assert table == [("1", *["x"] * 1200)]


def test_a_column_that_is_a_partition_folder_too_is_named(spark, tmp_path):
    (tmp_path / "st=01").mkdir()
    (tmp_path / "st=01" / "part.csv").write_text("k,St,a\n1,99,x\n")
    with pytest.raises(
        ContractError, match="St is a column of its files and the name of its partition folders"
    ):
        read_table(spark, AttributeTable(path=str(tmp_path), key=["k"], format="csv"))
