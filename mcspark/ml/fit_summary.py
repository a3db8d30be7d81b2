"""What a fit did, as far as a model remembers it."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, field
from typing import Any

from mcspark.core.calibrator import SignatureCalibrator
from mcspark.core.cells.cells import Cells
from mcspark.core.model.stages import MAX_STAGES, Stages
from mcspark.core.training.rounds import Round, Saturation

_MOST_TEXT = 200


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
    cells : Cells, optional
        The cells it learned from, test cells included; None of a model that was loaded.
    """

    groups: tuple[str, ...]
    trees: tuple[int, ...] = ()
    rounds: tuple[Round, ...] = ()
    saturation: Saturation | None = None
    engine: str | None = None
    cells: Cells | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any] | None:
        """Plain JSON form of what the model does not say elsewhere; None where there is nothing of it."""
        if not self.rounds and self.saturation is None and self.engine is None:
            return None
        return {
            "rounds": [asdict(found) for found in self.rounds],
            "saturation": None if self.saturation is None else asdict(self.saturation),
            "engine": self.engine,
        }

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
        if not isinstance(plain, dict) or set(plain) != {"rounds", "saturation", "engine"}:
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
        )


def trees_of(calibrator: SignatureCalibrator) -> tuple[int, ...]:
    """Trees of each stage."""
    return tuple(s.trees for s in calibrator.stages) if isinstance(calibrator, Stages) else ()


def _round(plain: Any) -> Round:
    numbers = _numbers(plain, ("loss_before", "loss_after", "noise"), ("trees", "kept"))
    trees, kept = plain["trees"], plain["kept"]
    if type(trees) is not int or trees < 0 or not isinstance(kept, bool):
        raise ValueError(f"a round of {trees!r} trees, kept {kept!r}, is none")
    return Round(trees=trees, kept=kept, **numbers)


def _numbers(plain: Any, names: tuple[str, ...], others: tuple[str, ...] = ()) -> dict[str, float]:
    if not isinstance(plain, dict) or set(plain) != {*names, *others}:
        raise ValueError(f"its record of the fit needs exactly the numbers {', '.join(names + others)}")
    values = {name: plain[name] for name in names}
    for name, value in values.items():
        if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
            raise ValueError(f"{name} of its record of the fit is {value!r}")
    return {name: float(value) for name, value in values.items()}
