"""Progress on a terminal: a live line for the stage that runs, made from the log's own events.

A stage begins with its first event and ends with ``stage done`` or ``stage failed``. What happens within it
is reported by :func:`tell`, and shown on a terminal alone: lines elsewhere are what they are.
"""

from __future__ import annotations

import os
import time
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

Event = MutableMapping[str, Any]

_ENDS = {"stage done": ("✓", "green"), "stage failed": ("✗", "red")}
_REFRESHES = 4  # a second
_MEMORY = 600.0  # seconds of which the time left is estimated: trials differ much
_OWN = ("run_id", "partition", "stage", "level", "timestamp", "event", "seconds")

log = structlog.get_logger(__name__)


def tell(what: str, *, progress: tuple[int, int] | None = None, lasting: bool = False) -> None:
    """Say how far the stage that runs has come.

    Parameters
    ----------
    what : str
        For the stage's live line.
    progress : (int, int), optional
        How many of how many are done: gives the line a bar and the time left.
    lasting : bool
        A line of its own that stays.
    """
    if structlog.is_configured():  # else whoever uses the library gets every line of its log printed
        log.debug(what, progress=progress, lasting=lasting)


class StageLines:
    """A processor of structlog that shows stages on a terminal and lets every other event pass.

    Parameters
    ----------
    terminal : TextIO
        What is written on; it is a terminal.
    """

    def __init__(self, terminal: TextIO) -> None:
        self.console = _Console(file=terminal, force_terminal=True, highlight=False, markup=False)
        self._lines: Progress | None = None
        self._open: dict[str, TaskID] = {}

    def __call__(self, _: Any, level: str, event: Event) -> Event:
        """Show the event, or pass it on.

        Raises
        ------
        structlog.DropEvent
            If it is shown.
        """
        stage, what = event.get("stage"), str(event.get("event"))
        if stage is None:
            if level == "debug":
                raise structlog.DropEvent
            return event
        if what in _ENDS:
            self._end(stage, what, event)
        elif level == "info" and stage not in self._open:
            self._begin(stage, what)
        elif level == "debug":
            self._tell(stage, what, event)
        else:
            return event
        raise structlog.DropEvent

    def print(self, line: str) -> None:
        """A line of the log, above the live ones."""
        self.console.print(Text.from_ansi(line), soft_wrap=True)

    def _begin(self, stage: str, what: str) -> None:
        if self._lines is None:
            self._lines = Progress(
                SpinnerColumn(), TextColumn("{task.description}", markup=False), _Seconds(),
                _IfTotal(BarColumn(bar_width=20)), _IfTotal(TimeRemainingColumn(compact=True)),
                TextColumn("{task.fields[reported]}", markup=False),
                console=self.console, transient=True, refresh_per_second=_REFRESHES,
                speed_estimate_period=_MEMORY, redirect_stdout=False, redirect_stderr=False,
            )  # fmt: skip
            self._lines.start()
        self._show_innermost(False)
        self._open[stage] = self._lines.add_task(what, total=None, reported="", began=time.monotonic())

    def _tell(self, stage: str, what: str, event: Event) -> None:
        line = self._open.get(stage)
        if line is None or self._lines is None:
            return
        if event.get("lasting"):
            self.console.print(f"  {what}", style="dim")
            return
        if event.get("progress") is None:
            self._lines.update(line, reported=what)
            return
        done, total = event["progress"]
        if self._task(line).total != total or done <= 1:
            # Another count begins, and with it another estimate of the time left.
            self._lines.reset(line, total=total)
        self._lines.update(line, completed=done, reported=what)

    def _end(self, stage: str, outcome: str, event: Event) -> None:
        line = self._open.pop(stage, None)
        mark, colour = _ENDS[outcome]
        what = stage
        if line is not None and self._lines is not None:
            what = self._task(line).description
            self._lines.remove_task(line)
            self._show_innermost(True)
        numbers = [f"{key} {_figure(value)}" for key, value in event.items() if key not in _OWN]
        text = Text.assemble((mark, colour), f" {what}  ", (f"{event.get('seconds', 0.0):.1f} s", "bold"))
        if numbers:
            text.append(f"  {', '.join(numbers)}", "dim")
        self.console.print(text, soft_wrap=True)
        if not self._open and self._lines is not None:
            # Nothing is live between stages: what is printed then, such as the summary, stays untouched.
            self._lines.stop()
            self._lines = None

    def _show_innermost(self, visible: bool) -> None:
        """One line at a time: others that write on the terminal cannot tear it apart."""
        if self._lines is not None and self._open:
            self._lines.update(list(self._open.values())[-1], visible=visible)

    def _task(self, number: TaskID) -> Task:
        assert self._lines is not None
        return next(task for task in self._lines.tasks if task.id == number)


class _Console(Console):
    """A console on a terminal that need not be this process's own."""

    @property  # type: ignore[misc]  # nobody sets it
    def size(self) -> Any:
        """Of that terminal."""
        try:
            width, height = os.get_terminal_size(self.file.fileno())
        except (OSError, ValueError):
            return super().size
        # A terminal that nobody has told its size says 0.
        return super().size._replace(**{k: v for k, v in (("width", width), ("height", height)) if v})

    def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002
        """Leave it: a process that is killed could not bring it back."""
        return False


class _Seconds(ProgressColumn):
    """Seconds since the stage began."""

    def render(self, task: Task) -> Text:
        """The text."""
        return Text(f"{int(time.monotonic() - task.fields['began']):,} s", style="bold")


class _IfTotal(ProgressColumn):
    """Another column, where it is known how much there is to do."""

    def __init__(self, column: ProgressColumn) -> None:
        super().__init__()
        self._column = column

    def render(self, task: Task) -> Any:
        """What the other column shows, or nothing."""
        return Text() if task.total is None else self._column(task)


def _figure(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
