"""One configuration for each partition of a window, and what each of them reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

from mcspark.config import Config
from mcspark.data.kept import Wanted
from mcspark.data.leases.manifest import configuration_hash
from mcspark.errors import ConfigurationError
from mcspark.identifiers import day_like, day_of
from mcspark.ml.cells.groups import GroupSet
from mcspark.ml.methods import estimator_of


@dataclass(frozen=True)
class Partitions:
    """The partitions whose cells a run keeps or learns from.

    Parameters
    ----------
    config : Config
        Of a run that keeps cells.
    """

    config: Config

    @cached_property
    def own(self) -> Mapping[str, str]:
        """The partition of the run.

        Raises
        ------
        ConfigurationError
            If there is none, or the scored table or the labels have another one.
        """
        output, scored = self.config.output, self.config.scored.partition
        own = output.partition if output is not None else None
        if own is None or len(own) > 1:
            raise ConfigurationError(
                "cells are kept of partitions by one column, and output.partition is "
                f"{_name(own) if own else 'missing'}; name one, such as {{ds: '2026-11-26'}}"
            )
        if scored != own:
            raise ConfigurationError(
                f"cells are kept of the partition {_name(own)}, and scored.partition is "
                f"{_name(scored) if scored else 'missing'}; both must be the same"
            )
        self._check_labels(own)
        return own

    def _check_labels(self, own: Mapping[str, str]) -> None:
        """Refuse labels of a partition of which nobody could say what it is on another day of a window."""
        labels = self.config.labels
        there = labels.partition if labels is not None else None
        if there is not None and not own.items() <= there.items():
            raise ConfigurationError(
                f"cells are kept of the partition {_name(own)}, and labels.partition is {_name(there)}; name "
                f"{_name(own)} there too, or leave labels.partition out"
            )

    @property
    def column(self) -> str:
        """The partition column."""
        return next(iter(self.own))

    @property
    def name(self) -> str:
        """The partition of the run, as its folder is called."""
        return _name(self.own)

    def _days(self, first: int, last: int) -> list[str]:
        """Partitions so many days before the run's, the oldest first."""
        wanted, text = self.config.learn.column if self.config.learn else None, self.own[self.column]
        if wanted != self.column:
            raise ConfigurationError(
                f"learn.column is {wanted}, and output.partition is {self.name}; both must be of one column"
            )
        try:
            day = day_of(text)
        except ValueError as error:
            what = f"learn counts days, and output.partition.{self.column} {text!r} {error}"
            raise ConfigurationError(what) from None
        return [
            f"{self.column}={day_like(day - timedelta(days=n), text)}" for n in range(first, last - 1, -1)
        ]

    @cached_property
    def window(self) -> list[str]:
        """The partitions to learn from, the oldest first; the run's own where there is no window.

        Raises
        ------
        ConfigurationError
            If the run's partition is no day.
        """
        learn = self.config.learn
        if learn is None:
            return [self.name]
        return self._days(learn.mature_after + learn.last - 1, learn.mature_after)

    @property
    def needed(self) -> set[str]:
        """Partitions whose cells later runs need, too."""
        learn = self.config.learn
        return {self.name} if learn is None else set(self._days(learn.mature_after + learn.last - 1, 0))

    @property
    def held_out(self) -> str | None:
        """The partition that is held out as a whole."""
        return self.window[-1] if self.config.split.by == "time" else None

    def config_of(self, partition: str) -> Config:
        """The configuration of a run that would read another partition."""
        if partition == self.name:
            return self.config
        column, _, value = partition.partition("=")
        there = {column: value}
        tables: dict[str, Any] = {"scored": self.config.scored.model_copy(update={"partition": there})}
        labels, output = self.config.labels, self.config.output
        if labels is not None and labels.partition and column in labels.partition:
            tables["labels"] = labels.model_copy(update={"partition": {**labels.partition, **there}})
        if output is not None:
            tables["output"] = output.model_copy(update={"partition": there})
        return self.config.model_copy(update=tables)

    def wanted(self, partition: str, inputs: Mapping[str, str | None]) -> Wanted:
        """The cells of a partition whose inputs are in this state."""
        return Wanted(partition, self._settings, inputs)

    @cached_property
    def _settings(self) -> str:
        """Hash of all settings that decide the cells of a partition, whichever it is."""
        config = self.config
        assert config.cells is not None
        families = GroupSet.from_config(config.groups).families
        shown = ("kind", "column", "bins", "divide_by", "where")
        tables = {
            place: table.model_dump(mode="json", exclude={"partition"})
            for place, table in config.inputs.items()
        }
        plain = {
            "tables": tables,
            "families": [[getattr(family, name) for name in shown] for family in families],
            "split": config.split.model_dump(mode="json"),
            "levels": list(config.evaluation.levels),
            "grids": list(estimator_of(config.calibrator).grids),
            "score_bins": config.calibrator.score_bins,
            "typical_weight": config.cells.typical_weight,
        }
        return configuration_hash(plain)


def _name(partition: Mapping[str, str]) -> str:
    return "/".join(f"{key}={value}" for key, value in partition.items())
