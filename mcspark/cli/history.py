"""The history of an output on this machine: its manifests, metrics tables and reports, found and read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from mcspark.cli.files import local_place, written_aside
from mcspark.cli.left import frame_in, text_in
from mcspark.cli.text import text_table
from mcspark.config.clashes import manifests_of, metrics_table
from mcspark.data.leases.manifest_form import MAX_BYTES, parse_manifest
from mcspark.errors import ConfigurationError, ContractError
from mcspark.report.facts import count, number
from mcspark.report.history.job_history import JobHistory
from mcspark.report.history.limits import RULE
from mcspark.report.history.page import TITLE, History, interval, limit_words, render_history
from mcspark.report.history.past_run import PastRun, shortened
from mcspark.report.metrics_table import MetricsTable, of_score
from mcspark.report.scores import summary_of_score

PAGE = "index.html"

_MANIFESTS = re.compile(r"_(?P<name>.+)_manifests")
_TITLE = re.compile(r"<title>([^<]*)</title>")
_HEAD = 10_000
_MAX_METRICS = 256 * 1024 * 1024
_DEEPEST = 8


def history_of(paths: Sequence[str], site: Path | None = None) -> History:
    """All runs of one output or of several.

    Parameters
    ----------
    paths : sequence of str
        Outputs, folders of manifests, or manifests, on this machine.
    site : Path, optional
        Folder of the page, from which reports are linked.

    Raises
    ------
    ContractError
        If there is no manifest at all.
    """
    runs: list[PastRun] = []
    skipped: list[tuple[str, str]] = []
    for path in paths:
        place = local_place(path)
        found = sorted(set(_manifests(place)))
        if not found:
            raise ContractError(
                f"{path}: no run has left a manifest there; name an output (data/calibrated), a folder of "
                "manifests (data/_calibrated_manifests) or a manifest, copied to this machine"
            )
        for file in found:
            try:
                manifest = parse_manifest(text_in(file, MAX_BYTES))
            except (OSError, ValueError) as error:
                skipped.append((str(file), shortened(error)))
                continue
            for one in _by_score(manifest):
                run = PastRun(one)
                try:
                    table = _metrics(run, _roots(place, file))
                except (OSError, ValueError, TypeError, KeyError) as error:
                    table = None
                    skipped.append((f"metrics of {run.run_id}", shortened(error)))
                runs.append(PastRun(one, table, None if site is None else _report(run, site)))
    if not runs:
        raise ContractError(
            f"{', '.join(paths)}: none of {len(skipped)} manifests can be read, such as {skipped[0]}"
        )
    return History(runs, skipped)


def _by_score(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The manifest as those of runs with one score each, where it is of several."""
    scores = manifest.get("scores")
    if not isinstance(scores, dict) or not all(isinstance(own, dict) for own in scores.values()):
        return [manifest]
    return [summary_of_score(manifest, score) for score in scores]


def _manifests(place: Path) -> Iterator[Path]:
    """The manifests of an output: beside it, beside its partitions, or where the runs of a table are kept."""
    if place.is_file():
        yield place
        return
    if _MANIFESTS.fullmatch(place.name):
        yield from place.glob("*.json")
        return
    yield from (place.parent / manifests_of(place.name)).glob("*.json")
    for root in (place, place.parent / f"_{place.name}_runs"):
        yield from _below(root, 0)


def _below(folder: Path, depth: int) -> Iterator[Path]:
    if depth > _DEEPEST or not folder.is_dir():
        return
    for entry in sorted(folder.iterdir()):
        if entry.is_symlink() or not entry.is_dir():
            continue
        if _MANIFESTS.fullmatch(entry.name):
            yield from entry.glob("*.json")
        elif "=" in entry.name:
            yield from _below(entry, depth + 1)


def _roots(place: Path, file: Path) -> list[Path]:
    """What the table of a manifest may be called: the path that was given, or its folder's name."""
    found = [] if place.is_file() or _MANIFESTS.fullmatch(place.name) else [place]
    folder = file.parent
    above = folder.parent
    while "=" in above.name:
        above = above.parent
    name = _MANIFESTS.fullmatch(folder.name)
    if name is not None:
        found += [above, above / name["name"]]
    return found


