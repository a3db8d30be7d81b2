"""What can go wrong, one sentence a class, each with the exit code that every job returns for it."""

from __future__ import annotations

from collections.abc import Mapping


class McsparkError(Exception):
    """Base of every error that a user can act on."""

    exit_code = 1
    status = "error"


class ConfigurationError(McsparkError):
    """The usage, the configuration or the environment is wrong; nothing was read."""

    exit_code = 2
    status = "configuration"


class ContractError(McsparkError):
    """The input breaks its contract; nothing was published and the old output stands."""

    exit_code = 3
    status = "contract"


class GateError(McsparkError):
    """The quality gate is not met; nothing was published.

    Parameters
    ----------
    message : str
    paths : mapping of str to str, optional
        Where the candidate is kept.
    """

    exit_code = 4
    status = "gate"

    def __init__(self, message: str, paths: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.paths = dict(paths or {})


class OutputHeldError(McsparkError):
    """Another run holds the output."""

    exit_code = 5
    status = "held"


class TransientError(McsparkError):
    """Something that may pass: try the whole run again, in a new process."""

    exit_code = 75
    status = "transient"
