"""How the trees are grown: the paper's settings, or settings chosen by the early-stopping loss.

The choice begins with what suits the rows: the logit link for labels of 0 and 1, else the identity link; a
learning rate of 1 for many rows, which needs an eighth of the trees of the paper's rate, else of 0.3, where a
whole step of a noisy leaf costs more than it saves. Where there is room under the cost of the paper's fit, a
coordinate search goes on from there. Candidates have one round each and are compared on the early-stopping
cells, pair by pair: a candidate replaces the best only if it lowers the loss by more than the standard error
of the difference, so among settings that the rows cannot tell apart the earlier one is chosen.

A further round stays only if it gains more than the first one's gain is known to: what is less is not worth a
stage, and the trees of such rounds, all of whose splits are near the noise, move large groups by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from mcspark.core.cells.cells import Cells, Role, effective_rows
from mcspark.core.cells.levels import FloatArray
from mcspark.core.metrics.noise import has_binary_labels
from mcspark.core.model.stages import Link, Stages
from mcspark.core.training.rounds import (
    StagesFit,
    Told,
    both_parts,
    fit_stages,
    judge,
    learned_from,
    refitted,
)
from mcspark.core.training.training_table import Train, TreeSettings, lighter

RecipeName = Literal["auto", "paper"]

SEARCHED = ("link", "learning_rate", "min_rows_in_leaf", "early_stopping_rounds", "rounds", "refit")
"""Settings that the recipe ``auto`` chooses, unless they are given."""

MANY_ROWS = 50_000
"""Effective rows from which a learning rate of 1 loses nothing."""

FREE_WORK = 20_000_000
"""Most cells times trees of a search beyond its first candidate, about two seconds: where one fit costs more
by itself, the rows are many enough for the first candidate."""

MOST_FITS = 1.6
"""Most that learning should cost as a multiple of the paper's settings: search, trees grown again, and
the further round that tells whether the loss is saturated. What turns out dearer stays below two."""

TREE_COST: Mapping[Link, float] = {"identity": 1.0, "logit": 2.0}
"""What a tree costs, in trees of the identity link: cross-entropy takes exponentials and logarithms."""

FIXED_COST = 50.0
"""What an ensemble costs beside its trees, in the same unit."""

SHORT_PATIENCE = 25
"""Trees without a lower early-stopping loss before an ensemble ends: at learning rate 1, where each learns
more, and in further rounds, most of which gain nothing."""

_SLOWER = 0.8
"""A tenth of the rate takes eight times the trees, not ten: the early-stopping loss turns sooner."""

_STEPS: tuple[Mapping[str, Any], ...] = (
    {"learning_rate": 1.0},
    {"link": "identity"},
    {"min_rows_in_leaf": 100},
)
"""What is changed of the best so far, cheap settings first."""


@dataclass(frozen=True)
class Candidate:
    """Settings that were tried.

    Parameters
    ----------
    link : {'identity', 'logit'}
    learning_rate : float
    min_rows_in_leaf : int
    trees : tuple of int
        Trees of each round, kept or not; more than one of the chosen candidate alone.
    loss : float
        Mean squared loss of the early-stopping rows, after the rounds that were kept.
    chosen : bool
    why : str
        What decided, in words.
    """

    link: Link
    learning_rate: float
    min_rows_in_leaf: int
    trees: tuple[int, ...]
    loss: float
    chosen: bool
    why: str

    @property
    def words(self) -> str:
        """One line about it."""
        trees = " + ".join(f"{n:,}" for n in self.trees)
        settings = f"{self.link}, rate {self.learning_rate:g}, {self.min_rows_in_leaf} rows in a leaf"
        return f"{settings}: {trees} trees, held-out loss {self.loss:.6f}; {self.why}"


@dataclass(frozen=True)
class Recipe:
    """The settings that a calibrator's trees were grown with, and how they were chosen.

    Parameters
    ----------
    name : {'auto', 'paper'}
    link : {'identity', 'logit'}
    learning_rate : float
    min_rows_in_leaf : int
    rounds : int
        Rounds that became stages.
    refit : bool
        Whether the stages were grown again on the early-stopping rows too.
    candidates : tuple of Candidate
        What was tried, in order; none with the recipe ``paper``.
    """

    name: RecipeName
    link: Link
    learning_rate: float
    min_rows_in_leaf: int
    rounds: int
    refit: bool
    candidates: tuple[Candidate, ...] = ()

    @classmethod
    def of(
        cls,
        name: RecipeName,
        settings: TreeSettings,
        fit: StagesFit,
        candidates: tuple[Candidate, ...] = (),
    ) -> Recipe:
        """What a fit used."""
        return cls(
            name, settings.link, settings.learning_rate, settings.min_rows_in_leaf,
            len(fit.stages.stages), fit.refitted, candidates,
        )  # fmt: skip


Tried = Callable[[Candidate], None]
"""Hears of each candidate when it has been judged."""


class RecipeFit(NamedTuple):
    """Result of :func:`fit_auto` and :func:`fit_paper`.

    Parameters
    ----------
    fit : StagesFit
    settings : TreeSettings
        Those that were chosen.
    recipe : Recipe
    """

    fit: StagesFit
    settings: TreeSettings
    recipe: Recipe


def fit_paper(
    cells: Cells,
    settings: TreeSettings,
    train: Train,
    rounds: int | Literal["auto"] = 1,
    on_round: Told = lambda *_: None,
) -> RecipeFit:
    """Fit with the settings as they stand; see :func:`mcspark.core.training.rounds.fit_stages`."""
    fit = fit_stages(cells, settings, train, rounds, on_round)
    return RecipeFit(fit, settings, Recipe.of("paper", settings, fit))


def fit_auto(
    cells: Cells,
    settings: TreeSettings,
    train: Train,
    rounds: int | Literal["auto"] = "auto",
    *,
    given: Collection[str] = (),
    search: Train | None = None,
    on_round: Told = lambda *_: None,
    tried: Tried = lambda _: None,
) -> RecipeFit:
    """Choose the settings by the early-stopping loss, and fit with them.

    Parameters
    ----------
    cells : Cells
    settings : TreeSettings
        Those of :data:`SEARCHED` that are not ``given`` are replaced.
    train : callable
        Grows the trees of the calibrator.
    rounds : int or 'auto'
        Number of rounds, if it is given.
    given : collection of str
        Settings that stay as they are.
    search : callable, optional
        Grows the trees of the candidates, where that is cheaper than ``train``.
    on_round : callable
        Hears of the rounds of the chosen settings after the first.
    tried : callable
    """
    count: int | Literal["auto"] = rounds if "rounds" in given else "auto"
    wants_refit = settings.refit if "refit" in given else True
    cells = learned_from(cells)
    start = _start(cells, replace(settings, refit=False), given)
    if not both_parts(cells):
        nothing = StagesFit(Stages((), cells.learned_names), (), ())
        return RecipeFit(nothing, start, Recipe.of("auto", start, nothing))
    search = search or train
    trials = _search(cells, start, search, count, given, tried)
    best = next(trial for trial in trials if trial.best)
    fit, further = best.fit, _with_patience(best.settings, given, short=True)
    if best.gains:
        least = fit.rounds[0].noise if count == "auto" else 0.0
        fit = fit_stages(cells, further, search, count, on_round, begun=fit, least=least)
    elif fit.stages.stages:
        fit = replace(
            fit,
            stages=Stages((), cells.learned_names),
            texts=(),
            rounds=(replace(fit.rounds[0], kept=False),),
        )
    candidates = tuple(trial.candidate(fit if trial.best else None) for trial in trials)
    if fit.stages.stages:
        again = refitted(cells, fit, best.settings, train) if wants_refit else fit
        if search is not train and not again.refitted:
            first = fit_stages(cells, best.settings, train)
            again = fit_stages(cells, further, train, len(fit.stages.stages), begun=first)
        fit = again
    settings = replace(further, refit=wants_refit)
    return RecipeFit(fit, settings, Recipe.of("auto", settings, fit, candidates))


@dataclass
class _Trial:
    """One round with some settings; ``best`` until another one is."""

    settings: TreeSettings
    fit: StagesFit
    state: FloatArray
    gains: bool
    why: str
    best: bool = False

    @property
    def trees(self) -> int:
        return self.fit.rounds[0].trees

    def candidate(self, whole: StagesFit | None = None) -> Candidate:
        """What is remembered of it; ``whole`` has all rounds of the chosen one."""
        rounds = (whole or self.fit).rounds
        kept = [found.loss_after for found in rounds if found.kept]
        s = self.settings
        return Candidate(
            s.link, s.learning_rate, s.min_rows_in_leaf, tuple(found.trees for found in rounds),
            kept[-1] if whole and kept else self.fit.rounds[0].loss_after, self.best, self.why,
        )  # fmt: skip


def _search(
    cells: Cells,
    start: TreeSettings,
    train: Train,
    rounds: int | Literal["auto"],
    given: Collection[str],
    tried: Tried,
) -> list[_Trial]:
    """One round of each candidate, the best of them marked."""
    stopping = cells.of_role(Role.early_stopping)

    def trial(settings: TreeSettings) -> _Trial:
        fit = fit_stages(cells, settings, train)
        found = fit.rounds[0]
        state = fit.stages.apply_signatures(stopping.mean_score, stopping.signature, stopping.learned)
        gains = found.gain > (found.noise if rounds == "auto" else 0.0)
        why = "the first candidate" if gains else "gains nothing beyond noise"
        return _Trial(settings, fit, state, gains, why)

    best = trial(start)
    best.best = True
    tried(best.candidate())
    trials, budget = [best], _Budget(len(lighter(cells)), best)
    for step in _STEPS:
        settings = replace(best.settings, **{key: value for key, value in step.items() if key not in given})
        settings = _with_patience(settings, given)
        if any(settings == known.settings for known in trials):
            continue
        if not budget.allows(best, settings):
            continue
        other = trial(settings)
        budget.spend(other)
        trials.append(other)
        found = judge(stopping, best.state, other.state, other.trees)
        words = f"by {found.gain:.2g}, standard error {found.noise:.2g}"
        if other.gains and (not best.gains or found.gain > found.noise):
            other.why = f"lower than the best before it {words}" if best.gains else "the first that gains"
            best.best, other.best, best = False, True, other
        elif other.gains:
            other.why = f"not lower than the best beyond noise: {words}"
        tried(other.candidate())
    return trials


class _Budget:
    """Whether a search may go on: see :data:`FREE_WORK` and :data:`MOST_FITS`."""

    def __init__(self, cells: int, first: _Trial) -> None:
        self._cells = cells
        self._spent = 0.0
        paper = TreeSettings(max_trees=first.settings.max_trees)
        self._most = MOST_FITS * (_cost(paper, _trees(first, paper)) + _cost(paper, 1))
        self.spend(first)

    def spend(self, trial: _Trial) -> None:
        self._spent += _cost(trial.settings, trial.trees)

    def allows(self, best: _Trial, settings: TreeSettings) -> bool:
        """Whether a fit with these settings, and all that is grown after the search, should fit in."""
        one = _cost(settings, _trees(best, settings))
        # The dearest of what may be chosen is grown again, and two rounds more are tried of it.
        after = max(
            TREE_COST[s.link] * _trees(best, s) + FIXED_COST + 2 * _cost(s, 1)
            for s in (best.settings, settings)
        )
        within = self._spent + one + after <= self._most
        return within and (self._spent + one) * self._cells <= FREE_WORK


def _start(cells: Cells, settings: TreeSettings, given: Collection[str]) -> TreeSettings:
    """The first candidate: see the head of this module."""
    if not len(cells):
        return settings
    rows = float(effective_rows(cells.weight.sum(), cells.weight_sq.sum(), cells.n.sum()))
    found: dict[str, Any] = {
        "link": "logit" if has_binary_labels(cells) else "identity",
        "learning_rate": 1.0 if rows >= MANY_ROWS else 0.3,
    }
    settings = replace(settings, **{key: value for key, value in found.items() if key not in given})
    return _with_patience(settings, given)


def _with_patience(settings: TreeSettings, given: Collection[str], *, short: bool = False) -> TreeSettings:
    """Patience that becomes the learning rate, unless it is given."""
    if "early_stopping_rounds" in given:
        return settings
    patience = TreeSettings().early_stopping_rounds
    if short or settings.learning_rate == 1:
        patience = SHORT_PATIENCE
    return replace(settings, early_stopping_rounds=patience, least_gain=1.0)


def _trees(known: _Trial, settings: TreeSettings) -> float:
    """Trees that a fit with these settings is expected to need."""
    slower = _SLOWER * known.settings.learning_rate / settings.learning_rate
    return min(known.trees * max(slower, 1.0), settings.max_trees)


def _cost(settings: TreeSettings, trees: float) -> float:
    """Cost of one early-stopped ensemble, in trees of the identity link."""
    return TREE_COST[settings.link] * (trees + settings.early_stopping_rounds) + FIXED_COST
