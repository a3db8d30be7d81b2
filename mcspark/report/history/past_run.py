"""One run as its manifest and its metrics table tell it; whatever they hold, nothing is raised."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mcspark.core.metrics.lead import ERROR_NAMES
from mcspark.report.metrics_table import AFTER, BEFORE, MetricsTable

_TIME = re.compile(r"-(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z-")
_OWN = ("output.partition", "scored.partition")
MAX_TEXT = 300
LEAST_OF_PARTITION = 6
"""Characters of a partition that is looked for in other settings: a shorter one stands there by chance."""


@dataclass(frozen=True)
class PastRun:
    """A run of the past.

    Parameters
    ----------
    manifest : mapping
        As :func:`mcspark.data.leases.manifest_form.parse_manifest` returns it.
    table : MetricsTable, optional
        Its metrics, where they can be read.
    report : str, optional
        Address of its report, seen from the page.
    """

    manifest: Mapping[str, Any]
    table: MetricsTable | None = None
    report: str | None = None

    @property
    def run_id(self) -> str:
        """Its id."""
        return str(self.manifest["run_id"])

    @property
    def job(self) -> str:
        """The job."""
        return shortened(self.manifest["job"])

    @property
    def score(self) -> str | None:
        """Of a run of several scores, the one that this is about."""
        found = self.manifest.get("score")
        return shortened(found) if isinstance(found, str) else None

    @property
    def subject(self) -> str:
        """The job, and the score where it is one of several."""
        return self.job if self.score is None else f"{self.job} of {self.score}"

    @property
    def status(self) -> str:
        """How it ended: ``ok``, or what kept it from that."""
        return shortened(self.manifest["status"])

    @property
    def error(self) -> str:
        """Why it failed; empty if it did not."""
        found = self.manifest.get("error")
        return shortened(found) if isinstance(found, str) else ""

    @cached_property
    def partition(self) -> str:
        """``ds=2026-11-26``; empty for a whole table."""
        found = self.at("configuration", "output", "partition")
        if not isinstance(found, Mapping):
            return ""
        return shortened("/".join(f"{key}={value}" for key, value in found.items()))

    @cached_property
    def label(self) -> str:
        """The partition without its column where it has one alone, or else when the run began."""
        return (
            self.partition.partition("=")[2]
            if self.partition.count("=") == 1
            else self.partition or self.began
        )

    @cached_property
    def began(self) -> str:
        """``2026-11-26 23:15:01``; the run's id where that tells no time."""
        found = _TIME.search(self.run_id)
        if found is None:
            return self.run_id
        year, month, day, hour, minute, second = found.groups()
        return f"{year}-{month}-{day} {hour}:{minute}:{second}"

    @property
    def order(self) -> tuple[str, str, str]:
        """Runs sort by partition, then by time."""
        return self.partition, self.began, self.run_id

    @property
    def has_results(self) -> bool:
        """Whether it read its input to the end: a run that failed has counted nothing."""
        return self.number("rows", "in") is not None

    @property
    def stage(self) -> str:
        """The score that the run is about: ``after`` of a calibration."""
        return AFTER if isinstance(self.at("metrics", AFTER), Mapping) else BEFORE

    @property
    def grid(self) -> int | None:
        """Levels of the error that the run led with; None where that needs no grid, or there is none."""
        found = self.number("lead", "levels")
        return None if found is None else int(found)

    def at(self, *keys: str) -> Any:
        """What stands at a place of the manifest; None where nothing does."""
        found: Any = self.manifest
        for key in keys:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found

    def number(self, *keys: str) -> float | None:
        """The finite number at a place; None where there is none."""
        return finite(self.at(*keys))

    def metric(self, name: str, stage: str | None = None) -> float | None:
        """A metric of the score itself."""
        return self.number("metrics", stage or self.stage, name)

    @property
    def error_name(self) -> str:
        """``MC error, 20 levels``: the error that the run led with; empty where nothing was measured."""
        found = ERROR_NAMES.get(str(self.at("lead", "metric")), "")
        return f"{found}, {self.grid} levels" if found and self.grid is not None else found

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """90 % interval of the error that the run led with."""
        return self._ends("metrics", self.stage, "by_level", str(self.grid), "interval")

    @property
    def smece_interval(self) -> tuple[float | None, float | None]:
        """90 % interval of the worst group's smECE."""
        return self._ends("metrics", self.stage, "smece_interval")

    def _ends(self, *keys: str) -> tuple[float | None, float | None]:
        found = self.at(*keys)
        ends = found if isinstance(found, list) and len(found) == 2 else (None, None)
        return finite(ends[0]), finite(ends[1])

    @cached_property
    def shares(self) -> dict[str, float]:
        """Share of each group among the held-out rows, by the metrics table."""
        if self.table is None:
            return {}
        found = self.table.by_group(self.table.last, "share").dropna()
        return {str(name): float(value) for name, value in found.items()}

    @cached_property
    def means(self) -> tuple[float | None, float | None]:
        """Mean score that came in, and mean label, of the held-out rows, by the metrics table."""
        if self.table is None or not len(levels := self.table.by_level(BEFORE, None)):
            return None, None
        score, label = (
            finite((levels["share"] * levels[f"mean_{what}"]).sum()) for what in ("score", "label")
        )
        return score, label

    @property
    def rejected_share(self) -> float | None:
        """Share of the rows that were rejected."""
        rows, rejected = self.number("rows", "in"), self.number("rows", "rejected")
        return rejected / rows if rows and rejected is not None else None

    @property
    def seconds(self) -> float | None:
        """Seconds of all stages."""
        found = self.at("seconds")
        if not isinstance(found, Mapping):
            return None
        known = [value for value in map(finite, found.values()) if value is not None]
        return sum(known) if known else None

    @property
    def model(self) -> str:
        """The model that was made, or what tells that of a scoring run from another one."""
        if self.job == "score":
            return shortened(self.at("inputs", "model") or "")[:8]
        method = self.at("method")
        if self.job != "calibrate" or not isinstance(method, str):
            return ""
        found = self.at("stages")
        stages = found if isinstance(found, list) else []
        trees = [finite(stage.get("trees")) for stage in stages if isinstance(stage, Mapping)]
        counted = " + ".join(f"{int(n):,}" for n in trees if n is not None)
        return shortened(f"{method}, {counted} trees" if counted else method)

    def settings(self) -> dict[str, str]:
        """What could make its results differ from those of another run: settings and versions, by name.

        The run's own partition is written as ``{partition}`` wherever it stands.
        """
        reported = {f"version of {name}": str(value) for name, value in _flat(self.at("versions"))}
        own = self.at("configuration", "output", "partition")
        values = [*own.values()] if isinstance(own, Mapping) else []
        days = [value for value in values if isinstance(value, str) and len(value) >= LEAST_OF_PARTITION]
        for name, value in _flat(self.at("configuration")):
            if not name.startswith(_OWN):
                text = value if isinstance(value, str) else json.dumps(value)
                for day in days:
                    text = text.replace(day, "{partition}")
                reported[name] = text
        if self.job == "score" and self.model:
            reported["the model"] = self.model
        return reported


def changes(before: PastRun, now: PastRun, most: int = 8) -> list[str]:
    """What of the settings and versions has changed, and of a scoring run the model, in words."""
    old, new = before.settings(), now.settings()
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    reported = [
        shortened(f"{name}: {old.get(name, 'absent')} → {new.get(name, 'absent')}") for name in names[:most]
    ]
    return reported + ([f"and {len(names) - most} more"] if len(names) > most else [])


def _flat(plain: Any) -> Iterator[tuple[str, Any]]:
    """The single values of a configuration, by dotted names, in its order."""
    stack = [("", plain)]
    while stack:
        above, value = stack.pop()
        if isinstance(value, (Mapping, list)):
            inside = value.items() if isinstance(value, Mapping) else enumerate(value)
            stack += reversed([(f"{above}.{key}" if above else str(key), below) for key, below in inside])
        else:
            yield above, value


def finite(value: Any) -> float | None:
    """A number that is one; None for anything else."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def shortened(value: Any) -> str:
    """Text that can stand in a table."""
    text = " ".join(str(value).split())
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
