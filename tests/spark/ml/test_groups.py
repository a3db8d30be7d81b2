"""Groups on Spark: which categories are chosen, and which rows are in them."""

from __future__ import annotations

from decimal import Decimal
from math import floor

import numpy as np
import pytest
from pyspark.sql import functions as F

from mcspark.core.cells.decimals import divided
from mcspark.core.cells.groups import Family, FittedGroups
from mcspark.errors import ContractError
from mcspark.ml.cells import shares
from mcspark.ml.cells.groups import GroupSet, unseen_categories, with_categories
from mcspark.ml.cells.signatures import category_name, place_among, with_signature, word_names

NAN = float("nan")


def fit(spark_frame, section, weight=None):
    plan = GroupSet.from_config(section)
    return plan.fit(with_categories(spark_frame, plan.families), weight)


def members(frame, fitted, key="id"):
    """Group name -> keys of its rows."""
    coded = with_signature(with_categories(frame, fitted.families), fitted)
    table = coded.select(key, *word_names(fitted)).orderBy(key).toPandas()
    inside = fitted.membership(table[word_names(fitted)].to_numpy(np.int64))
    return {name: table[key][inside[:, i]].tolist() for i, name in enumerate(fitted.names)}


def test_groups_hold_more_than_the_share_of_the_weight(spark):
    rows = [
        (i, c, w) for i, (c, w) in enumerate([("a", 4.0), ("b", 1.0), ("b", 1.0), ("c", 2.0), (None, 2.0)])
    ]
    frame = spark.createDataFrame(rows, "id int, race string, w double")
    section = {"min_share": 0.2, "columns": [{"column": "race"}]}
    # By rows b holds 2/5; by weight b and c hold exactly 0.2, which is not more than 0.2.
    assert fit(frame, section).names == ("race=b",)
    weighted = fit(frame, section, "w")
    assert weighted.names == ("race=a",)
    assert [name for name, _ in weighted.dropped] == ["race=b", "race=c"]
    assert fit(frame, {**section, "min_share": 0.19}, "w").names == ("race=a", "race=b", "race=c")
    assert weighted.families[0].seen == ("a", "b", "c")


def test_bins_are_closed_on_the_left_and_open_on_the_right(spark):
    ages = [-0.001, 0.0, 17.999, 18.0, 64.5, 65.0, 119.999, 120.0, None, NAN]
    frame = spark.createDataFrame(list(enumerate(ages)), "id int, AGEP double")
    fitted = fit(frame, {"min_share": 0, "columns": [{"column": "AGEP", "bins": [0, 18, 65, 120]}]})
    assert members(frame, fitted) == {"AGEP=[0,18)": [1, 2], "AGEP=[18,65)": [3, 4], "AGEP=[65,120)": [5, 6]}


def test_divide_by_rounds_down(spark):
    codes = [0, 99, 100, 199, -1, None]
    frame = spark.createDataFrame(list(enumerate(codes)), "id int, OCCP int")
    fitted = fit(frame, {"min_share": 0, "columns": [{"column": "OCCP", "divide_by": 100}]})
    assert members(frame, fitted) == {"OCCP/100=-1": [4], "OCCP/100=0": [0, 1], "OCCP/100=1": [2, 3]}


def test_what_has_no_whole_quotient_of_64_bits_is_in_no_group(spark):
    doses = [float("inf"), float("-inf"), 1e300, -1e19, NAN, 9.3e18, -9.3e18, 9e18, 25.0]
    frame = spark.createDataFrame(list(enumerate(doses)), "id int, dose double")
    fitted = fit(frame, {"min_share": 0, "columns": [{"column": "dose", "divide_by": 1}]})
    assert members(frame, fitted) == {"dose/1=25": [8], "dose/1=9000000000000000000": [7]}


