import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcspark.predicates import check_predicate

ACCEPTED = [
    ("SEX = 2 AND AGEP >= 65", "(`SEX` = 2) AND (`AGEP` >= 65)", {"SEX", "AGEP"}),
    ("true", "TRUE", set()),
    ("member", "`member`", {"member"}),
    ("a and b or c and not d", "(`a` AND `b`) OR (`c` AND (NOT `d`))", {"a", "b", "c", "d"}),
    ("a or b and c", "`a` OR (`b` AND `c`)", {"a", "b", "c"}),
    ("!a = 1", "NOT (`a` = 1)", {"a"}),
    ("a - b - 1 < 0", "((`a` - `b`) - 1) < 0", {"a", "b"}),
    ("a - (b - 1) < 0", "(`a` - (`b` - 1)) < 0", {"a", "b"}),
    ("a + b * 2 % 3 = -1", "(`a` + ((`b` * 2) % 3)) = (-1)", {"a", "b"}),
    ("a is not null", "NOT (`a` IS NULL)", {"a"}),
    ("a <=> null", "`a` IS NOT DISTINCT FROM NULL", {"a"}),
    ("a in (1, 2) and s not in ('x')", "(`a` IN (1, 2)) AND (NOT (`s` IN ('x')))", {"a", "s"}),
    ("a between 1 and 2 and b", "(`a` BETWEEN 1 AND 2) AND `b`", {"a", "b"}),
    ("s like 'x!%' escape '!'", "`s` LIKE 'x!%' ESCAPE '!'", {"s"}),
    (r"s = 'it\'s'", r"`s` = 'it\'s'", {"s"}),
    ('s = "x"', "`s` = 'x'", {"s"}),
    ("s = 'a; -- b'", "`s` = 'a; -- b'", {"s"}),
    ("cast(OCCP as int) div 100 = 3", "(CAST(`OCCP` AS INT) DIV 100) = 3", {"OCCP"}),
    ("floor(OCCP / 100) = 3", "FLOOR(`OCCP` / 100) = 3", {"OCCP"}),
    ("coalesce(a, false)", "COALESCE(`a`, FALSE)", {"a"}),
    ("case when a = 1 then b else false end", "CASE WHEN `a` = 1 THEN `b` ELSE FALSE END", {"a", "b"}),
    ("substring(s, 1, 2) = '01'", "SUBSTRING(`s`, 1, 2) = '01'", {"s"}),
    ("`a.b``c d` = 1", "`a.b``c d` = 1", {"a.b`c d"}),
    ("größe > 1.5 and 年齢 < 3", "(`größe` > 1.5) AND (`年齢` < 3)", {"größe", "年齢"}),
    ("a = 1 -- and b = 2", "`a` = 1", {"a"}),
    ("/*+ hint */ a = /* b */ 1", "`a` = 1", {"a"}),
    ("a =\n\t1", "`a` = 1", {"a"}),
]


@pytest.mark.parametrize(("text", "sql", "columns"), ACCEPTED)
def test_accepted_and_rendered(text, sql, columns):
    assert check_predicate(text) == (sql, columns)
    assert check_predicate(sql) == (sql, columns)


