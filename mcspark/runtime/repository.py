"""Jars from Maven Central by Python's own client, which trusts what this machine trusts.

A Java that came from the package index knows neither a company's certificate authority nor its proxy.
Python's client takes authorities from SSL_CERT_FILE, SSL_CERT_DIR and REQUESTS_CA_BUNDLE, and proxies from
HTTPS_PROXY, HTTP_PROXY and NO_PROXY. No jar is used whose SHA-256 is not the one that is known.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import tempfile
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path

CENTRAL = "https://repo1.maven.org/maven2"
ANSWER_SECONDS = 30
_CHUNK = 2**20


class RepositoryError(Exception):
    """Why a jar could not be had, in one line."""


def file_stem(coordinate: str) -> str:
    """``artifact-version`` of ``group:artifact:version``."""
    _, artifact, version = coordinate.split(":")
    return f"{artifact}-{version}"


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where jars are kept for the next session of this user."""
    return Path(environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "mcspark" / "jars"


def kept(jars: Mapping[str, str], folder: Path) -> list[Path] | None:
    """The jars of a folder that :func:`downloaded` has filled; None where one is missing or altered."""
    found = [folder / f"{file_stem(name)}.jar" for name in jars.values()]
    return found if all(map(_holds, found, jars)) else None


def downloaded(
    jars: Mapping[str, str],
    folder: Path,
    repository: str = CENTRAL,
    environ: Mapping[str, str] = os.environ,
) -> list[Path]:
    """The jars, in a folder that keeps them; several processes may fill it at the same time.

    Parameters
    ----------
    jars : mapping of str to str
        Coordinates ``group:artifact:version`` by SHA-256.
    folder : Path
        Made if it is not there.
    repository : str
        Address of a repository in the layout of Maven.
    environ : mapping
        May name a bundle of certificate authorities as ``REQUESTS_CA_BUNDLE``.

    Raises
    ------
    RepositoryError
        One cannot be had, or is not what it should be.
    """
    try:
        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=_trust(environ)))
        folder.mkdir(parents=True, exist_ok=True)
        return [_fetched(opener, digest, name, folder, repository) for digest, name in jars.items()]
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise RepositoryError(f"{type(error).__name__}: {reason}") from error


def _trust(environ: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if bundle := environ.get("REQUESTS_CA_BUNDLE"):
        place = Path(bundle)
        context.load_verify_locations(
            cafile=None if place.is_dir() else bundle, capath=bundle if place.is_dir() else None
        )
    return context


def _fetched(
    opener: urllib.request.OpenerDirector, digest: str, coordinate: str, folder: Path, repository: str
) -> Path:
    group, artifact, version = coordinate.split(":")
    name = f"{file_stem(coordinate)}.jar"
    target = folder / name
    if _holds(target, digest):
        return target
    address = f"{repository}/{group.replace('.', '/')}/{artifact}/{version}/{name}"
    with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{name}.", delete=False) as aside:
        try:
            with opener.open(address, timeout=ANSWER_SECONDS) as answer:
                while block := answer.read(_CHUNK):
                    aside.write(block)
            aside.close()
            if (found := checksum(Path(aside.name))) != digest:
                raise RepositoryError(f"{address} has the SHA-256 {found}, and not {digest}")
            Path(aside.name).replace(target)
        finally:
            Path(aside.name).unlink(missing_ok=True)
    return target


def _holds(file: Path, digest: str) -> bool:
    return file.is_file() and checksum(file) == digest


def checksum(file: Path) -> str:
    """SHA-256 of what a file holds."""
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while block := content.read(_CHUNK):
            digest.update(block)
    return digest.hexdigest()
