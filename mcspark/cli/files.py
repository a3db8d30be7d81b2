"""Files on this machine: where they are, and how a command writes them, aside and in place when whole."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mcspark.errors import ConfigurationError


def local_place(path: str) -> Path:
    """A path of this machine, with or without ``file:``."""
    return Path(path.removeprefix("file:"))


def free_place(target: str, *, force: bool) -> Path:
    """Where to write; with ``force``, the file behind a link, which stays a link.

    Raises
    ------
    ConfigurationError
        If something is there that may not be replaced, or the folder is not there.
    """
    place = local_place(target)
    try:
        if os.path.lexists(place):
            _check_replaceable(place, target, force)
            place = place.resolve()
        if not place.parent.is_dir():
            raise ConfigurationError(f"{target}: there is no folder {place.parent}; make it first")
    except (OSError, ValueError, RuntimeError) as error:  # too long a name, a folder of others, a loop
        raise _unwritable(place, error) from error
    return place


def _check_replaceable(place: Path, target: str, force: bool) -> None:
    if place.is_dir():
        raise ConfigurationError(f"{target or '(no name)'} is a folder; name a file")
    if not place.is_file():
        what = "a link to nothing" if place.is_symlink() else "neither a file nor a folder"
        raise ConfigurationError(f"{target} is {what}; name a file")
    if not force:
        raise ConfigurationError(f"{target} exists; name another file, or replace it with --force")


@contextmanager
def written_aside(place: Path, *, force: bool) -> Iterator[Path]:
    """A file beside ``place`` to write to; it takes its place if nothing goes wrong.

    Without ``force``, a file that somebody else has put there meanwhile stays.

    Raises
    ------
    ConfigurationError
        If it cannot be written, or something is there by now.
    """
    aside = place.with_name(f".{place.name[:40]}.writing-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        yield aside
        if force:
            aside.replace(place)
        else:
            _put(aside, place)
    except FileExistsError as error:
        raise ConfigurationError(
            f"{place} was written by somebody else meanwhile, and stays; name another file"
        ) from error
    except OSError as error:
        raise _unwritable(place, error) from error
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def _put(aside: Path, place: Path) -> None:
    """Give a file its name unless that is taken, in one step where the file system has links."""
    try:
        place.hardlink_to(aside)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(place):
            raise FileExistsError(str(place)) from None
        aside.replace(place)


def _unwritable(place: Path, error: Exception) -> ConfigurationError:
    reason = getattr(error, "strerror", None) or error
    return ConfigurationError(f"{place}: cannot be written ({reason}); name another file")
