"""Running a sweep: trials side by side on the driver, results that outlive an interruption, the choice.

Trials of NumPy solvers, and of trees where the official LightGBM is installed, run in processes of their own;
trees in a Spark session run in threads that wait for it. What is finished is kept block by block, a block
being all settings of one method on one grid and one partition, so an interrupted sweep goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
import structlog

from mcspark.core.baselines.method import Setting
from mcspark.core.cells.cells import Cells
from mcspark.core.training.sweep import Sweep, Trial
from mcspark.core.training.training_table import Train
from mcspark.runtime.files.untrusted import read_json
from mcspark.runtime.process.progress import tell
from mcspark.runtime.tasks.executors import driver_cores

log = structlog.get_logger(__name__)

_QUIET_SECONDS = 15.0
"""Progress is reported no more often."""


_METRICS = b"3"
"""Changes with what a trial reports, so that trials which were kept before are run again."""


class Store(Protocol):
    """Where finished blocks are kept, by name."""

    def read(self, name: str) -> str | None:
        """The text kept under the name, or None."""

    def write(self, name: str, text: str) -> None:
        """Keep a text, whole or not at all."""


@dataclass(frozen=True)
class ResultRow:
    """One number of a comparison; ``m`` is None where there is no grid, ``fold`` is the partition."""

    task: str
    method: str
    m: int | None
    fold: int | None
    metric: str
    value: float | None


@dataclass(frozen=True)
class Choice:
    """The setting chosen for a method on a grid, with the validation value it was chosen by."""

    method: str
    m: int | None
    setting: Setting
    value: float


@dataclass(frozen=True)
class Engine:
    """How trees are trained.

    Parameters
    ----------
    name : str
    train : callable
        See :data:`mcspark.core.training.training_table.Train`.
    in_process : bool
        Whether ``train`` can be sent to another process.
    """

    name: str
    train: Train
    in_process: bool


class Workers:
    """Runs trials side by side; see :func:`workers`."""

    def __init__(self, processes: Executor, threads: Executor, sweep: Sweep, engine: Engine) -> None:
        self._processes = processes
        self._threads = threads
        self._sweep = sweep
        self._engine = engine

    def submit(self, trial: Trial, *, report: bool) -> Future[Any]:
        """Start ``Sweep.validate`` of the trial, or ``Sweep.report``."""
        if trial.method == "trees" and not self._engine.in_process:
            body = self._sweep.report if report else self._sweep.validate
            return self._threads.submit(body, trial, self._engine.train)
        return self._processes.submit(_in_process, trial, report)


@contextmanager
def workers(sweep: Sweep, engine: Engine, count: int | None = None) -> Iterator[Workers]:
    """Processes and threads for the trials of one sweep, as many as there are cores.

    What has not begun when the block is left is given up.

    Parameters
    ----------
    sweep : Sweep
    engine : Engine
    count : int, optional
    """
    n = count or driver_cores()
    shared = (sweep, engine.train if engine.in_process else None)
    # A forked copy of a process with a JVM behind it, or with threads, is not safe; a fresh one is.
    context = multiprocessing.get_context("spawn")
    processes = ProcessPoolExecutor(n, context, initializer=_adopt, initargs=shared)
    threads = ThreadPoolExecutor(n)
    try:
        yield Workers(processes, threads, sweep, engine)
    finally:
        for executor in (processes, threads):
            executor.shutdown(cancel_futures=True)


_SHARED: dict[str, Any] = {}


def _adopt(sweep: Sweep, train: Train | None) -> None:
    _SHARED.update(sweep=sweep, train=train)


def _in_process(trial: Trial, report: bool) -> Any:
    sweep: Sweep = _SHARED["sweep"]
    return (sweep.report if report else sweep.validate)(trial, _SHARED["train"])


def run_sweep(
    task: str,
    sweep: Sweep,
    grids: Mapping[str, Sequence[Setting]],
    partitions: int,
    pool: Workers,
    store: Store,
) -> tuple[list[ResultRow], list[Choice]]:
    """Choose a setting for every method and grid over all partitions, and report it on the test rows.

    Parameters
    ----------
    task : str
        Name in the results.
    sweep : Sweep
    grids : mapping of str to sequence of Setting
        Settings to choose from, by method.
    partitions : int
        Re-drawn calibration and validation halves.
    pool : Workers
    store : Store
        Of this sweep alone: see :func:`digest`.
    """
    wanted = [(method, m) for method in grids for m in sweep.grids(method)]
    chosen = []
    open_choices = [(method, m) for method, m in wanted if len(grids[method]) > 1]
    blocks = [
        ([Trial(method, s, m, k) for s in grids[method]], f"validate-{method}-{m or 'all'}-{k}")
        for method, m in open_choices
        for k in range(partitions)
    ]
    values = iter(_blocks(task, "validate", blocks, pool, store))
    for method, m in wanted:
        if len(grids[method]) == 1:
            chosen.append(Choice(method, m, grids[method][0], float("nan")))
            continue
        mean = np.mean([np.array(next(values), dtype=np.float64) for _ in range(partitions)], axis=0)
        best = int(np.nanargmin(mean)) if not np.isnan(mean).all() else 0
        chosen.append(Choice(method, m, grids[method][best], float(mean[best])))
    folds = {choice: range(1 if choice.method == "none" else partitions) for choice in chosen}
    reports = [
        ([Trial(c.method, c.setting, c.m, k)], f"report-{c.method}-{c.m or 'all'}-{k}")
        for c in chosen
        for k in folds[c]
    ]
    found = iter(_blocks(task, "report", reports, pool, store))
    rows = []
    for choice in chosen:
        for k in folds[choice]:
            (report,) = next(found)
            rows += [ResultRow(task, choice.method, m, k, metric, value) for metric, m, value in report]
        rows += [
            ResultRow(task, choice.method, choice.m, None, f"chosen_{name}", value)
            for name, value in choice.setting
        ]
    return rows, chosen


def _blocks(
    task: str, kind: str, blocks: list[tuple[list[Trial], str]], pool: Workers, store: Store
) -> Iterator[list[Any]]:
    """Results of the trials of each block, from the store where it has them."""
    started = time.monotonic()
    reported = started
    kept = {name: block_of(store.read(name), kind, len(trials)) for trials, name in blocks}
    running = {
        name: [pool.submit(trial, report=kind == "report") for trial in trials]
        for trials, name in blocks
        if kept[name] is None
    }
    done, total = 0, sum(map(len, running.values()))
    for place, (trials, name) in enumerate(blocks, 1):
        found, method = kept.pop(name), trials[0].method
        if found is None:
            results = []
            for future in running.pop(name):
                results.append(future.result())
                done += 1
                tell(f"{kind}: trial {done:,} of {total:,}, {method}", progress=(done, total))
            text = block_text(results)
            store.write(name, text)
            found = read_json(text)
        now = time.monotonic()
        if now - reported > _QUIET_SECONDS or place == len(blocks):
            reported = now
            log.info(
                f"{kind}: {place} of {len(blocks)} blocks", task=task, method=method,
                seconds=round(now - started),
            )  # fmt: skip
        yield found


def block_text(results: list[Any]) -> str:
    """A block as it is kept; what is no finite number, such as the error of no rows, is null."""

    def kept(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [kept(item) for item in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return json.dumps(kept(results), allow_nan=False)


def block_of(text: str | None, kind: str, trials: int) -> list[Any] | None:
    """The results in a kept text; None where there is none, or it is no block of so many trials.

    The file is not trusted: a block that is damaged or of another shape runs again.
    """
    try:
        found = read_json(text) if text is not None else None
    except ValueError:
        return None
    right = _is_value if kind == "validate" else _is_report
    return found if isinstance(found, list) and len(found) == trials and all(map(right, found)) else None


def _is_value(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _is_report(rows: Any) -> bool:
    return isinstance(rows, list) and all(
        isinstance(row, list) and len(row) == 3 and isinstance(row[0], str)
        and (row[1] is None or type(row[1]) is int) and _is_value(row[2])
        for row in rows
    )  # fmt: skip


def digest(sweep: Sweep, grids: Mapping[str, Sequence[Setting]], engine: str) -> str:
    """A name for the results of this sweep; the same for the same cells, settings, engine and metrics."""
    found = hashlib.sha256(_METRICS)
    for cells in (sweep.learning, sweep.test):
        for f in fields(Cells):
            value = getattr(cells, f.name)
            if value is None:
                continue
            found.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
    rest = [sweep.levels, sweep.seed, sweep.early_stopping, sweep.trees, sweep.rounds, sweep.min_rows]
    rest += [sweep.recipe, sorted(sweep.given)]
    settings = [(name, sorted(own.items())) for name, own in sorted(sweep.settings.items())]
    found.update(repr([rest, settings, {k: list(v) for k, v in grids.items()}, engine]).encode())
    return found.hexdigest()[:16]
