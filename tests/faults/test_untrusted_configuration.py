"""Configuration is untrusted too: conditions, names, secrets, and what a report shows."""

from __future__ import annotations

from pathlib import Path

import pytest

CONDITIONS = {
    "reflect('java.lang.Runtime', 'getRuntime') = 'x'": r"function reflect\(\) is not allowed",
    "java_method('java.lang.System', 'exit', 1) = 'x'": r"function java_method\(\) is not allowed",
    "input_file_name() = 'x'": r"function input_file_name\(\) is not allowed",
    "sex = (SELECT max(sex) FROM t)": "sub-query",
    "EXISTS (SELECT 1)": "sub-query",
    "sex = 1; DROP TABLE t": "semicolon",
    "assert_true(sex = 1)": "is not allowed",
    "sex = 1 OR rand() < 0.5": r"function rand\(\) is not allowed",
    "current_user() = 'root'": "is not allowed",
    "transform(array(sex), x -> x)[0] = 1": "is not allowed",
    "sex + 1": "neither true nor false",
    "${env:HOME} = '1'": "template or variable",
}


@pytest.mark.parametrize("where", CONDITIONS)
def test_conditions_are_one_harmless_expression(world, where):
    """Refused before Spark starts, by name."""
    groups = {"predicates": [{"name": "p", "where": where}]}
    done = world.refused(CONDITIONS[where], code=2, job="calibrate", groups=groups)
    assert "groups.predicates.0.where" in done.error


def test_a_condition_over_an_unknown_column_is_refused(world):
    groups = {"predicates": [{"name": "p", "where": "wealth > 3"}]}
    world.refused("wealth: missing", job="calibrate", groups=groups)


@pytest.mark.parametrize(
    ("where", "reason"),
    [("sex", "is bigint, neither true nor false"), ("NOT sex", "does not fit its columns")],
)
def test_a_condition_that_does_not_fit_its_columns_is_refused(world, where, reason):
    groups = {"predicates": [{"name": "p", "where": where}]}
    world.refused(f"group 'p' {reason}", job="calibrate", groups=groups)


def test_secrets_are_shown_nowhere(world):
    """In an address that cannot be read, in the log, the error and the manifest."""
    done = world.run(scored={"path": "s3a://AKIA0:hunter2@bucket/scored"})
    assert done.exit_code in (2, 3)
    assert "hunter2" not in done.log + str(done.summary)
    assert "***" in done.error
    good = world.ran(
        "audit", report={"path": str(world.root / "r.html")},
        compare={"output": {"path": "s3a://AKIA0:hunter2@bucket/compare?sig=hunter3"}},
    )  # fmt: skip
    manifest = Path(good.summary["paths"]["manifest"].removeprefix("file:")).read_text()
    report = (world.root / "r.html").read_text()
    for secret in ("hunter2", "hunter3"):
        assert secret not in good.log + manifest + report + str(good.summary)
    assert "s3a://***@bucket/compare" in manifest


def test_a_group_named_like_markup_shows_as_text(world):
    name = "<script>alert(1)</script>"
    groups = {"predicates": [{"name": name, "where": "sex = 2"}]}
    report = world.root / "r.html"
    done = world.ran("audit", groups=groups, report={"path": str(report)})
    page = report.read_text()
    assert done.summary["groups"] > 3
    assert "alert(1)" in page
    assert "<script>alert" not in page


@pytest.mark.parametrize("run_id", ["../x", "a/b", "", ".hidden", "x" * 200])
def test_run_ids_that_would_leave_their_folder_are_refused(run_id):
    from mcspark.identifiers import check_run_id

    with pytest.raises(ValueError, match="not safe as a file name"):
        check_run_id(run_id)