@pytest.mark.parametrize("kind", ["double", "float", "decimal(6,3)", "string"])
def test_numbers_are_the_decimals_that_they_are_written_as(spark, kind):
    """The doubles 0.3 / 0.1, 0.6 / 0.1 and 0.7 / 0.1 are below 3, 6 and 7, and the float 0.7 is below 0.7."""
    values = [i / 10 for i in range(-12, 13)] + [0.699, 0.7001, 12.345]
    rows = [(i, f"{v:g}") for i, v in enumerate(values)]
    frame = spark.createDataFrame(rows, "id int, t string").selectExpr("id", f"cast(t as {kind}) as x")
    section = {"min_share": 0, "columns": [{"column": "x", "divide_by": 0.1}]}
    expected = [floor(Decimal(text) / Decimal("0.1")) for _, text in rows]
    stored = np.array([float(t) for _, t in rows], dtype=np.float32 if kind == "float" else np.float64)
    if kind.startswith("decimal"):  # 0.7001 has too many digits
        expected[-2] = 7
    assert divided(stored, 0.1).tolist() == expected
    found = with_categories(frame, GroupSet.from_config(section).families).orderBy("id")
    assert [row[category_name(0)] for row in found.collect()] == expected
    if kind != "string":
        bins = {"min_share": 0, "columns": [{"column": "x", "bins": [0, 0.3, 0.7, 0.9, 100]}]}
        inside = members(frame, fit(frame, bins))
        assert [values[i] for i in inside["x=[0.7,0.9)"]] == [0.7, 0.8, 0.7001]
    where = {"min_share": 0, "predicates": [{"name": "p", "where": "x = 0.7 OR x IN (0.3, -0.1)"}]}
    assert [values[i] for i in members(frame, fit(frame, where))["p"]][:3] == [-0.1, 0.3, 0.7]


def test_a_float_is_in_the_category_that_a_double_made(spark):
    rows = spark.createDataFrame([(0, 0.7), (1, -0.0), (2, 0.0), (3, 100.0)], "id int, dose double")
    fitted = fit(rows, {"min_share": 0, "columns": [{"column": "dose"}]})
    expected = {"dose=0.0": [1, 2], "dose=0.7": [0], "dose=100.0": [3]}
    assert members(rows, fitted) == expected
    assert members(rows.withColumn("dose", F.col("dose").cast("float")), fitted) == expected


def test_a_missing_attribute_is_in_no_group(spark):
    """Null, and NaN, which is how other tools write null."""
    rows = [(0, 1.0, 50.0, 70.0), (1, NAN, NAN, NAN), (2, None, None, None), (3, 2.0, 150.0, 10.0)]
    frame = spark.createDataFrame(rows, "id int, race double, job double, age double")
    section = {
        "min_share": 0,
        "columns": [{"column": "race"}, {"column": "job", "divide_by": 100}],
        "predicates": [
            {"name": "old", "where": "age >= 65"},
            {"name": "not young", "where": "NOT age < 20"},
            {"name": "no age", "where": "age IS NULL"},
        ],
    }
    fitted = fit(frame, section)
    assert members(frame, fitted) == {
        "race=1.0": [0], "race=2.0": [3], "job/100=0": [0], "job/100=1": [3],
        "old": [0], "not young": [0], "no age": [1, 2],
    }  # fmt: skip
    untouched = with_categories(frame, fitted.families).where("id = 1").head()
    assert np.isnan(untouched["age"])
    assert untouched["race"] != untouched["race"]


def test_predicates_are_groups_whatever_their_share(spark):
    frame = spark.createDataFrame(
        [(i, i % 2 + 1, 20 + i) for i in range(60)], "id int, SEX int, `the age` int"
    )
    section = {
        "min_share": 0.5,
        "predicates": [
            {"name": "two women", "where": "SEX = 2 AND `the age` >= 77"},
            {"name": "nobody", "where": "SEX = 3"},
        ],
    }
    fitted = fit(frame, section)
    assert members(frame, fitted) == {"two women": [57, 59], "nobody": []}
    assert fitted.columns == ("SEX", "the age")


