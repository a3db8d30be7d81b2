"""How many groups a calibrator may have is one number, told before anything is trained."""

import numpy as np
import pytest

from mcspark.core.cells.groups import MAX_GROUPS, Family, FittedGroups
from mcspark.core.model.additive import AdditiveForm
from mcspark.core.model.stages import Stage, Stages
from mcspark.errors import ContractError
from mcspark.ml import persistence
from mcspark.ml.cells import groups
from mcspark.ml.cells.groups import GroupSet
from mcspark.ml.multicalibrator import MulticalibratorModel


def family(size, name="job"):
    names = tuple(range(size))
    return Family("value", name, names, columns=(name,), seen=names)


def chosen(monkeypatch, families, sizes, **settings):
    shares = [dict.fromkeys(range(size), 1 / max(size, 1)) for size in sizes]
    monkeypatch.setattr(groups, "category_shares", lambda *_: shares)
    return GroupSet(tuple(families), **settings).fit(None)


def model_of(fitted, bins=1):
    n = len(fitted.names)
    form = AdditiveForm(
        thresholds=np.linspace(0.1, 0.9, bins - 1),
        constant=0.0,
        base=np.zeros(bins),
        curves=np.zeros((n, bins)),
        pairs=np.zeros((0, 2), dtype=np.int64),
        pair_values=np.zeros(0),
    )
    return MulticalibratorModel(fitted, Stages((Stage("identity", form, 1),), fitted.names))


def test_as_many_groups_as_are_chosen_are_read(monkeypatch):
    jobs = [Family("value", "job", columns=("job",)), Family("value", "age", columns=("age",))]
    fitted = chosen(monkeypatch, jobs, [MAX_GROUPS - 1, 1], min_share=0.0)
    assert len(fitted.names) == MAX_GROUPS
    assert FittedGroups.from_dict(fitted.to_dict()) == fitted
    text = persistence._checked_text(MulticalibratorModel, persistence._plain(model_of(fitted)))
    assert persistence.model_from_text(MulticalibratorModel, text).fitted == fitted


def test_more_groups_are_refused_when_they_are_chosen(monkeypatch):
    jobs = [Family("value", "job", columns=("job",)), Family("value", "age", columns=("age",))]
    with pytest.raises(ContractError, match=r"^4097 groups; a calibrator has 4096 at the most; raise"):
        chosen(monkeypatch, jobs, [MAX_GROUPS, 1], min_share=0.0)


def test_more_intersections_are_refused_too(monkeypatch):
    wanted = [Family("value", name, columns=(name,)) for name in ("a", "b")]
    # Every value of a meets every value of b: 100 + 100 + 10,000 groups.
    words = np.array([[i + 1 | (j + 1) << 7] for i in range(100) for j in range(100)], dtype=np.int64)
    monkeypatch.setattr(groups, "signature_weights", lambda *_: (words, np.ones(len(words))))
    with pytest.raises(ContractError, match=r"^over \d+ groups; .* or set groups.intersections to 1"):
        chosen(monkeypatch, wanted, [100, 100], min_share=0.0, intersections=2)


def test_no_group_at_all_is_refused_with_the_largest_category(monkeypatch):
    wanted = [Family("value", "sex", columns=("sex",)), Family("value", "job", columns=("job",))]
    with pytest.raises(ContractError, match=r"no category of sex, job holds more .* 0.99 .*sex=1 with 0.5"):
        chosen(monkeypatch, wanted, [2, 3], min_share=0.99)
    with pytest.raises(ContractError, match=r"no group is left.*all their values are missing"):
        chosen(monkeypatch, wanted, [0, 0])
    assert chosen(monkeypatch, [], []).names == ()


def test_a_model_that_could_not_be_read_is_not_written(monkeypatch):
    model = model_of(FittedGroups((family(3),)), bins=4)
    monkeypatch.setattr(persistence, "MAX_BYTES", 500)
    with pytest.raises(ContractError, match=r"the model takes 0 MiB, and 0 are read"):
        persistence._checked_text(MulticalibratorModel, persistence._plain(model))
    monkeypatch.setattr(persistence, "MAX_BYTES", 10**6)
    monkeypatch.setattr("mcspark.core.cells.groups.MAX_GROUPS", 2)
    with pytest.raises(ContractError, match=r"cannot be read again \(3 groups; at most 2 are read\)"):
        persistence._checked_text(MulticalibratorModel, persistence._plain(model))
