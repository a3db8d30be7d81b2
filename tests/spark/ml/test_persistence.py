"""Saved calibrators: the same bits back, and nothing that was tampered with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest

from mcspark import MulticalibratorModel
from mcspark.core.cells.groups import Family, FittedGroups
from mcspark.core.model.additive import AdditiveForm
from mcspark.core.model.stages import Stage, Stages
from mcspark.core.saved import digest as _digest
from mcspark.errors import ConfigurationError, ContractError


@pytest.fixture(scope="module")
def saved(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    fitted.model.write().overwrite().save(str(path))
    return path


def test_a_loaded_model_scores_bit_for_bit_the_same(fitted, saved):
    model = MulticalibratorModel.load(str(saved))
    assert model.fitted == fitted.model.fitted
    assert (model.method, model.stages.trees) == ("trees", fitted.model.stages.trees)
    scored = model.transform(fitted.frame).orderBy("id").toPandas()
    assert np.array_equal(scored["calibrated_score"], fitted.scored["calibrated_score"])


def test_a_loaded_model_knows_how_it_was_fitted(fitted, saved):
    found, wanted = MulticalibratorModel.load(str(saved)).summary, fitted.model.summary
    assert found == wanted
    assert found.groups == fitted.model.fitted.names
    assert found.trees == tuple(stage.trees for stage in fitted.model.stages.stages)
    assert (len(found.rounds), found.rounds[0].trees, found.rounds[0].kept) == (1, found.trees[0], True)
    assert 0 < found.rounds[0].loss_after < found.rounds[0].loss_before
    assert found.saturation == wanted.saturation is not None
    assert found.engine.startswith(("synapseml ", "lightgbm "))
    assert (wanted.cells is not None, found.cells) == (True, None)
    with pytest.raises(ValueError, match="a loaded model"):
        MulticalibratorModel.load(str(saved)).training_curve()


def test_a_model_without_a_record_of_its_fit_loads(spark, saved, tmp_path):
    plain = json.loads((saved / "model.json").read_text())
    del plain["fit"]
    (tmp_path / "model.json").write_text(sealed(plain))
    found = MulticalibratorModel.load(str(tmp_path)).summary
    assert (found.rounds, found.saturation, found.engine) == ((), None, None)
    assert found.trees[0] > 0


def test_what_is_saved_is_text_and_tables(fitted, saved):
    assert sorted(p.name for p in saved.iterdir() if not p.name.startswith(".")) == [
        "curves", "model.json", "pairs", "trees_0.txt",
    ]  # fmt: skip
    assert (saved / "trees_0.txt").read_text() == fitted.model.texts[0]
    assert lgb.Booster(model_file=str(saved / "trees_0.txt")).num_trees() == fitted.model.stages.trees
    curves = pd.read_parquet(saved / "curves")
    form = fitted.model.stages.stages[0].form
    assert len(curves) == (form.n_groups + 1) * form.n_bins
    young = curves[curves["group_name"] == "young women"].sort_values("bin")
    assert np.array_equal(young["value"], form.curves[7])


def test_columns_of_the_estimator_are_kept(spark, fitted, tmp_path):
    model = fitted.model.copy({fitted.model.predictionCol: "better", fitted.model.scoreCol: "f0"})
    model.save(str(tmp_path / "model"))
    scored = MulticalibratorModel.load(str(tmp_path / "model")).transform(
        fitted.frame.withColumnRenamed("score", "f0")
    )
    assert scored.columns[-1] == "better"


def test_an_old_model_is_not_overwritten_unasked(fitted, saved):
    before = (saved / "model.json").read_bytes()
    with pytest.raises(ConfigurationError, match="overwrite"):
        fitted.model.save(str(saved))
    assert (saved / "model.json").read_bytes() == before
    fitted.model.write().overwrite().save(str(saved))
    assert (saved / "model.json").read_bytes() == before
    assert [p.name for p in saved.parent.iterdir()] == ["model"]


def changed(text, **changes):
    plain = json.loads(text)
    plain.update(changes)
    return plain


def sealed(plain):
    """A forger knows the checksum too: what it protects from is damage."""
    return json.dumps({**plain, "sha256": _digest(plain)})


def with_where(text, where):
    plain = json.loads(text)
    plain["groups"]["families"][-1]["where"] = where
    return sealed(plain)


def with_form(text, **changes):
    plain = json.loads(text)
    plain["calibrator"]["stages"][0]["form"].update(changes)
    return sealed(plain)


def with_fit(text, **changes):
    plain = json.loads(text)
    plain["fit"].update(changes)
    return sealed(plain)


def with_round(text, **changes):
    return with_fit(text, rounds=[{**json.loads(text)["fit"]["rounds"][0], **changes}])


def other_order(text):
    plain = json.loads(text)
    plain["calibrator"]["groups"] = plain["calibrator"]["groups"][::-1]
    return sealed(plain)


BAD = {
    "empty": lambda text: "",
    "truncated": lambda text: text[: len(text) // 2],
    "no object": lambda text: "[]",
    "one number edited": lambda text: text.replace('"constant": ', '"constant": 1', 1),
    "a version from the future": lambda text: sealed(changed(text, schema_version=2)),
    "a version that is no number": lambda text: sealed(changed(text, schema_version=True)),
    "a key more": lambda text: sealed(changed(text, pickle="gASVAAAA")),
    "a key less": lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "columns"}),
    "an unknown method": lambda text: sealed(changed(text, method="oracle")),
    "a method that is no word": lambda text: sealed(changed(text, method=["trees"])),
    "other group names": lambda text: sealed(changed(text, group_names=["x"])),
    "features in another order": other_order,
    "columns in a list": lambda text: sealed(changed(text, columns=["scoreCol", "predictionCol"])),
    "NaN in the form": lambda text: with_form(text, constant=float("nan")),
    "too large a number": lambda text: with_form(text, constant=1e300),
    "a condition that runs Java": lambda text: with_where(text, "reflect('java.lang.System') = 1"),
    "a condition that reads files": lambda text: with_where(text, "(SELECT count(*) FROM parquet.`/x`) > 0"),
    "a condition not as rendered": lambda text: with_where(text, "SEX = 2 AND AGEP < 30"),
    "families that are none": lambda text: sealed(
        changed(text, groups={"families": [1], "pairs": [], "dropped": []})
    ),
    "a fit that is none": lambda text: sealed(changed(text, fit=[])),
    "a fit with a key more": lambda text: with_fit(text, cells=[]),
    "a round with NaN": lambda text: with_round(text, loss_after=float("nan")),
    "a round with half a tree": lambda text: with_round(text, trees=0.5),
    "a round that is kept 1": lambda text: with_round(text, kept=1),
    "rounds without end": lambda text: with_fit(text, rounds=json.loads(text)["fit"]["rounds"] * 2000),
    "a saturation in words": lambda text: with_fit(text, saturation={"loss": "0.1", "loss_second": 0.1}),
    "an engine as long as a book": lambda text: with_fit(text, engine="x" * 1000),
    "groups that are none": lambda text: sealed(changed(text, groups=[])),
    "deep nesting": lambda text: "[" * 100_000,
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_model_that_was_tampered_with_is_refused(spark, saved, tmp_path, what):
    folder = tmp_path / "model"
    folder.mkdir()
    text = (saved / "model.json").read_text()
    bad = BAD[what](text)
    assert bad != text
    (folder / "model.json").write_text(bad)
    with pytest.raises(ContractError, match=r"model\.json"):
        MulticalibratorModel.load(str(folder))


def test_untouched_it_loads_from_its_json_alone(spark, fitted, saved, tmp_path):
    shutil.copy(saved / "model.json", tmp_path)
    assert MulticalibratorModel.load(str(tmp_path)).fitted == fitted.model.fitted


def test_no_model_is_refused_by_name(spark, tmp_path):
    with pytest.raises(ContractError, match=r"nowhere.*no readable model"):
        MulticalibratorModel.load(str(tmp_path / "nowhere"))


def test_too_large_a_file_is_refused(spark, saved, tmp_path, monkeypatch):
    monkeypatch.setattr("mcspark.ml.persistence.MAX_BYTES", 1000)
    with pytest.raises(ContractError):
        MulticalibratorModel.load(str(saved))


def test_nothing_is_pickled(saved):
    names = {p.suffix for p in Path(saved).rglob("*") if p.is_file() and not p.name.startswith((".", "_"))}
    assert names <= {".json", ".txt", ".parquet"}


def test_a_loaded_model_is_saved_whole(fitted, saved, tmp_path):
    """With the LightGBM texts, which scoring does not read; without them where they were lost."""
    model = MulticalibratorModel.load(str(saved))
    model.save(str(tmp_path / "again"))
    assert (tmp_path / "again" / "trees_0.txt").read_bytes() == (saved / "trees_0.txt").read_bytes()
    model.write().overwrite().save(str(tmp_path / "again"))  # over itself
    (tmp_path / "again" / "trees_0.txt").unlink()
    without = MulticalibratorModel.load(str(tmp_path / "again"))
    assert without.texts == ()
    assert without.calibrator.to_dict() == model.calibrator.to_dict()


@pytest.mark.parametrize("families", [(), (Family("value", "sex", (), columns=("sex",), seen=(1, 2)),)])
def test_a_calibrator_of_no_group_is_saved_and_scores(spark, tmp_path, families):
    """All names of its curves are null, and a table has no column of nulls that are of no type."""
    form = AdditiveForm(
        thresholds=np.array([0.5]), constant=0.1, base=np.zeros(2), curves=np.zeros((0, 2)),
        pairs=np.zeros((0, 2), dtype=np.int64), pair_values=np.zeros(0),
    )  # fmt: skip
    model = MulticalibratorModel(FittedGroups(families), Stages((Stage("identity", form, 1),), ()))
    model.save(str(tmp_path / "model"))
    loaded = MulticalibratorModel.load(str(tmp_path / "model"))
    rows = loaded.transform(spark.createDataFrame([(0.2, 1), (0.6, 2)], "score double, sex int")).collect()
    assert [round(row["calibrated_score"], 9) for row in rows] == [0.3, 0.7]
    curves = spark.read.parquet(str(tmp_path / "model" / "curves"))
    assert dict(curves.dtypes)["group_name"] == "string"
