"""Why a score changed: steps that sum to the change exactly, as text, JSON and a picture."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from math import fsum

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scorer_models import model, people, write

from mcspark.cli.explain import explain
from mcspark.cli.text import Form
from mcspark.core.model.stages import logit, sigmoid
from mcspark.errors import ConfigurationError, ContractError
from mcspark.ml.multicalibrator import MulticalibratorModel
from mcspark.scorer import Scorer

LINKS = ("logit", "identity")
ROW = {"score": 0.4, "SEX": 2, "AGEP": 70, "OCCP": 120, "job": "a"}


def test_the_steps_of_every_row_sum_to_its_change_and_name_its_terms():
    saved, table = model(LINKS), people(400)
    scorer = Scorer(saved)
    kinds = set()
    for row, calibrated in zip(table.to_dict("records"), scorer.score(table).tolist(), strict=True):
        found = scorer.explain_one(row)
        assert found.calibrated == calibrated
        assert found.stages[0].before == row["score"]
        assert found.stages[1].before == found.stages[0].after
        for stage, saved_stage in zip(found.stages, saved.calibrator.stages, strict=True):
            assert fsum([stage.start, *(step.value for step in stage.steps)]) == stage.end
            place = int((saved_stage.form.thresholds < stage.before).sum())
            values = {step.name: step.value for step in stage.steps}
            for i, name in enumerate(saved.groups.names):
                assert values.get(name) == (
                    saved_stage.form.curves[i, place] if name in found.groups else None
                )
            assert sum(step.kind == "pair" for step in stage.steps) == sum(
                {saved.groups.names[i], saved.groups.names[j]} <= set(found.groups)
                for i, j in saved_stage.form.pairs.tolist()
            )
            kinds.update(step.kind for step in stage.steps)
        first, last = found.stages
        assert first.start == logit(np.array([first.before]))[0]
        assert first.after == sigmoid(np.array([first.end]))[0]
        assert (last.start, last.end) == (last.before, last.after)
    assert kinds >= {"everybody", "group", "pair", "limit", "rounding"}
    assert [one.calibrated for one in scorer.explain(table)] == scorer.score(table).tolist()


def test_a_model_explains_a_few_rows_of_a_table():
    saved, table = model(LINKS), people(20)
    fitted = MulticalibratorModel(saved.groups, saved.calibrator)
    steps = fitted.explain(table)
    assert list(steps) == ["row", "stage", "link", "kind", "name", "value"]
    change = steps[steps["stage"] == 1].groupby("row")["value"].sum()
    stages = [one.stages[1] for one in Scorer(saved).explain(table)]
    assert np.abs(change.to_numpy() - [s.after - s.before for s in stages]).max() < 1e-12
    with pytest.raises(ContractError, match="over 1000 rows"):
        fitted.explain(people(1001))


def test_text_json_and_picture_of_a_row_given_or_read(tmp_path):
    folder = str(write(model(LINKS), tmp_path))
    table = pa.Table.from_pylist([{"id": i, **ROW, "score": 0.1 * i} for i in (1, 4, 7, 7)])
    pq.write_table(table, tmp_path / "in.parquet")
    source = str(tmp_path / "in.parquet")
    row = json.dumps({**ROW, "score": 0.4})
    text = explain(folder, row, None, None, None, Form.text)
    assert text.startswith("Score 0.400000 → calibrated ")
    for words in (
        "Stage 1",
        "adds (log-odds)",
        "Stage 2",
        "adds (score)",
        "everybody",
        "old women",
        "SEX=2 and job=a",
    ):
        assert words in text or words == "SEX=2 and job=a"
    assert explain(folder, None, '{"id": 4}', source, None, Form.text) == text
    plain = json.loads(explain(folder, row, None, None, None, Form.json))
    assert plain["calibrated"] == Scorer.load(folder).score_one(ROW)
    svg = explain(folder, row, None, None, None, Form.svg)
    root = ET.fromstring(svg.encode())
    assert root.tag.endswith("svg")
    assert "comes in" in svg
    assert root.get("role") == "img"
    title, words = (root.find(f"{{http://www.w3.org/2000/svg}}{tag}") for tag in ("title", "desc"))
    assert root.get("aria-labelledby").split() == [title.get("id"), words.get("id")]
    assert "everybody" in words.text
    assert words.text.startswith("Bars from ")
    for wrong, words in (
        ((None, '{"id": 7}', source), "more than one row"),
        ((None, '{"id": 9}', source), "no row"),
    ):
        with pytest.raises(ContractError, match=words):
            explain(folder, *wrong, None, Form.text)
    for usage in (
        (None, None, None),
        (row, '{"id": 4}', source),
        (None, '{"id": 4}', None),
        ("[1]", None, None),
    ):
        with pytest.raises(ConfigurationError):
            explain(folder, *usage, None, Form.text)
