"""Which SFTP servers are believed: those of the user's and the machine's ``known_hosts``.

fsspec would take any server's word for who it is, and what a store gives is run.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import paramiko

_FILES = ("~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts")  # ssh(1), FILES


class UnknownServer(Exception):
    """``host`` as known_hosts would have it."""

    def __init__(self, host: str) -> None:
        self.host = host
        super().__init__(f"{host} is not in known_hosts, or has another key there")


class _OnlyKnown(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
    def missing_host_key(
        self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey
    ) -> None:
        known = paramiko.HostKeys()
        for file in _FILES:
            with suppress(OSError, ValueError):  # of keys that are none
                known.load(str(Path(file).expanduser()))
        if not known.check(hostname, key):
            raise UnknownServer(hostname)


def only_known() -> type[paramiko.MissingHostKeyPolicy]:
    return _OnlyKnown
