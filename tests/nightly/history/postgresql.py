"""A PostgreSQL of the tests' own, where its programs are installed: one server a session, one
database a test. It listens on a socket in its folder alone."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_VERSIONS = "/usr/lib/postgresql"  # Debian has its programs there, and not in PATH
_USERS = ("postgres", "nobody")  # as root it does not run


def find(program: str) -> Path | None:
    there = [*sorted(Path(_VERSIONS).glob(f"*/bin/{program}")), shutil.which(program)]
    return next((Path(one) for one in there if one is not None), None)


class Server:
    """``folder``: with the socket in it."""

    def __init__(self, folder: Path, user: str | None) -> None:
        self.folder = folder
        self._user = user
        self._data = folder / "data"

    def url(self, database: str) -> str:
        return f"postgresql://hil@/{database}?host={self.folder}"

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses= -c fsync=off"
        self._call(
            "pg_ctl", "-w", "-D", self._data, "-l", self.folder / "log", "-o", options, "start"
        )

    def stop(self) -> None:
        self._call("pg_ctl", "-w", "-m", "immediate", "-D", self._data, "stop")

    def make(self) -> None:
        self._call("initdb", "-D", self._data, "-U", "hil", "-A", "trust", "-N", "-E", "UTF8")

    def new_database(self, name: str) -> str:
        self._call("createdb", "-h", self.folder, "-U", "hil", name)
        return self.url(name)

    def _call(self, program: str, *arguments: object) -> None:
        found = find(program)
        assert found is not None
        done = subprocess.run(
            [found, *map(str, arguments)],
            user=self._user,
            cwd=self.folder,
            timeout=120,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()


@contextmanager
def server() -> Iterator[Server]:
    """Skips where there is none."""
    if find("initdb") is None or find("pg_ctl") is None:
        pytest.skip("PostgreSQL is not installed (docker/packages.txt has it)")
    user = None
    folder = Path(tempfile.mkdtemp(prefix="hil-pg-"))  # a socket's path is short
    if os.geteuid() == 0:
        names = {entry.pw_name for entry in pwd.getpwall()}
        user = next(name for name in _USERS if name in names)
        shutil.chown(folder, user)
    made = Server(folder, user)
    try:
        made.make()
        made.start()
        yield made
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            made.stop()
        shutil.rmtree(folder, ignore_errors=True)
