"""Children that end with this process, however it ends; and calls that wait for a program."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

# The language of what tools print. With C.UTF-8 gettext still follows LANGUAGE, which desktops set.
ENGLISH = {"LC_ALL": "C.UTF-8", "LANGUAGE": ""}
_NOT_STARTED = (126, 127)  # of the shell that would become the program
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


class CallFailed(Exception):
    """Its text is the last line that the program printed, or why there is none. ``output``: all
    that it printed; None when it did not end in time."""

    def __init__(self, said: str, output: str | None = None) -> None:
        super().__init__(said)
        self.output = output


def call(
    words: Sequence[object],
    seconds: float,
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    descriptors: Sequence[int] = (),
) -> str:
    """Runs a program with an empty stdin; returns its stdout and stderr. ``environment`` is all of
    its environment; None: ours, without a language. It inherits ``descriptors``. No process that it
    starts outlives the call, or this process.

    Raises CallFailed when it ends with a status or does not end, OSError when it does not start.
    """
    given = {**os.environ, **ENGLISH} if environment is None else environment
    program = str(words[0])
    if shutil.which(program, path=given.get("PATH")) is None:
        why = errno.EACCES if Path(program).is_file() else errno.ENOENT
        raise OSError(why, os.strerror(why), program)
    with TiedProcess(
        [str(word) for word in words],
        descriptors,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=given,
    ) as child:
        try:
            output = child.communicate(timeout=seconds)[0].decode("utf-8", "replace")
        except subprocess.TimeoutExpired as error:
            raise CallFailed(f"no end after {seconds:g} s") from error
    if child.returncode in _NOT_STARTED and output.startswith("sh: "):
        raise OSError(errno.ENOEXEC, output.strip().rpartition(": ")[2], program)
    if child.returncode:
        lines = output.strip().splitlines()
        raise CallFailed(lines[-1] if lines else f"status {child.returncode}", output)
    return output