def test_intersections_of_two(spark):
    rows = [(i, "ab"[i % 2], "xy"[i // 5]) for i in range(10)] + [(10, "a", None)]
    frame = spark.createDataFrame(rows, "id int, one string, two string")
    section = {"min_share": 0.19, "columns": [{"column": "one"}, {"column": "two"}], "intersections": 2}
    fitted = fit(frame, section)
    assert fitted.names[4:] == ("one=a & two=x", "one=b & two=y")
    found = members(frame, fitted)
    assert found["one=a & two=x"] == [0, 2, 4]
    assert found["one=b & two=y"] == [5, 7, 9]
    # The same from the table of sums, where the weight is a sum.
    plan = GroupSet.from_config(section)
    coded = with_categories(frame, plan.families)
    sums = coded.groupBy(category_name(0), category_name(1)).agg(F.count(F.lit(1)).alias("n"))
    assert plan.fit(sums, "n") == fitted


def test_signatures_of_several_words(spark):
    """Forty columns of ten values are 160 bits: three words."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 10, (300, 40))
    names = [f"c{i}" for i in range(40)]
    frame = spark.createDataFrame(
        [(i, *map(int, row)) for i, row in enumerate(values)],
        ", ".join(["id int", *[f"{n} int" for n in names]]),
    )
    fitted = fit(frame, {"min_share": 0, "columns": [{"column": n} for n in names]})
    assert fitted.n_words == 3
    found = members(frame, fitted)
    for i, name in enumerate(names):
        for c in range(10):
            assert found[f"{name}={c}"] == np.flatnonzero(values[:, i] == c).tolist()


def test_names_of_columns_in_other_letters_mean_the_same(spark):
    fitted = fit(spark.createDataFrame([(0, 1), (1, 2)], "id int, Sex int"),
                 {"min_share": 0, "columns": [{"column": "Sex"}]})  # fmt: skip
    other = spark.createDataFrame([(7, 2), (8, 1)], "id int, SEX int")
    assert members(other, fitted) == {"Sex=1": [8], "Sex=2": [7]}


@pytest.mark.parametrize(
    ("chosen_as", "given_as"), [("int", "string"), ("string", "int"), ("bigint", "double")]
)
def test_another_type_than_the_groups_were_chosen_with_is_refused(spark, chosen_as, given_as):
    """The text '01' is not the number 1: nothing is cast."""
    frame = spark.createDataFrame([(0, 1), (1, 2)], "id int, race int")
    chosen = fit(frame.withColumn("race", F.col("race").cast(chosen_as)),
                 {"min_share": 0, "columns": [{"column": "race"}]})  # fmt: skip
    other = frame.withColumn("race", F.col("race").cast(given_as))
    with pytest.raises(ContractError, match="when the groups were chosen"):
        with_categories(other, chosen.families)
    assert members(frame.withColumn("race", F.col("race").cast(chosen_as)), chosen)["race=1"] == [0]


def test_whole_numbers_of_any_width_are_one_type(spark):
    frame = spark.createDataFrame([(0, 1), (1, 2)], "id int, race int")
    fitted = fit(frame, {"min_share": 0, "columns": [{"column": "race"}]})
    for kind in ("tinyint", "bigint"):
        assert members(frame.withColumn("race", F.col("race").cast(kind)), fitted)["race=2"] == [1]


def test_unseen_categories_are_counted_and_in_no_group(spark):
    seen = spark.createDataFrame(
        [(0, "a", 5.0), (1, "a", 5.0), (2, "rare", 250.0)], "id int, c string, x double"
    )
    section = {
        "min_share": 0.4,
        "columns": [{"column": "c"}, {"column": "x", "divide_by": 100}],
        "predicates": [{"name": "p", "where": "x > 1"}],
    }
    fitted = fit(seen, section)
    rows = [(0, "a", 1.0), (1, "new", 950.0), (2, "new", None), (3, None, NAN), (4, "rare", 5.0)]
    new = spark.createDataFrame(rows, "id int, c string, x double")
    coded = with_categories(new, fitted.families)
    assert unseen_categories(coded, fitted) == {"c": 2, "x": 1}
    assert members(new, fitted)["c=a"] == [0]
    assert unseen_categories(with_categories(seen, fitted.families), fitted) == {}


def test_a_column_that_was_always_null_has_seen_nothing(spark):
    fitted = fit(spark.createDataFrame([(0, None, "a")], "id int, c string, d string"),
                 {"min_share": 0, "columns": [{"column": "c"}, {"column": "d"}]})  # fmt: skip
    coded = with_categories(
        spark.createDataFrame([(0, "x", "a")], "id int, c string, d string"), fitted.families
    )
    assert unseen_categories(coded, fitted) == {"c": 1}


def test_two_groups_of_one_name_are_refused(spark):
    frame = spark.createDataFrame([(0, 1)], "id int, SEX int")
    section = {
        "min_share": 0,
        "columns": [{"column": "SEX"}],
        "predicates": [{"name": "SEX=1", "where": "SEX = 1"}],
    }
    with pytest.raises(ContractError, match="SEX=1"):
        fit(frame, section)


def test_too_many_categories_name_the_column(spark, monkeypatch):
    monkeypatch.setattr(shares, "MAX_CATEGORIES", 20)
    frame = spark.range(50).selectExpr("id", "id % 2 AS sex", "id AS serial")
    with pytest.raises(ContractError, match="'serial' has over 20"):
        fit(frame, {"columns": [{"column": "sex"}, {"column": "serial"}]})


def test_decimals_and_booleans_are_categories_as_they_are_read(spark, ansi):
    frame = spark.createDataFrame(
        [(0, "1.50", True), (1, "2.00", False), (2, "1.5", None)], "id int, x string, b boolean"
    )
    for scale in (2, 3, 18):
        table = frame.select("id", "b", F.col("x").cast(f"decimal(38,{scale})").alias("price"))
        fitted = fit(table, {"min_share": 0, "columns": [{"column": "price"}, {"column": "b"}]})
        expected = {"price=1.5": [0, 2], "price=2.0": [1], "b=true": [0], "b=false": [1]}
        assert members(table, fitted) == expected
    # No two decimals become one, however many places they have.
    text = [(0, "0.123456789012345678"), (1, "0.123456789012345679"), (2, "99999999999999999999.9")]
    long = spark.createDataFrame(text, "id int, x string").select(
        "id", F.expr("cast(x as decimal(38,18)) AS price")
    )
    fitted = fit(long, {"min_share": 0, "columns": [{"column": "price"}]})
    assert sorted(members(long, fitted).values()) == [[0], [1], [2]]


def test_a_column_that_is_no_longer_boolean_is_refused(spark):
    frame = spark.createDataFrame([(0, True), (1, False)], "id int, b boolean")
    fitted = fit(frame, {"min_share": 0, "columns": [{"column": "b"}]})
    with pytest.raises(ContractError, match=r"column 'b' is int, but was text"):
        with_categories(frame.selectExpr("id", "cast(b as int) AS b"), fitted.families)
    numbers = fit(
        frame.selectExpr("id", "cast(b as int) AS b"), {"min_share": 0, "columns": [{"column": "b"}]}
    )
    with pytest.raises(ContractError, match=r"column 'b' is boolean, but was whole numbers"):
        with_categories(frame, numbers.families)


def test_bins_need_numbers(spark):
    frame = spark.createDataFrame([(0, True)], "id int, b boolean")
    with pytest.raises(ContractError, match="'b' need numbers"):
        fit(frame, {"columns": [{"column": "b", "bins": [0, 1, 2]}]})


def test_text_that_is_no_number_is_in_no_bin(spark):
    frame = spark.createDataFrame([(0, "17"), (1, "x"), (2, None), (3, "40.5")], "id int, age string")
    for ansi in ("false", "true"):
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        try:
            fitted = fit(frame, {"min_share": 0, "columns": [{"column": "age", "bins": [0, 18, 65]}]})
            assert members(frame, fitted) == {"age=[0,18)": [0], "age=[18,65)": [3]}
        finally:
            spark.conf.unset("spark.sql.ansi.enabled")


def test_no_weight_at_all_is_refused(spark):
    frame = spark.createDataFrame([(0, 1, 0.0)], "id int, SEX int, w double")
    with pytest.raises(ContractError, match="no labelled row has any weight"):
        fit(frame, {"columns": [{"column": "SEX"}]}, "w")


def test_signature_of_no_family(spark):
    groups = FittedGroups((Family("value", "c", (), columns=("c",)),))
    frame = with_categories(spark.createDataFrame([(0, "a")], "id int, c string"), groups.families)
    assert with_signature(frame, groups).head()["__signature_0"] == 0


@pytest.mark.parametrize("far", [4, 5000])
def test_whole_numbers_find_their_group_wherever_they_lie(spark, ansi, far):
    """Near each other by a table, far apart by a list; others, whatever their size, are in none."""
    known = [(i, c) for i, c in enumerate([-3, 0, 7, 7 + far])]
    section = {"min_share": 0.0, "columns": [{"column": "c"}]}
    fitted = fit(spark.createDataFrame(known, "id int, c bigint"), section)
    others = [-(2**63), -4, -2, 1, 6, 8, 7 + far + 1, 2**31, 2**32 - 3, 2**63 - 1, None]
    rows = [*known, *((10 + i, c) for i, c in enumerate(others))]
    found = members(spark.createDataFrame(rows, "id int, c bigint"), fitted)
    assert found == {"c=-3": [0], "c=0": [1], "c=7": [2], f"c={7 + far}": [3]}


@pytest.mark.parametrize(
    "categories",
    [
        (*(f"s{i}" for i in range(500)), "", "it's", 'a "b" \\n \\', "ü\n", "null", "[", "🙂"),
        tuple(range(-3_000_000_000, 3_000_000_000, 13_000_001)),
    ],
)
def test_the_place_among_many_categories_is_looked_up(spark, capsys, categories):
    others = [None, "S1", "s500", " "] if isinstance(categories[0], str) else [None, 5, 2**62]
    kind = "string" if isinstance(categories[0], str) else "long"
    frame = spark.createDataFrame([(c,) for c in [*others, *categories]], f"c {kind}")
    found = frame.select(F.coalesce(place_among(F.col("c"), categories), F.lit(0)).alias("place"))
    places = [row.place for row in found.collect()]
    assert places == [0] * len(others) + list(range(1, len(categories) + 1))
    found.explain()
    assert "from_json" not in capsys.readouterr().out  # the constants are parsed before any row is read
