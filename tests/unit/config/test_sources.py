import re
from pathlib import Path

import pytest

from mcspark.config import Config, load_config
from mcspark.config.sources import MAX_FILE_BYTES
from mcspark.errors import ConfigurationError
from tests.unit.config.config_files import small

TEXT = """\
scored: {path: data/scored, key: [id]}
attributes:
  - {path: data/attributes, key: [id]}
split: {test: 0.1, seed: 3}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "conf.yaml"
    path.write_text(TEXT)
    return str(path)


def refused(*args, **kwargs):
    with pytest.raises(ConfigurationError) as caught:
        load_config(*args, **kwargs)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_file_alone(file):
    config = load_config(file, (), {})
    assert config.scored.key == ("id",)
    assert (config.split.test, config.split.seed, config.split.early_stopping) == (0.1, 3, 0.3)


def test_set_wins_over_environment_over_file_over_defaults(file):
    environ = {"MCSPARK_SPLIT__TEST": "0.2", "MCSPARK_SPLIT__SEED": "4", "MCSPARK_CALIBRATOR__MAX_TREES": "9"}
    config = load_config(file, ["split.test=0.3"], environ)
    assert config.split.test == 0.3
    assert config.split.seed == 4
    assert config.calibrator.max_trees == 9
    assert config.split.early_stopping == 0.3


def test_the_environment_of_the_process_is_the_default(file, monkeypatch):
    monkeypatch.setenv("MCSPARK_SPLIT__SEED", "11")
    assert load_config(file).split.seed == 11


def test_later_overrides_win_and_list_positions_work(file):
    config = load_config(
        file,
        [
            "attributes.0.path=first", "attributes.0.path=second", "attributes.1={path: third, key: [id]}",
            "groups.columns.0.column=SEX", "groups.columns.1={column: AGEP, bins: [0, 18]}",
            "groups.columns.0.column=RAC1P",
        ],
        {},
    )  # fmt: skip
    assert [table.path for table in config.attributes] == ["second", "third"]
    assert [column.column for column in config.groups.columns] == ["RAC1P", "AGEP"]


def test_a_whole_section_is_replaced(file):
    assert load_config(file, ["split={test: 0.5}"], {}).split.seed == 7
    environ = {"MCSPARK_SPLIT__SEED": "5", "MCSPARK_SPLIT": "{test: 0.5}"}
    assert load_config(file, [], environ).split.model_dump() == {
        "by": "hash", "test": 0.5, "seed": 5, "early_stopping": 0.3, "column": None,
    }  # fmt: skip


def test_environment_reaches_lists_and_partitions(file):
    environ = {"MCSPARK_ATTRIBUTES__0__PATH": "b", "MCSPARK_SCORED__PARTITION__DS": "2026-11-26"}
    config = load_config(file, [], environ)
    assert config.attributes[0].path == "b"
    assert config.scored.partition == {"ds": "2026-11-26"}


@pytest.mark.parametrize(
    ("override", "place", "value"),
    [
        ("scored.partition.ds=2026-11-26", "scored.partition", {"ds": "2026-11-26"}),
        ("scored.partition.st=01", "scored.partition", {"st": "01"}),
        ("scored.partition.st=36", "scored.partition", {"st": "36"}),
        ("scored.partition={st: 0o7, x: no}", "scored.partition", {"st": "0o7", "x": "no"}),
        ("scored.weight=no", "scored.weight", "no"),
        ("scored.label=", "scored.label", None),
        ("scored.path=a=b", "scored.path", "a=b"),
        ("calibrator.learning_rate=1e-2", "calibrator.learning_rate", 0.01),
        ("calibrator.rounds=auto", "calibrator.rounds", "auto"),
        ("calibrator.refit=true", "calibrator.refit", True),
        ("evaluation.levels=[20, 75]", "evaluation.levels", (20, 75)),
        ("allow_empty=true", "allow_empty", True),
    ],
)
def test_values_are_yaml_without_its_surprises(file, override, place, value):
    found = load_config(file, [override], {})
    for part in place.split("."):
        found = getattr(found, part)
    assert found == value


def test_without_a_file():
    config = load_config(
        None, [f"{k}={v}" for k, v in small().items()], {"MCSPARK_SHARED": "/x", "MCSPARKLE__X": "1"}
    )
    assert config == Config.model_validate(small())
    message = refused(None, [], {})
    assert message.splitlines() == [
        "The configuration has 2 problems:",
        "  scored: is missing; add it",
        "  attributes: is missing; add it",
    ]


def test_all_problems_at_once_and_who_gave_each(file):
    environ = {"MCSPARK_GATE__MUST_IMPROV": "true", "MCSPARK_A____B": "1", "MCSPARK_ALLOW_EMPTY": "maybe"}
    message = refused(
        file,
        ["split.test=2", "nonsense", "attributes.3.path=x", "split.seed.x=1", "gate=[1", "report.path_=r"],
        environ,
        needs=("output", "compare.output"),
    )
    assert message.splitlines() == [
        "The configuration has 12 problems:",
        '  MCSPARK_A____B: must be written MCSPARK_SECTION__KEY (given "1", environment)',
        '  --set: must be written section.key=value (given "nonsense", command line)',
        "  attributes.3.path: attributes is a list of 1; write attributes.0 to attributes.1 "
        '(given "x", from --set)',
        '  split.seed.x: split.seed is a single value and has no keys (given "1", from --set)',
        "  gate: while parsing a flow sequence, expected ',' or ']', but got '<stream end>' "
        '(line 1, column 3) (given "[1", from --set)',
        "  split.test: must be less than 1 (given 2, from --set)",
        "  report.path: is missing; add it",
        "  report.path_: unknown key; did you mean path? (from --set)",
        "  gate.must_improv: unknown key; did you mean must_improve? "
        "(from the environment variable MCSPARK_GATE__MUST_IMPROV)",
        "  allow_empty: must be true or false, without quotes "
        '(given "maybe", from the environment variable MCSPARK_ALLOW_EMPTY)',
        "  output: is missing, and this job needs it; add it",
        "  compare.output: is missing, and this job needs it; add it",
    ]  # fmt: skip


def test_one_problem_is_one_sentence(file):
    assert refused(file, ["spilt.test=0.1"], {}) == (
        "The configuration is wrong at spilt: unknown key; did you mean split? (from --set)"
    )


def test_what_a_job_needs(file):
    message = refused(file, [], {}, needs=("model",))
    assert "model: is missing, and this job needs it; add it" in message
    assert load_config(file, ["model.path=m"], {}, needs=("model",)).model.path == "m"


def test_secrets_are_not_shown(file):
    message = refused(
        file, ["scored.path=s3a://me:hush@b/x", "scored.format=x", "output.path=s3a://q:hush@b/{{ds}}"], {}
    )
    assert "hush" not in message
    assert "***@b" in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"- 1\n", "holds a list, not sections of key: value lines"),
        (b"text", "holds a single value, not sections of key: value lines"),
        (b"gate:\ngate:\n", "the key 'gate' stands twice; keep one of the two (line 2, column 1)"),
        (b"split:\n  seed: 1\n  seed: 2\n", "the key 'seed' stands twice; keep one of the two (line 3"),
        (b"1.5: x\n", "a key is not text; put it in quotes (line 1, column 1)"),
        (b"a: [1\n", "is not usable YAML: while parsing a flow sequence, expected ',' or ']'"),
        (b"a: 1\n---\nb: 2\n", "expected a single document in the stream, but found another"),
        (b"a: !!python/object/apply:os.getcwd []\n", "could not determine a constructor for the tag"),
        (b"a: \xff\n", "is not UTF-8 text; save it as such"),
        (b"a: " + b"[" * 60 + b"]" * 60, "it is nested more than 50 deep"),
        (b"a: " + b"[" * 5000, "it is nested more than 50 deep"),
        (b"a: &a [*a]\n", "it is nested more than 50 deep"),
        (b"a: " + b"9" * 5000, "it holds a number too long to read; put it in quotes"),
        (b"#" * (MAX_FILE_BYTES + 1), f"is larger than {MAX_FILE_BYTES} bytes"),
    ],
)  # fmt: skip
def test_unusable_files(tmp_path, content, words):
    path = tmp_path / "conf.yaml"
    path.write_bytes(content)
    message = refused(str(path), [], {})
    assert words in message
    assert str(path) in message
    assert "\n" not in message


def test_an_alias_bomb_is_refused_quickly(tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    path = tmp_path / "bomb.yaml"
    path.write_text("\n".join(lines))
    assert "more than 100000 values; take out repeated aliases" in refused(str(path), [], {})


def test_aliases_and_merges_are_fine(tmp_path):
    path = tmp_path / "conf.yaml"
    path.write_text(
        "scored: &table {path: s, key: &key [id]}\n"
        "attributes: [{<<: *table, path: a}, {path: b, key: *key}]\n"
    )
    config = load_config(str(path), ["attributes.1.key.0=id"], {})
    assert [(t.path, t.key) for t in config.attributes] == [("a", ("id",)), ("b", ("id",))]


def test_an_override_does_not_reach_through_an_alias(tmp_path):
    path = tmp_path / "conf.yaml"
    path.write_text("scored: {path: s, key: &key [id]}\nattributes: [{path: a, key: *key}]\n")
    message = refused(str(path), ["attributes.0.key.0=ID"], {})
    assert "table 0 has the key ['ID'], but the scored table has ['id']" in message


@pytest.mark.parametrize(("make", "reason"), [(False, "No such file or directory"), (True, "Is a directory")])
def test_unreadable_files(tmp_path, make, reason):
    path = tmp_path / "conf.yaml"
    if make:
        path.mkdir()
    assert refused(str(path), [], {}) == (
        f"The configuration file {path} cannot be read: {reason}; name a YAML file on this machine"
    )


def test_an_empty_file_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "conf.yaml"
    path.write_text("# nothing\n")
    assert "scored: is missing" in refused(str(path), [], {})
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    assert load_config(str(path), [], {}).split.seed == 3


BASE = ["output.path=o", "model.path=m", "report.path=r.html"]


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        (["output.path=data/scored/"], "output.path: lies in or around scored.path"),
        (["output.path=./data"], "output.path: lies in or around scored.path"),
        (["output.path=data/attributes/x"], "output.path: lies in or around attributes.0.path"),
        (["model.path=o/model"], "model.path: lies in or around output.path"),
        (["report.path=m/r.html"], "report.path: lies in or around model.path"),
        (["model.path=_o_manifests"], "model.path: lies in or around output.path"),
        (["report.path=_o_manifests/r.html"], "report.path: lies in or around output.path"),
        (
            ["scored.path=s3a://b/x/../y", "output.path=s3a://b/y"],
            "output.path: lies in or around scored.path",
        ),
        (["scored.path=/q/s", "output.path=file:///q/s"], "output.path: lies in or around scored.path"),
        (["scored={table: a.b, key: [id]}", "output={table: a.b}"], "output.table: is scored.table"),
        (
            ["output.path=data/scored", "scored.path=data/scored_metrics"],
            "has data/scored_metrics written beside",
        ),
        (["model.path=r.md"], "report.path: has r.md written beside it, which lies in or around model.path"),
        (["output.path=r_refused.md/x"], "report.path: has r_refused.md written beside it"),
    ],
)
def test_a_job_that_writes_keeps_off_its_inputs(file, overrides, line):
    assert re.search(re.escape(line), refused(file, [*BASE, *overrides], {}, needs=("output",)))
    load_config(file, [*BASE, *overrides], {})  # an audit of the output reads what it does not write


@pytest.mark.parametrize("suffix", ["rejected", "metrics", "candidate", "refused", "candidate_rejected"])
def test_the_companions_of_an_output_keep_off_the_inputs_too(file, suffix):
    overrides = [*BASE, f"scored.path=o_{suffix}"]
    words = refused(file, overrides, {}, needs=("output", "model"))
    assert f"output.path: has o_{suffix} written beside it, which lies in or around scored.path" in words
    if suffix != "metrics":  # an audit writes none of the others, and may be about a candidate
        load_config(file, overrides, {}, needs=("output",))


def test_links_are_followed_to_the_inputs(file, tmp_path):
    (tmp_path / "real" / "table").mkdir(parents=True)
    (tmp_path / "way").symlink_to(tmp_path / "real")
    overrides = [*BASE, f"scored.path={tmp_path}/real/table", f"output.path={tmp_path}/way/table"]
    words = refused(file, overrides, {}, needs=("output", "model"))
    assert "output.path: lies in or around scored.path" in words


@pytest.mark.parametrize("key", ["output", "model", "report"])
def test_the_configuration_is_not_written_over(file, key):
    for path in (file, str(Path(file).parent)):
        words = refused(file, [*BASE, f"{key}.path={path}"], {}, needs=("output", "model"))
        assert f"{key}.path: lies in or around the configuration file" in words


def test_a_calibrated_score_is_audited_but_not_calibrated_again(file):
    overrides = [*BASE, "scored.score=calibrated_score"]
    words = refused(file, overrides, {}, needs=("output", "model"))
    assert "scored.score: is a column that the output adds" in words
    assert load_config(file, overrides, {}, needs=("output",)).scored.score == "calibrated_score"


@pytest.mark.parametrize("output", ["data/scored2", "s3a://data/scored", "dat"])
def test_neighbours_are_fine(file, output):
    load_config(file, [*BASE, f"output.path={output}"], {}, needs=("output", "model"))
