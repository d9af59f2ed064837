"""Calls a program, waits for its end, and takes all that it prints."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.system.tied_process import TiedProcess

# The language of what tools print. With C.UTF-8 gettext still follows LANGUAGE, which desktops set.
ENGLISH = {"LC_ALL": "C.UTF-8", "LANGUAGE": ""}
_NOT_STARTED = (126, 127)  # of the shell that would become the program


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
