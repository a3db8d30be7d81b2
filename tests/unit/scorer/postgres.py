"""A PostgreSQL of the test's own: a server in a temporary folder, on a socket alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def programs() -> Path | None:
    """The folder of the server's programs, where this machine has them (Debian: postgresql)."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    return next((p for p in places if (p / "initdb").exists()), Path(found).parent if found else None)


class Server:
    """Runs scripts of psql."""

    def __init__(self, folder: Path, user: str | None) -> None:
        self._folder, self._user = folder, user

    def run(self, *command: str | Path, script: str = "") -> str:
        # The server refuses to be root's.
        done = subprocess.run(
            list(command),
            check=False,
            input=script,
            text=True,
            capture_output=True,
            user=self._user,
            cwd=self._folder,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    def psql(self, script: str) -> str:
        where = ["-h", self._folder, "-U", "tester", "-d", "postgres"]
        return self.run(
            shutil.which("psql") or "psql", "-qAtX", "-v", "ON_ERROR_STOP=1", *where, script=script
        )


@contextmanager
def server(bin_folder: Path) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="pg") as name:
        folder = Path(name)
        user = "postgres" if os.getuid() == 0 else None
        if user:
            shutil.chown(folder, user)
        it = Server(folder, user)
        data = folder / "data"
        it.run(bin_folder / "initdb", "-D", data, "-A", "trust", "-U", "tester", "-E", "UTF8", "--no-sync")
        options = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off -c jit=off"
        start = [bin_folder / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start"]
        it.run(*start)
        try:
            yield it
        finally:
            it.run(bin_folder / "pg_ctl", "-D", data, "-m", "immediate", "stop")
