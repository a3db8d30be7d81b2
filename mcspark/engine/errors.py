"""What Spark raises, whichever way it is spoken to."""

from __future__ import annotations

import logging
from contextlib import suppress
from importlib import import_module
from typing import Any

from pyspark.errors import PySparkException

try:
    from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
except ImportError:  # a client of Spark Connect alone, in which nobody raises them

    class Py4JError(Exception):  # type: ignore[no-redef]
        """Of a JVM that is not there."""

    Py4JJavaError = Py4JNetworkError = Py4JError

SPARK_ERRORS: tuple[type[Exception], type[Exception]] = (Py4JJavaError, PySparkException)
"""Spark could not do what it was asked for."""

ENGINE_ERRORS: tuple[type[Exception], type[Exception]] = (Py4JError, PySparkException)
"""The same, or nobody is there any more who could be asked."""

_DEEPEST = 25


class StoreError(PySparkException):
    """A file system that no JVM stands before has refused."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class FileNotFoundInStoreError(StoreError):
    """There is no such file."""


def is_gone(error: BaseException) -> bool:
    """Whether the process that plans Spark's jobs does not answer any more."""
    return isinstance(error, Py4JNetworkError) or (isinstance(error, Py4JError) and "is empty" in str(error))


def chain(error: BaseException) -> list[tuple[str, str]]:
    """Class and message of an error of :data:`SPARK_ERRORS`, then of each cause that Spark knows, if it does.

    pyspark makes exceptions of its own out of some of Java's; the class of such a one is Python's.
    """
    if isinstance(error, PySparkException):
        return [(type(error).__name__, str(error)), *_causes(getattr(error, "_origin", None))[1:]]
    return _causes(getattr(error, "java_exception", None)) or [(type(error).__name__, str(error))]


def _causes(thrown: Any) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    with suppress(Py4JError, AttributeError):  # it cannot be asked, or no further
        while thrown is not None and len(found) <= _DEEPEST:
            found.append((str(thrown.getClass().getSimpleName()), str(thrown.getMessage() or "")))
            thrown = thrown.getCause()
    return found


def mute_caught_errors() -> None:
    """Let PySpark 4 not log each error that it raises, with its stack: some are answers, such as no table."""
    with suppress(ImportError):  # PySpark 3.5 has no loggers
        logger: Any = import_module("pyspark.logger")
        for kind in ("SQL", "DataFrame"):
            logger.PySparkLogger.getLogger(f"{kind}QueryContextLogger").setLevel(logging.CRITICAL)
