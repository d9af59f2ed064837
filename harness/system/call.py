"""Calls a program, waits for its end, and takes all that it prints."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


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
    """What a program prints on stdout and stderr; its stdin is empty. ``environment`` is all of its
    environment; None: ours, without a language. It inherits ``descriptors``.

    Raises CallFailed when it ends with a status or does not end, OSError when it does not start.
    """
    try:
        done = subprocess.run(
            [str(word) for word in words],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LC_ALL": "C.UTF-8"} if environment is None else environment,
            timeout=seconds,
            pass_fds=descriptors,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CallFailed(f"no end after {seconds:g} s") from error
    output = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        lines = output.strip().splitlines()
        raise CallFailed(lines[-1] if lines else f"status {done.returncode}", output)
    return output
