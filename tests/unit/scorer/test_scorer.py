"""A saved model without Spark: tables of every kind, one row at a time, and what is refused."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import threading
import time
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scorer_models import model, people, write

from mcspark.cli.score_local import score_file
from mcspark.core.cells.groups import Family, FittedGroups
from mcspark.core.model.stages import Stages, corrected, corrected_one
from mcspark.core.saved import SavedModel
from mcspark.errors import ConfigurationError, ContractError
from mcspark.scorer import Scorer
from mcspark.scorer.categories import FamilyCodes, java_text
from mcspark.scorer.columns import column_of


def by_definition(saved, table):
    """The groups by pandas and the stages by their plain way."""
    sex, age, job, code = (table[c] for c in ("SEX", "AGEP", "job", "OCCP"))
    inside = [
        sex == 1, sex == 2, age.between(0, 30, "left"), age.between(30, 60, "left"),
        age.between(60, 120, "left"), *(code // 100 == k for k in range(3)), job == "a", job == "b",
        (sex == 2) & (age >= 65),
    ]  # fmt: skip
    base = np.column_stack(inside).astype(bool)
    pairs = [base[:, i] & base[:, j] for i, j in saved.groups.pairs]
    return saved.calibrator.apply(table["score"].to_numpy(), np.column_stack([base, *pairs]))


@pytest.mark.parametrize("links", [(), ("identity",), ("logit",), ("logit", "identity", "logit")])
def test_tables_of_every_kind_and_single_rows_have_the_scores_of_the_definition(links):
    saved, table = model(links), people(3000)
    scorer = Scorer(saved)
    expected = by_definition(saved, table)
    arrow = pa.Table.from_pandas(table)
    tables = [
        table, table.convert_dtypes(), table.astype({"job": "category"}), arrow, arrow.to_batches()[0],
        pa.concat_tables([arrow.slice(0, 10), arrow.slice(10)]),
        {name: table[name].to_numpy() for name in table}, table.to_dict("list"),
        table.rename(columns=str.lower), table.astype({"SEX": "int8", "OCCP": "uint16"}),
    ]  # fmt: skip
    first = scorer.score(tables[0])
    assert np.abs(first - expected).max() <= 1e-15
    for other in tables[1:]:
        assert (scorer.score(other) == first).all()
    rows = arrow.to_pylist()
    assert [scorer.score_one(row) for row in rows] == first.tolist()
    assert [scorer.score_one(row) for row in rows] == first.tolist()  # remembered


def test_missing_and_unseen_values_are_in_no_group():
    scorer = Scorer(model(("identity",)))
    nobody = {"score": 0.4, "SEX": None, "AGEP": None, "OCCP": None, "job": None}
    for row in (
        nobody, {**nobody, "SEX": 9, "AGEP": 120, "OCCP": -1, "job": "never seen"},
        {**nobody, "AGEP": float("nan")}, {**nobody, "AGEP": -0.001},
    ):  # fmt: skip
        assert scorer.score_one(row) == scorer.score_one(nobody)
        assert scorer.score({k: [v] for k, v in row.items()})[0] == scorer.score_one(nobody)
    assert scorer.score_one({**nobody, "SEX": 1}) != scorer.score_one(nobody)
    # A column of pandas with gaps is of floats; the whole numbers in it are meant.
    gaps = pd.DataFrame([{**nobody, "SEX": 1.0}, nobody])
    assert scorer.score(gaps).tolist() == [scorer.score_one({**nobody, "SEX": 1}), scorer.score_one(nobody)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"score": 1.5}, "1 of 1 scores in column 'score' are missing or outside"),
        ({"score": None}, "missing or outside"),
        ({"score": float("nan")}, "missing or outside"),
        ({"SEX": "1"}, "column 'SEX' is text, but was whole numbers"),
        ({"SEX": 1.0}, "column 'SEX' is float, but was whole numbers"),
        ({"job": 3}, "column 'job' is whole, but was text"),
        ({"AGEP": True}, "numbers are needed"),
        ({"job": ["a"]}, "neither a number nor text"),
        ({"job": datetime.datetime(2024, 1, 1)}, "holds datetime; store text"),
    ],
)
def test_values_of_another_type_are_refused(change, words):
    row = {"score": 0.4, "SEX": 1, "AGEP": 30, "OCCP": 120, "job": "a"}
    with pytest.raises(ContractError, match=words):
        Scorer(model(("identity",))).score_one({**row, **change})


def test_a_column_that_is_not_there_is_named():
    row = {"score": 0.4, "SEX": 1, "AGEP": 30, "OCCP": 120}
    scorer = Scorer(model(("identity",)))
    with pytest.raises(ContractError, match="no column 'job'"):
        scorer.score_one(row)
    with pytest.raises(ContractError, match="no column 'job'"):
        scorer.score({k: [v] for k, v in row.items()})
    assert scorer.score_one({"sex": 1, "Score": 0.4, "agep": 30, "occp": 1, "JOB": None}) >= 0


@pytest.mark.parametrize(
    ("categories", "values", "codes"),
    [
        (("1.0", "0.5", "1.0E-4"), [1.0, 0.5, 1e-4, float("nan"), -0.0], [1, 2, 3, 0, 0]),
        (("0.7",), np.array([0.7, 0.1], dtype=np.float32), [1, 0]),
        (("1", "01", "1.50", "-0.0", "10000000.0"), [1.0, 1.5, -0.0, 1e7], [0, 0, 0, 0]),
        (("0.0", "1.0E7", "Infinity"), [-0.0, 1e7, float("inf")], [1, 2, 3]),
        (("true", "false"), [True, False, None], [1, 2, 0]),
        (("1.5", "2", "2.0"), [Decimal("1.50"), Decimal("2.00")], [1, 3]),
        (("1.5", "2", "2.0"), [Decimal("2"), Decimal("3")], [2, 0]),
        (("0.12345678901234567890",), [Decimal("0.12345678901234567890")], [1]),
        (("2024-02-29",), [datetime.date(2024, 2, 29), None], [1, 0]),
        ((5, -3), [5, -3, 4, None], [1, 2, 0, 0]),
        ((5, 10**12), [5, 10**12, 6], [1, 2, 0]),
    ],
)
def test_categories_are_values_as_spark_writes_them(categories, values, codes):
    family = FamilyCodes(Family("value", "c", categories, columns=("c",)))
    for table in ({"c": values}, pa.table({"c": values})):
        assert family.of(lambda name, t=table: column_of(t, name)).tolist() == codes


def test_decimal_quotients_texts_and_infinities():
    tenths = FamilyCodes(Family("divide", "c", (6, 2**63 - 1, 0), divide_by=0.1, columns=("c",)))
    found = tenths.of(lambda _: column_of({"c": ["0.6", " 0.65 ", "nan", "6D", "inf", None]}, "c"))
    assert found.tolist() == [1, 1, 0, 0, 0, 0]
    assert tenths.of(lambda _: column_of({"c": np.array([0.6], dtype=np.float32)}, "c")).tolist() == [1]


@pytest.mark.parametrize(
    ("number", "text"),
    [(1.0, "1.0"), (123456.789, "123456.789"), (9999999.0, "9999999.0"), (1e7, "1.0E7"), (0.001, "0.001"),
     (9.99e-4, "9.99E-4"), (-1.5e300, "-1.5E300"), (4.9e-324, "4.9E-324"), (float("inf"), "Infinity")],
)  # fmt: skip
def test_doubles_as_java_writes_them(number, text):
    assert java_text(number) == text or (number == 4.9e-324 and java_text(number) == "5.0E-324")


def test_one_score_is_corrected_as_many_are():
    rng = np.random.default_rng(3)
    score = np.concatenate([rng.random(500), [0.0, 1.0, 1e-9, 1 - 1e-9]])
    for size in (0.1, 30.0, 1000.0):
        change = rng.normal(0, size, len(score))
        for link in ("identity", "logit"):
            one = [corrected_one(*pair, link) for pair in zip(score.tolist(), change.tolist(), strict=True)]
            assert one == corrected(score, change, link).tolist()


def test_a_saved_model_is_read_and_a_changed_one_refused(tmp_path):
    saved, table = model(("logit",)), people(50)
    folder = write(saved, tmp_path)
    assert (Scorer.load(folder).score(table) == Scorer(saved).score(table)).all()
    text = (folder / "model.json").read_text()
    for wrong in (text[:-9], text.replace('"job"', '"Job"'), "[]", "{}", "\xff", text.replace("trees", "t")):
        (folder / "model.json").write_text(wrong)
        with pytest.raises(ContractError, match="not a model of this program"):
            Scorer.load(folder)
    with pytest.raises(ContractError, match="no readable model"):
        Scorer.load(tmp_path / "nothing")


def test_a_condition_that_needs_spark_is_named():
    family = Family("predicate", "round", (1,), where="ROUND(`a`) = 1", columns=("a",))
    groups = FittedGroups((family,))
    saved = SavedModel(
        "none", groups, Stages((), groups.names), {"scoreCol": "s", "predictionCol": "p"}, 0, None
    )
    with pytest.raises(ConfigurationError, match=r"group 'round', ROUND\(`a`\) = 1, uses ROUND"):
        Scorer(saved)


@pytest.mark.parametrize(("condition", "also"), [(False, set()), (True, {"sqlglot"})])
def test_numpy_is_enough_and_the_parser_for_conditions(condition, also, tmp_path):
    folder = write(model(("logit",), condition=condition), tmp_path)
    script = f"""
