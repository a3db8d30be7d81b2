"""All that says how the trees of a calibrator are grown, as one value that other processes understand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mcspark.core.cells.cells import Cells
from mcspark.core.training.recipe import RecipeFit, RecipeName, Tried, fit_auto, fit_paper
from mcspark.core.training.rounds import Told
from mcspark.core.training.training_table import Train, TreeSettings


@dataclass(frozen=True)
class Growing:
    """How trees are grown.

    Parameters
    ----------
    recipe : {'auto', 'paper'}
    settings : TreeSettings
    rounds : int or 'auto'
    given : frozenset of str
        Settings that the recipe ``auto`` keeps as they are.
    """

    recipe: RecipeName
    settings: TreeSettings
    rounds: int | Literal["auto"]
    given: frozenset[str]

    def fit(
        self, cells: Cells, train: Train, *, on_round: Told = lambda *_: None, tried: Tried = lambda _: None
    ) -> RecipeFit:
        """The trees that these cells give; see :mod:`mcspark.core.training.recipe`."""
        if self.recipe == "paper":
            return fit_paper(cells, self.settings, train, self.rounds, on_round)
        return fit_auto(
            cells, self.settings, train, self.rounds, given=self.given,
            search=getattr(train, "search", None), on_round=on_round, tried=tried,
        )  # fmt: skip
