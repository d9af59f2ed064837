"""Children that end with this process, however it ends."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1  # prctl(2)
# Reads the number of a process group from a pipe that closes when this process ends, however it
# ends, and then kills the group.
_WATCHER = 'read -r group || exit; read -r _; kill -s KILL -- "-$group"'
# Starts nothing before the watcher knows the group.
_GATE = 'read -r _ || exit 1; exec "$@" <'


class TiedProcess(subprocess.Popen[bytes]):
    """A program in a session of its own. Neither it nor its process group outlives this process,
    whenever either is killed. Its stdin is ``input``, empty if None; a socket cannot be it. Always
    call ``end``.

    A death signal (prctl(2), PR_SET_PDEATHSIG) would be too late if this process is killed before
    the child has asked for it, and bubblewrap asks for it only after it has made processes.
    """

    def __init__(
        self,
        argv: Sequence[str | Path],
        descriptors: Sequence[int] = (),
        *,
        input: int | None = None,
        **options: Any,
    ) -> None:
        """``options``: those of Popen. A missing program ends with 127, as in a shell."""
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHER],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        given = options.get("env") or os.environ
        gate = "" if "PWD" in given else "unset PWD; "  # which the shell sets
        given_input = None if input is None else os.dup(input)  # 0 is the gate's
        # dash has no `<&12`
        gate += _GATE + ("/dev/null" if given_input is None else f"/proc/self/fd/{given_input}")
        super().__init__(
            ["/bin/sh", "-c", gate, "sh", *argv],
            stdin=subprocess.PIPE,
            pass_fds=(*descriptors, *(() if given_input is None else (given_input,))),
            start_new_session=True,
            **options,
        )
        if given_input is not None:
            os.close(given_input)
        assert self._watcher.stdin is not None
        assert self.stdin is not None
        with suppress(BrokenPipeError):  # killed already
            self._watcher.stdin.write(b"%d\n" % self.pid)
            os.write(self.stdin.fileno(), b"\n")
        self.stdin.close()
        self.stdin = None

    def __exit__(self, *_: object) -> None:
        self.end()
        if self.stdout is not None:
            self.stdout.close()

    def end(self) -> int:
        """Kills the process and its group; returns the status as Popen does."""
        if self.returncode is None:  # not reaped yet: its number is still its own
            for kill in (os.killpg, os.kill):  # both: it may not lead its group yet
                with suppress(ProcessLookupError, PermissionError):
                    kill(self.pid, signal.SIGKILL)
        with self._watcher:  # it ends before the number of its group is free for others
            self._watcher.kill()
        return self.wait()


def die_with_parent(parent: int) -> None:
    """In a forked process: SIGKILL when the thread that forked ends, or now if it has ended."""
    failed = ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if failed or os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
