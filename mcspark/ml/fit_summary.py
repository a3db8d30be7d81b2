"""What a fit did, as far as a model remembers it."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, field
from typing import Any, get_args

from mcspark.core.calibrator import SignatureCalibrator
from mcspark.core.cells.cells import Cells
from mcspark.core.model.stages import MAX_STAGES, Link, Stages
from mcspark.core.training.recipe import Candidate, Recipe
from mcspark.core.training.rounds import Round, Saturation

_MOST_TEXT = 200
LINKS = get_args(Link)


@dataclass(frozen=True)
class FitSummary:
    """What a fit did. All but the cells is saved with the model.

    Parameters
    ----------
    groups : tuple of str
        Names of the groups.
    trees : tuple of int
        Trees of each stage; empty for a calibrator that is not made of trees, or that changes nothing.
    rounds : tuple of Round
        Every round that was tried, with the held-out loss before and after it.
    saturation : Saturation, optional
        What one more round would gain on the test rows.
    engine : str, optional
        Name and version of what trained the trees.
    recipe : Recipe, optional
        The settings of the trees, and how they were chosen.
    cells : Cells, optional
        The cells it learned from, test cells included; None of a model that was loaded.
    """

    groups: tuple[str, ...]
    trees: tuple[int, ...] = ()
    rounds: tuple[Round, ...] = ()
    saturation: Saturation | None = None
    engine: str | None = None
    recipe: Recipe | None = None
    cells: Cells | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any] | None:
        """Plain JSON form of what the model does not say elsewhere; None where there is nothing of it."""
        if not self.rounds and self.saturation is None and self.engine is None:
            return None
        return {
            "rounds": [asdict(found) for found in self.rounds],
            "saturation": None if self.saturation is None else asdict(self.saturation),
            "engine": self.engine,
            **({} if self.recipe is None else {"recipe": asdict(self.recipe)}),
        }

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know of the fit, with the mend."""
        kept = [found for found in self.rounds if found.kept]
        return tuple(
            f"stage {i} stopped at calibrator.max_trees, with {found.trees:,} trees, while the "
            "early-stopping loss could still fall: raise calibrator.max_trees, or calibrator.learning_rate"
            for i, found in enumerate(kept, start=1)
            if found.capped
        )

    @property
    def refitted(self) -> bool:
        """Whether the trees were grown on the early-stopping rows too."""
        return self.recipe is not None and self.recipe.refit

    @classmethod
    def from_dict(cls, plain: Any, groups: tuple[str, ...], calibrator: SignatureCalibrator) -> FitSummary:
        """Inverse of :meth:`to_dict`, for files that are not trusted; ``None`` where there is no record.

        Raises
        ------
        ValueError
            If anything is missing, of the wrong type or out of range.
        """
        if plain is None:
            return cls(groups, trees_of(calibrator))
        if not isinstance(plain, dict) or set(plain) - {"recipe"} != {"rounds", "saturation", "engine"}:
            raise ValueError("its record of the fit must have exactly the keys engine, rounds and saturation")
        rounds, saturation, engine = plain["rounds"], plain["saturation"], plain["engine"]
        if not isinstance(rounds, list) or len(rounds) > MAX_STAGES:
            raise ValueError(f"its rounds must be a list of at most {MAX_STAGES}")
        if engine is not None and not (isinstance(engine, str) and engine[:_MOST_TEXT] == engine):
            raise ValueError("its engine must be a short text")
        return cls(
            groups,
            trees_of(calibrator),
            tuple(map(_round, rounds)),
            None if saturation is None else Saturation(**_numbers(saturation, ("loss", "loss_second"))),
            engine,
            None if plain.get("recipe") is None else _recipe(plain["recipe"]),
        )


def trees_of(calibrator: SignatureCalibrator) -> tuple[int, ...]:
    """Trees of each stage."""
    return tuple(s.trees for s in calibrator.stages) if isinstance(calibrator, Stages) else ()


def _round(plain: Any) -> Round:
    plain = {"capped": False, **plain} if isinstance(plain, dict) else plain  # earlier versions lack it
    numbers = _numbers(plain, ("loss_before", "loss_after", "noise"), ("trees", "kept", "capped"))
    trees, kept, capped = plain["trees"], plain["kept"], plain["capped"]
    if not _is_count(trees) or not isinstance(kept, bool) or not isinstance(capped, bool):
        raise ValueError(f"a round of {trees!r} trees, kept {kept!r}, capped {capped!r}, is none")
    return Round(trees=trees, kept=kept, capped=capped, **numbers)


def _recipe(plain: Any) -> Recipe:
    others = ("name", "link", "min_rows_in_leaf", "rounds", "refit", "candidates")
    numbers = _numbers(plain, ("learning_rate",), others)
    name, link, least, rounds, refit, candidates = (plain[key] for key in others)
    right = name in ("auto", "paper") and link in LINKS and _is_count(least) and _is_count(rounds)
    if not right or not isinstance(refit, bool) or not isinstance(candidates, list):
        raise ValueError("its recipe is none: a name, link, counts, refit or candidates of another kind")
    if len(candidates) > MAX_STAGES:
        raise ValueError(f"its candidates must be a list of at most {MAX_STAGES}")
    return Recipe(
        name=name, link=link, min_rows_in_leaf=least, rounds=rounds, refit=refit,
        candidates=tuple(map(_candidate, candidates)), **numbers,
    )  # fmt: skip


def _candidate(plain: Any) -> Candidate:
    others = ("link", "min_rows_in_leaf", "trees", "chosen", "why")
    numbers = _numbers(plain, ("learning_rate", "loss"), others)
    link, least, trees, chosen, why = (plain[key] for key in others)
    right = link in LINKS and _is_count(least) and isinstance(chosen, bool) and isinstance(trees, list)
    if not right or len(trees) > MAX_STAGES or not all(map(_is_count, trees)):
        raise ValueError("a candidate of its recipe is none: a link, counts or chosen of another kind")
    if not (isinstance(why, str) and why[:_MOST_TEXT] == why):
        raise ValueError("the reason of a candidate must be a short text")
    return Candidate(link=link, min_rows_in_leaf=least, trees=tuple(trees), chosen=chosen, why=why, **numbers)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _numbers(plain: Any, names: tuple[str, ...], others: tuple[str, ...] = ()) -> dict[str, float]:
    if not isinstance(plain, dict) or set(plain) != {*names, *others}:
        raise ValueError(f"its record of the fit needs exactly the numbers {', '.join(names + others)}")
    values = {name: plain[name] for name in names}
    for name, value in values.items():
        if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
            raise ValueError(f"{name} of its record of the fit is {value!r}")
    return {name: float(value) for name, value in values.items()}