def _metrics(run: PastRun, roots: Sequence[Path]) -> MetricsTable | None:
    """Its metrics: beside the output, wherever that has been moved to, or else where the manifest says."""
    leaf = f"run_id={run.run_id}"
    table_of = metrics_table(by_score=run.score is not None)
    places = [root.with_name(f"{root.name}_{table_of}") / leaf for root in roots if root.name]
    reported = run.at("paths", "metrics")
    if isinstance(reported, str) and reported.rstrip("/").endswith(leaf):
        places.append(local_place(reported))
    for place in places:
        files = sorted(place.glob("*.parquet")) if place.is_dir() else []
        if not files:
            continue
        if sum(file.stat().st_size for file in files) > _MAX_METRICS:
            raise ValueError(f"{place}: larger than {_MAX_METRICS} bytes")
        frames = [frame_in(file, partitioning=None) for file in files]
        table = of_score(pd.concat(frames, ignore_index=True), run.score)
        return MetricsTable(table) if len(table) else None
    return None


def _report(run: PastRun, site: Path) -> str | None:
    """The address of the run's report, seen from the site; None where its place is another run's by now."""
    reported = run.at("paths", "report")
    if not isinstance(reported, str):
        return None
    page = local_place(reported)
    try:
        if _title(page).split()[-1:] != [run.run_id]:
            return None
    except (OSError, ValueError):
        return None
    return quote(Path(os.path.relpath(page.resolve(), site.resolve())).as_posix())


def _title(page: Path) -> str:
    with page.open(encoding="utf-8", errors="replace") as file:
        found = _TITLE.search(file.read(_HEAD))
    return "" if found is None else found[1]


def write_site(history: History, site: Path) -> Path:
    """Write the page in one step; a page of something else is not replaced.

    Raises
    ------
    ConfigurationError
        If it cannot be written, or another page is there.
    """
    page = site / PAGE
    try:
        if page.exists() and _title(page) != TITLE:
            raise ConfigurationError(
                f"{page}: is there and is no {TITLE.lower()}; name another folder, or remove it"
            )
        site.mkdir(parents=True, exist_ok=True)
        with written_aside(page, force=True) as aside:
            aside.write_text(render_history(history), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"{page}: cannot be written ({error.strerror}); name another folder"
        ) from error
    return page


def as_text(history: History, last: int) -> str:
    """The history as text: the last runs of each job, what is out of the ordinary, what was left out."""
    parts = ["".join(history.verdict)]
    for job in history.jobs:
        parts.append(_of_job(job, last))
        if job.alarms:
            rows = [
                (a.run.label, a.measure.name, a.measure.shown(a.value), limit_words(a))
                for a in job.alarms[-last:]
            ]
            parts.append(f"Out of the ordinary\n{text_table(('run', 'what', 'value', 'limit'), rows)}")
        if job.changes:
            lines = [(run.label, line) for run, changed in job.changes[-last:] for line in changed]
            parts.append(f"Changes\n{text_table(('before run', 'what'), lines)}")
        parts += [f"Failed: {run.label}: {run.status}: {run.error}" for run in job.failed[-last:]]
    if any(job.alarms for job in history.jobs):
        parts.append(RULE)
    parts += [f"Left out: {place}: {why}" for place, why in history.skipped[:last]]
    if len(history.skipped) > last:
        parts.append(f"Left out: and {len(history.skipped) - last:,} more")
    return "\n\n".join(parts)


def _of_job(job: JobHistory, last: int) -> str:
    head = (
        "run", "end", "rows", "rejected", "error", "interval", "floor", "smECE", "loss", "AUC", "seconds",
        "alarms", "id",
    )  # fmt: skip
    rows = [
        (
            run.label, run.status, count(run.number("rows", "in")), count(run.number("rows", "rejected")),
            number(run.number("lead", run.stage)), interval(run), number(run.number("lead", "noise_floor")),
            number(run.metric("worst_group_smece")), number(run.metric("loss")), number(run.metric("auc")),
            number(run.seconds, 1), count(len(job.alarms_at(run)) or None), run.run_id,
        )
        for run in job.runs[-last:]
    ]  # fmt: skip
    kept = [i for i in range(len(head)) if i in (0, 1) or any(row[i] != "–" for row in rows)]
    table = text_table([head[i] for i in kept], [[row[i] for i in kept] for row in rows])
    shown_of = (
        f"the last {len(rows)} of {len(job.runs)} runs"
        if len(rows) < len(job.runs)
        else f"{len(rows)} run(s)"
    )
    return f"{job.job}: {shown_of}\n{table}"
