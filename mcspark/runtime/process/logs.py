"""Structured log lines on stderr, each with the run's id and without secrets."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, MutableMapping
from typing import Any, Literal

import structlog

from mcspark.config.secrets import redact
from mcspark.runtime.process import progress, streams


def _redact(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Hide values with a secret's name, and secrets inside any text."""
    hidden: MutableMapping[str, Any] = redact(dict(event))
    return hidden


def configure_logs(
    log_format: Literal["json", "text"] = "text", *, run_id: str, verbose: bool = False
) -> None:
    """Set up the log of this process.

    Parameters
    ----------
    log_format
        `json`: one object a line; `text`: for people, with a live line for each stage on a terminal.
    run_id
        Bound to every line.
    verbose
        Lines of level debug too.
    """
    if streams.submitted():
        streams.keep_stdout_clean()
    factory: Callable[..., Any] = _StderrLoggerFactory()
    level = logging.DEBUG if verbose else logging.INFO
    terminal = streams.terminal() if log_format == "text" else None
    if log_format == "json":
        renderer: list[Any] = [
            structlog.processors.dict_tracebacks,
            _redact,
            structlog.processors.JSONRenderer(default=str),
        ]
    elif terminal is None:
        renderer = [
            structlog.processors.format_exc_info,
            _redact,
            structlog.dev.ConsoleRenderer(colors=False),
        ]
    else:
        lines, level = progress.StageLines(terminal), logging.DEBUG
        colours = structlog.dev.ConsoleRenderer(colors=not lines.console.no_color)
        renderer = [structlog.processors.format_exc_info, _redact, lines, colours]
        factory = _LinesLoggerFactory(lines)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=factory,
        cache_logger_on_first_use=False,
    )
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(run_id=run_id)


class _StderrLoggerFactory:
    """Loggers that write to whatever `sys.stderr` is when they are made, one a line."""

    def __call__(self, *_: Any) -> structlog.PrintLogger:
        return structlog.PrintLogger(sys.stderr)


class _LinesLoggerFactory:
    """Loggers that write above the live lines of a terminal."""

    def __init__(self, lines: progress.StageLines) -> None:
        self._lines = lines

    def __call__(self, *_: Any) -> Any:
        return _LinesLogger(self._lines)


class _LinesLogger:
    def __init__(self, lines: progress.StageLines) -> None:
        self.debug = self.info = self.warning = self.error = self.critical = self.exception = lines.print
