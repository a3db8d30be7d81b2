"""How the trees are grown: the paper's settings, or settings chosen by the early-stopping loss.

The choice is a coordinate search from cheap settings. Candidates differ in one setting from the best so far,
have one round each, and are compared on the early-stopping cells, pair by pair: a candidate replaces the best
only if it lowers the loss by more than the standard error of the difference. So among settings that the rows
cannot tell apart the earlier one is chosen, and the search begins with the simplest and cheapest: the logit
link at learning rate 1, which needs about a tenth of the trees of the paper's rate.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from mcspark.core.cells.cells import Cells, Role
from mcspark.core.cells.levels import FloatArray
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

SEARCHED = ("link", "learning_rate", "min_rows_in_leaf", "rounds", "refit")
"""Settings that the recipe ``auto`` chooses, unless they are given."""

FREE_WORK = 100_000_000
"""Most cells times trees of a search beyond its first candidate, some seconds: where one fit costs more by
itself, the first candidate that gains is chosen."""

MOST_FITS = 2.0
"""Most trees of the search and of growing them again, as a multiple of those that the paper's rate needs."""

SMALL_WORK = 10_000_000
"""Cells times trees that a search may cost whatever a fit costs, about a second."""

_PAPERS_RATE = 0.1

_STEPS: tuple[Mapping[str, Any], ...] = (
    {"link": "identity"},
    {"min_rows_in_leaf": 100},
    {"learning_rate": 0.3},
    {"link": "identity", "learning_rate": 0.3, "min_rows_in_leaf": TreeSettings().min_rows_in_leaf},
)
"""What is changed of the best so far, cheap settings first. The last are the paper's at three times its rate,
which costs a third: so where they are affordable, nothing is chosen that is worse than they are."""


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
    told: Told = lambda *_: None,
) -> RecipeFit:
    """Fit with the settings as they stand; see :func:`mcspark.core.training.rounds.fit_stages`."""
    fit = fit_stages(cells, settings, train, rounds, told)
    return RecipeFit(fit, settings, Recipe.of("paper", settings, fit))


def fit_auto(
    cells: Cells,
    settings: TreeSettings,
    train: Train,
    rounds: int | Literal["auto"] = "auto",
    *,
    given: Collection[str] = (),
    search: Train | None = None,
    told: Told = lambda *_: None,
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
    told : callable
        Hears of the rounds of the chosen settings after the first.
    tried : callable
    """
    start = replace(
        settings,
        link=settings.link if "link" in given else "logit",
        learning_rate=settings.learning_rate if "learning_rate" in given else 1.0,
        refit=False,
    )
    count: int | Literal["auto"] = rounds if "rounds" in given else "auto"
    wants_refit = settings.refit if "refit" in given else True
    cells = learned_from(cells)
    if not both_parts(cells):
        nothing = StagesFit(Stages((), cells.groups), (), ())
        return RecipeFit(nothing, start, Recipe.of("auto", start, nothing))
    search = search or train
    trials = _search(cells, start, search, count, given, tried)
    best = next(trial for trial in trials if trial.best)
    fit = best.fit
    if best.gains:
        fit = fit_stages(cells, best.settings, search, count, told, begun=fit)
    elif fit.stages.stages:
        fit = replace(
            fit, stages=Stages((), cells.groups), texts=(), rounds=(replace(fit.rounds[0], kept=False),)
        )
    candidates = tuple(trial.candidate(fit if trial.best else None) for trial in trials)
    if fit.stages.stages:
        again = refitted(cells, fit, best.settings, train) if wants_refit else fit
        if search is not train and not again.refitted:
            again = fit_stages(cells, best.settings, train, len(fit.stages.stages))
        fit = again
    settings = replace(best.settings, refit=wants_refit)
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
        state = fit.stages.apply_signatures(stopping.mean_score, stopping.signature, stopping.membership)
        gains = found.gain > (found.noise if rounds == "auto" else 0.0)
        why = "the first candidate" if gains else "gains nothing beyond noise"
        return _Trial(settings, fit, state, gains, why)

    best = trial(start)
    best.best = True
    tried(best.candidate())
    trials, budget = [best], _Budget(len(lighter(cells)), best)
    for step in _STEPS:
        settings = replace(best.settings, **{key: value for key, value in step.items() if key not in given})
        if any(settings == known.settings for known in trials):
            continue
        if best.gains and not budget.allows(best, settings):
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
    """Whether a search may go on: see :data:`FREE_WORK`, :data:`SMALL_WORK` and :data:`MOST_FITS`."""

    def __init__(self, cells: int, first: _Trial) -> None:
        s = first.settings
        self._cells = cells
        self._spent = 0
        paper = min(first.trees * max(s.learning_rate / _PAPERS_RATE, 1.0), s.max_trees)
        self._most = MOST_FITS * (paper + s.early_stopping_rounds)
        self.spend(first)

    def spend(self, trial: _Trial) -> None:
        self._spent += trial.trees + trial.settings.early_stopping_rounds

    def allows(self, best: _Trial, settings: TreeSettings) -> bool:
        """Whether a fit with these settings, and growing its trees again, is expected to fit in."""
        trees = best.trees * max(best.settings.learning_rate / settings.learning_rate, 1.0)
        one = min(trees, settings.max_trees) + settings.early_stopping_rounds
        work = (self._spent + one) * self._cells
        return work <= SMALL_WORK or (work <= FREE_WORK and self._spent + 2 * one <= self._most)
