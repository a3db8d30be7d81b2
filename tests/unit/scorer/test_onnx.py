"""A model as ONNX: ONNX Runtime computes the scorer's scores; what ONNX cannot do is refused."""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import numpy as np
import onnx
import pandas as pd
import pytest
from brute_force import CONDITIONS
from golden_cases import golden
from make import LINKS
from onnx_runs import scored, session
from scorer_models import form, model, people, write

from mcspark.cli.export import export
from mcspark.cli.text import Target
from mcspark.core.cells.groups import Family, FittedGroups
from mcspark.core.model.stages import Stage, Stages
from mcspark.core.saved import SavedModel
from mcspark.errors import ConfigurationError
from mcspark.export.onnx_model import to_onnx
from mcspark.scorer import Scorer


def with_columns_for_conditions(saved, table):
    """What the message advises: every condition is a column of its own."""
    kept = []
    for family in saved.groups.families:
        if family.where is not None:
            holds = [int(CONDITIONS[family.where](row)) for row in table.to_dict("records")]
            table = table.assign(**{family.column: holds})
            kept.append(Family("value", family.column, (1,), columns=(family.column,)))
        else:
            kept.append(family)
    groups = FittedGroups(tuple(kept), saved.groups.pairs)
    return replace(saved, groups=groups, calibrator=Stages(saved.calibrator.stages, groups.names)), table


@pytest.mark.parametrize("name", LINKS)
def test_onnx_runtime_computes_the_golden_cases(name):
    saved, cases = golden(name)
    table = pd.DataFrame([one["row"] for one in cases], dtype=object)
    table = table.where(table.notna(), None)
    saved, table = with_columns_for_conditions(saved, table)
    found = scored(to_onnx(saved), table)
    assert np.abs(found - [one["expected"] for one in cases]).max() <= 1e-12


def test_a_score_that_is_none_has_no_calibrated_score():
    table = people(6)
    table.loc[:2, "score"] = [np.nan, -1e-300, np.nextafter(1, 2)]
    found = scored(to_onnx(model(("logit",), condition=False)), table)
    assert np.isnan(found).tolist() == [True, True, True, False, False, False]


def test_quotients_bins_and_numbers_that_are_categories_are_those_of_the_scorer():
    tenths = Family("divide", "x", (6, 2**62, 0, -7), divide_by=0.1, columns=("x",))
    bins = Family("bins", "x", (2, 0), bins=(-1.0, 0.6, 0.7, np.nextafter(0.7, 1)), columns=("x",))
    values = Family("value", "x", (7, -3), columns=("x",))
    score = Family("bins", "score", (0,), bins=(0.25, 0.75), columns=("score",))
    saved = model(("identity",), condition=False)
    groups = FittedGroups((tenths, bins, values, score), ((0, 4),))
    stage = Stage("identity", form(len(groups.names), 40, np.random.default_rng(5)), 7)
    saved = replace(saved, groups=groups, calibrator=Stages((stage,), groups.names))
    x = [0.6, 0.65, 0.7, -0.7, -0.0, 7.0, -3.0, -1.0, np.nan, np.inf, -np.inf, 2.0**62 / 10, 1e300, 0.1 * 3]
    for f in (0.2, 0.25, 0.75, 0.9):
        table = pd.DataFrame({"score": f, "x": x})
        # Only whole numbers are categories; the scorer refuses a column with fractions.
        meant = [saved if v in (7.0, -3.0) or np.isnan(v) else replace_values(saved) for v in x]
        expected = [Scorer(m).score(table[i : i + 1])[0] for i, m in enumerate(meant)]
        assert np.abs(scored(to_onnx(saved), table) - expected).max() <= 1e-12


def replace_values(saved):
    """The same, whose categories of ``x`` are beyond every value: for rows with fractions."""
    families = list(saved.groups.families)
    families[2] = replace(families[2], categories=("never", "ever"))
    groups = replace(saved.groups, families=tuple(families))
    return replace(saved, groups=groups, calibrator=Stages(saved.calibrator.stages, groups.names))


@pytest.mark.parametrize(
    ("family", "words"),
    [
        (Family("predicate", "p", (1,), where="`x` = 1", columns=("x",)), "group 'p', `x` = 1, cannot be"),
        (Family("value", "score", ("a",), columns=("score",)), "column 'score' is a number .* such as 'a'"),
        (Family("value", "score", (2**60,), columns=("score",)), f"such as {2**60}"),
    ],
)  # fmt: skip
def test_what_onnx_cannot_do_is_refused(family, words):
    groups = FittedGroups((family,))
    columns = {"scoreCol": "score", "predictionCol": "c"}
    with pytest.raises(ConfigurationError, match=words):
        to_onnx(SavedModel("none", groups, Stages((), groups.names), columns, 0, None))


def test_the_command_writes_a_file_that_names_its_columns(tmp_path, monkeypatch):
    folder = str(write(model(("identity",), condition=False), tmp_path))
    file = tmp_path / "model.onnx"
    with pytest.raises(ConfigurationError, match="name a file by --output"):
        list(export(folder, Target.onnx))
    (told,) = export(folder, Target.onnx, output=str(file))
    assert told.endswith(f"bytes written to {file}")
    read = onnx.load(file)
    kinds = {i.name: i.type.tensor_type.elem_type for i in read.graph.input}
    text, double = onnx.TensorProto.STRING, onnx.TensorProto.DOUBLE
    assert kinds == {"score": double, "SEX": text, "AGEP": double, "OCCP": double, "job": text}
    assert [o.name for o in read.graph.output] == ["calibrated_score"]
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'mcspark\[onnx\]'"):
        list(export(folder, Target.onnx, output=str(file), force=True))


def test_a_core_scores_hundreds_of_thousands_of_rows_a_second():
    saved, table = model(("logit",), condition=False, bins=300), people(100_000)
    run, given = session(to_onnx(saved), table)
    run.run(None, given)
    started = time.process_time()
    run.run(None, given)
    assert time.process_time() - started < 100_000 / 300_000  # 1.5 million on an idle core
