import json

import numpy as np
import pandas as pd
import pytest
from miscalibrated import applied

from mcspark import (
    CalibratedMultiaccuracy,
    GroupSet,
    Isotonic,
    LSBoost,
    MCBoost,
    Multiaccuracy,
    MulticalibratorModel,
    Platt,
    SquareLev,
    Temperature,
    Uncalibrated,
)
from mcspark.config import Calibrator
from mcspark.core.baselines.calibrated_multiaccuracy import calibrated
from mcspark.core.baselines.lsboost import fit_lsboost
from mcspark.core.baselines.mcboost import fit_mcboost
from mcspark.core.baselines.multiaccuracy import fit_multiaccuracy
from mcspark.core.baselines.recalibration import fit_isotonic, fit_logit
from mcspark.core.baselines.squarelev import fit_squarelev
from mcspark.core.cells.cells import Role
from mcspark.core.saved import digest as _digest
from mcspark.errors import ContractError
from mcspark.ml.methods import estimator_of

GROUPS = {
    "min_share": 0.0,
    "columns": [{"column": "SEX"}, {"column": "AGEP", "bins": [0, 30, 60, 120]}],
    "predicates": [{"name": "young_women", "where": "SEX = 2 AND AGEP < 30"}],
}
SMALL = {"scoreBins": 20, "levels": [10, 20]}
ESTIMATORS = {
    "none": (Uncalibrated, {}),
    "multiaccuracy": (Multiaccuracy, {"penalties": [0.0, 1e-3]}),
    "mcboost": (MCBoost, {"grid": 15, "patience": 7}),
    "lsboost": (LSBoost, {"grid": 20, "depth": 2, "learningRate": 0.3, "subsample": 0.5, "seed": 3}),
    "squarelev": (SquareLev, {"maxRounds": 12}),
    "isotonic": (Isotonic, {"byGroup": True}),
    "platt": (Platt, {}),
    "temperature": (Temperature, {}),
    "calibrated_multiaccuracy": (CalibratedMultiaccuracy, {"penalties": [0.0, 1e-3]}),
}


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(5)
    n = 3000
    table = pd.DataFrame({"SEX": rng.integers(1, 3, n), "AGEP": rng.integers(16, 90, n)})
    table["score"] = np.round(rng.random(n), 6)
    truth = np.clip(table["score"] + 0.2 * (table["SEX"] == 2) - 0.15 * (table["AGEP"] > 60), 0, 1)
    table["label"] = (rng.random(n) < truth).astype(float)
    table["w"] = rng.integers(1, 4, n).astype(float)
    table["split"] = rng.choice(["fit", "early_stopping", "test"], n, p=[0.5, 0.2, 0.3])
    return table


@pytest.fixture(scope="module")
def frame(spark, people):
    kept = spark.createDataFrame(people).persist()
    yield kept
    kept.unpersist()


@pytest.fixture(scope="module")
def models(frame):
    return {
        name: kind(groups=GROUPS, weightCol="w", **SMALL, **settings).fit(frame)
        for name, (kind, settings) in ESTIMATORS.items()
    }


def wanted_fit(name, cells):
    fit, stop = cells.of_role(Role.fit), cells.of_role(Role.early_stopping)
    learned = cells.of_role(Role.fit, Role.early_stopping)
    fits = {
        "multiaccuracy": lambda: fit_multiaccuracy(fit, stop, [0.0, 1e-3]),
        "mcboost": lambda: fit_mcboost(fit, stop, 15, patience=7),
        "lsboost": lambda: fit_lsboost(fit, stop, 20, depth=2, learning_rate=0.3, subsample=0.5, seed=3),
        "squarelev": lambda: fit_squarelev(fit, stop, max_rounds=12),
        "isotonic": lambda: fit_isotonic(learned, by_group=True),
        "platt": lambda: fit_logit(learned),
        "temperature": lambda: fit_logit(learned, shift=False),
        "calibrated_multiaccuracy": lambda: calibrated(fit_multiaccuracy(fit, stop, [0.0, 1e-3]), learned),
    }
    return fits[name]()


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "none"])
def test_a_baseline_is_the_solver_on_the_learning_cells(models, name):
    model = models[name]
    assert model.method == name
    wanted = wanted_fit(name, model.summary.cells)
    assert json.dumps(model.calibrator.to_dict()) == json.dumps(wanted.to_dict())


def test_the_grid_of_a_method_becomes_score_bin_edges(models):
    assert models["mcboost"].summary.cells.bins.base == 60
    assert models["none"].summary.cells.bins.base == 20


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_rows_are_scored_as_the_solver_scores_them(frame, people, models, name):
    model = models[name]
    found = model.transform(frame).toPandas()
    member = np.column_stack(
        [
            people["SEX"] == 1,
            people["SEX"] == 2,
            *[(people["AGEP"] >= a) & (people["AGEP"] < b) for a, b in ((0, 30), (30, 60), (60, 120))],
            (people["SEX"] == 2) & (people["AGEP"] < 30),
        ]
    )
    keys = ["score", "SEX", "AGEP", "label", "w", "split"]
    wanted = people.assign(calibrated_score=applied(model.calibrator, people["score"].to_numpy(), member))
    found, wanted = (t.sort_values(keys)["calibrated_score"].to_numpy() for t in (found, wanted))
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    moved = np.abs(wanted - people.sort_values(keys)["score"].to_numpy()).mean()
    assert (moved == 0) if name == "none" else (moved > (0.001 if name == "temperature" else 0.02))


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_a_saved_baseline_scores_alike(frame, models, name, tmp_path):
    path = f"file://{tmp_path}/model"
    models[name].write().save(path)
    loaded = MulticalibratorModel.load(path)
    assert (loaded.method, loaded.fitted) == (name, models[name].fitted)
    before, after = (
        m.transform(frame).orderBy("score").toPandas()["calibrated_score"] for m in (models[name], loaded)
    )
    np.testing.assert_array_equal(before, after)


def test_a_stored_baseline_about_other_groups_is_refused(models, tmp_path):
    models["mcboost"].write().save(f"file://{tmp_path}/model")
    file = tmp_path / "model" / "model.json"
    plain = json.loads(file.read_text())
    plain["calibrator"]["n_groups"] += 1
    file.write_text(json.dumps({**plain, "sha256": _digest(plain)}))
    with pytest.raises(ContractError, match="7 groups, but 6"):
        MulticalibratorModel.load(f"file://{tmp_path}/model")


def test_unknown_parameters_are_refused():
    with pytest.raises(TypeError, match="no parameter depht"):
        LSBoost(depht=2)
    with pytest.raises(TypeError, match="no parameter learningRate"):
        MCBoost(learningRate=0.1)


def test_copies_keep_their_own_settings():
    one = LSBoost(groups=GroupSet.from_config(GROUPS), grid=10)
    other = one.copy({one.grid: 30})
    assert (one.grids, other.grids) == ((10,), (30,))
    assert (MCBoost().getOrDefault("patience"), LSBoost().getOrDefault("patience")) == (100, 10)


@pytest.mark.parametrize("method", list(ESTIMATORS))
def test_the_configuration_names_the_estimator(method):
    section = Calibrator.model_validate(
        {"method": method, "mcboost": {"levels": 12}, "lsboost": {"levels": 25, "depth": 2}}
    )
    estimator = estimator_of(section)
    assert isinstance(estimator, ESTIMATORS[method][0])
    assert estimator.grids == {"mcboost": (12,), "lsboost": (25,)}.get(method, ())