REFUSED = [
    ("", "the condition is empty"),
    (" \n", "the condition is empty"),
    ("-- a = 1", "nothing but comments"),
    ("a = 1; drop table x", "holds a semicolon; write one expression"),
    ("a = 1;", "holds a semicolon"),
    ("drop table x", "is not valid Spark SQL"),
    ("select 1", "is not valid Spark SQL"),
    ("a = 1 as b", "is not valid Spark SQL near line 1, column"),
    ("a, b", "is not valid Spark SQL"),
    ("a = 1 from b", "is not valid Spark SQL"),
    ("(a = 1", "is not valid Spark SQL"),
    ("a = 1)", "is not valid Spark SQL"),
    ("a =", "is not valid Spark SQL"),
    ("a = 'x", "is not valid Spark SQL (a ' is never closed); correct it"),
    ("`a = 1", "(a ` is never closed)"),
    ("1=1 OR (select 1)", "a sub-query is not allowed"),
    ("a in (select b from c)", "a sub-query is not allowed"),
    ("exists (select 1)", "a sub-query is not allowed"),
    ("exists(a, x -> x > 1)", "is not allowed"),
    ("coalesce(x -> x, true)", "(lambda) is not allowed"),
    ("reflect('java.lang.System', 'exit', 1)", "the function reflect() is not allowed"),
    ("java_method('a', 'b') = 1", "the function java_method() is not allowed"),
    ("input_file_name() = 'x'", "the function input_file_name() is not allowed"),
    ("rand() < 0.5", "the function rand() is not allowed"),
    ("uuid() = 'x'", "the function uuid() is not allowed"),
    ("monotonically_increasing_id() = 1", "the function monotonically_increasing_id() is not allowed"),
    ("current_timestamp > a", "the function current_timestamp() is not allowed"),
    ("current_date = a", "the function current_date() is not allowed"),
    ("now() > a", "the function now() is not allowed"),
    ("my_udf(a)", "the function my_udf() is not allowed"),
    ("count(*) > 1", "the function count() is not allowed"),
    ("sum(a) > 1", "the function sum() is not allowed"),
    ("sum(a) over (partition by b) > 1", "a window is not allowed"),
    ("row_number() over (order by a) = 1", "a window is not allowed"),
    ("s rlike '(a+)+b'", "the function regexp_like() is not allowed"),
    ("a.b = 1", "a.b reads inside a struct or another table; a column whose name has a dot is written `a.b`"),
    ("a.b.c.d.e = 1", "(dot) is not allowed"),
    ("a[0] = 1", "(bracket) is not allowed"),
    ("* = 1", "is not allowed"),
    ("a.* = 1", "uses *; name the columns"),
    ("struct(a).a = 1", "is not allowed"),
    ("(a, b) in ((1, 2))", "(tuple) is not allowed"),
    ("a in ()", "IN has no values; list at least one"),
    (
        "cast(a as array<int>) is null",
        "a cast to ARRAY<INT> is not allowed; cast to a number, string or date",
    ),
    ("cast(a as timestamp) is null", "a cast to TIMESTAMP is not allowed"),
    ("s = 'it''s'", r"two texts side by side (write a quote in a text as \')"),
    ("s = 'a' 'b'", "two texts side by side"),
    (r"s = '\101'", "has a backslash escape"),
    (r"s = r'\d'", "(rawstring) is not allowed"),
    ("s = x'00'", "is not allowed"),
    ("a & 1 = 1", "(bitwiseand) is not allowed"),
    (":p = 1", "(placeholder) is not allowed"),
    ("? = 1", "(placeholder) is not allowed"),
    ("@p = 1", "(parameter) is not allowed"),
    ("{{ a }} = 1", "holds '{{', a template or variable"),
    ("a = '{% x %}'", "holds '{%', a template or variable"),
    ("s = '${env:HOME}'", "holds '${', a template or variable; write the value itself"),
    ("a = 1\x00", "holds a control character; remove it"),
    ("interval 1 day = a", "(interval) is not allowed"),
    ("1", "the condition is '1', which is neither true nor false; write a comparison"),
    ("null", "which is neither true nor false"),
    ("'true'", "which is neither true nor false"),
    ("a + 1", "the condition is 'a + 1', which is neither true nor false"),
    ("a = 1 or 5", "what stands beside OR is '5', which is neither true nor false"),
    ("not (a + 1)", "what stands beside NOT is 'a + 1', which is neither true nor false"),
    ("if(a, 1, 2)", "the condition is '1', which is neither true nor false"),
    ("coalesce(a, 0)", "the condition is '0', which is neither true nor false"),
    ("case when a then 'x' end", "which is neither true nor false"),
    ("cast(a as int)", "which is neither true nor false"),
    ("upper(s)", "which is neither true nor false"),
    ("(" * 51 + "a" + ")" * 51, "nested more than 50 deep"),
    ("(" * 1900 + "a" + ")" * 1900, "nested more than 50 deep"),
    ("not " * 900 + "a", "nested more than 50 deep"),
    ("- " * 1900 + "a = 1", "nested more than 50 deep"),
    ("a" + "+a" * 100 + " = 1", "nested more than 50 deep"),
    ("case when " * 300 + "a", "nested more than 50 deep"),
    ("case when a then " * 27 + "b" + " end" * 27, "nested more than 50 deep"),
    ("a between symmetric 1 and 2", "cannot be rendered without changing its meaning; write it more simply"),
    ("a[" * 1900, "nested more than 50 deep"),
    ("a = 1 or " * 450, "has 4050 characters, more than 4000; shorten it"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=[text[:40] for text, _ in REFUSED])
def test_refused(text, words):
    with pytest.raises(ValueError) as caught:
        check_predicate(text)
    message = str(caught.value)
    assert words in message
    assert "\n" not in message


def test_a_long_flat_chain_is_not_deep():
    text = " or ".join(f"a={i}" for i in range(400))
    sql, columns = check_predicate(text)
    assert sql.count(" OR ") == 399
    assert columns == {"a"}


WORDS = st.sampled_from((
    "a", "b", "`x y`", "1", "-1", "'x'", "null", "true", "(", ")", "and", "or", "not", "=", "<", "<=>", "+",
    "-", "*", "/", "%", "in", "like", "between", "is", "case", "when", "then", "else", "end", "cast", "as",
    "int", ",", ";", ".", "[", "]", "->", "select", "from", "reflect", "rand", "::", "${", "{{", "--", "/*",
    "*/", "\\", "'", '"', "`", "exists", "over", "?",
))  # fmt: skip


@given(st.lists(WORDS, max_size=12).map(" ".join) | st.text(max_size=40))
def test_anything_is_refused_or_rendered_to_a_fixed_point(text):
    try:
        sql, columns = check_predicate(text)
    except ValueError as error:
        assert str(error)
    else:
        assert check_predicate(sql) == (sql, columns)
        assert all(f"`{name.replace('`', '``')}`" in sql for name in columns)
        assert ";" not in sql.replace("';'", "")