import sys
class Refused:
    def find_spec(self, name, path=None, target=None):
        allowed = name.split('.')[0] in sys.stdlib_module_names | {{'numpy', 'mcspark', *{also!r}}}
        if not allowed: raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Refused())
from mcspark.scorer import Scorer
scorer = Scorer.load({str(folder)!r})
row = {{"score": 0.4, "SEX": 2, "AGEP": 70, "OCCP": 120, "job": "a"}}
print(scorer.score({{k: [v] for k, v in row.items()}})[0] == scorer.score_one(row))
print(scorer.explain_one(row).to_dict()["calibrated"] == scorer.score_one(row))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def test_threads_share_a_scorer():
    scorer, rows = Scorer(model(("identity",))), people(300).to_dict("records")
    expected = [scorer.score_one(row) for row in rows]
    found = [[] for _ in range(4)]
    shared = Scorer(model(("identity",)))
    threads = [threading.Thread(target=lambda f=f: f.extend(map(shared.score_one, rows))) for f in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(f == expected for f in found)


def test_a_million_rows_take_seconds_and_one_row_far_less_than_a_millisecond():
    scorer, table = Scorer(model(("identity",))), pa.Table.from_pandas(people(200_000))
    started = time.process_time()
    scorer.score(table)
    assert time.process_time() - started < 1.0  # 0.1 on an idle core
    rows = table.slice(0, 2000).to_pylist()
    started = time.process_time()
    for row in rows:
        scorer.score_one(row)
    assert time.process_time() - started < 2000 * 500e-6


def test_a_parquet_file_is_scored_and_its_columns_are_kept(tmp_path):
    saved, table = model(("identity",)), people(1000)
    folder = write(saved, tmp_path)
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), source, row_group_size=300)
    assert score_file(str(folder), str(source), str(target)).startswith("1,000 rows scored")
    out = pd.read_parquet(target)
    assert list(out) == [*table, "calibrated_score"]
    assert (out["calibrated_score"].to_numpy() == Scorer(saved).score(table)).all()
    with pytest.raises(ConfigurationError, match="exists"):
        score_file(str(folder), str(source), str(target))
    with pytest.raises(ConfigurationError, match="has a column 'calibrated_score' already"):
        score_file(str(folder), str(target), str(tmp_path / "again.parquet"))
    table.loc[5, "score"] = 2.0
    table.to_parquet(source)
    with pytest.raises(ContractError, match="1 of 1000 scores"):
        score_file(str(folder), str(source), str(target), force=True)
    assert len(pd.read_parquet(target)) == 1000
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []
    assert json.loads((folder / "model.json").read_text())["method"] == "trees"
