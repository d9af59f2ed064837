"""A real OpenSSH server on the loopback, with keys of its own, for stores by SFTP."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.nightly.cluster import until

_PLACES = ("/usr/sbin/sshd", "/usr/local/sbin/sshd")  # not in the PATH of a user
_CONFIG = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/home/.ssh/id_ed25519.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp {options}
"""


class Sshd:
    """``home``: of a user whom it lets in, and who knows it; to be $HOME."""

    def __init__(self, folder: Path, program: str) -> None:
        self.folder, self._program = folder, program
        self.home = folder / "home"
        self.store = folder / "store"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        (self.home / ".ssh").mkdir(parents=True)
        for key in (folder / "host_key", self.home / ".ssh" / "id_ed25519"):
            words = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
            subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
        self.known()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        user = pwd.getpwuid(os.geteuid()).pw_name
        return f"sftp://{user}@127.0.0.1:{self.port}{self.store}"

    def known(self, key: str = "host_key") -> None:
        public = (self.folder / f"{key}.pub").read_text()
        text = f"[127.0.0.1]:{self.port} {public}"
        (self.home / ".ssh" / "known_hosts").write_text(text)

    def start(self, options: str = "") -> None:
        """``options``: of sftp-server(8)."""
        config = self.folder / "sshd_config"
        config.write_text(_CONFIG.format(port=self.port, folder=self.folder, options=options))
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [self._program, "-D", "-e", "-f", str(config)], stderr=log,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        until(self._listens, 20)

    def stop(self) -> None:
        """With all its connections."""
        if self._process is not None:
            children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
            served = children.read_text().split()
            self._process.kill()
            self._process.wait(20)
            self._process = None
            for pid in served:
                subprocess.run(("kill", "-KILL", pid), check=False, stderr=subprocess.DEVNULL)

    def _listens(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0


def _program() -> str | None:
    return next(filter(os.path.exists, _PLACES), None) if shutil.which("ssh-keygen") else None


@contextmanager
def some_store(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A store by SFTP where there is a server, else a folder; and the environment to reach it."""
    if _program() is None:
        yield str(folder / "store"), {}
    else:
        with sshd(folder) as server:
            yield server.url, {"HOME": str(server.home)}


@contextmanager
def sshd(folder: Path) -> Iterator[Sshd]:
    """Skips where there is none."""
    program = _program()
    if program is None:
        pytest.skip("OpenSSH's server is not installed (Debian: openssh-server)")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd(8): privilege separation wants it
    made = Sshd(folder, program)
    try:
        made.start()
        yield made
    finally:
        made.stop()
