"""What a script types reaches the guest: ExecuTorch's runner with `--server_mode true` waits for a
line before each inference."""

from __future__ import annotations

import os
import select
import subprocess
from pathlib import Path
from typing import IO

from tests.suites.standin.conftest import U55, Guest, semihosting

_SECONDS = 60


def line_of(output: IO[bytes]) -> bytes:
    ready, _, _ = select.select([output], [], [], _SECONDS)
    assert ready, "the guest did not answer"
    return output.readline()


def test_each_line_reaches_the_guest(
    standin_directory: Path, guest: Guest, tmp_path: Path, shared_hil_home: str
) -> None:
    """One at a time, while it runs, and the end of the input, too."""
    words = [*semihosting(tmp_path), "-q", "-a", str(guest(SERVES=1))]
    with subprocess.Popen(
        [standin_directory / U55, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HIL_HOME": shared_hil_home},
    ) as fvp:
        assert fvp.stdin is not None
        assert fvp.stdout is not None
        for _ in range(2):
            fvp.stdin.write(b"go\n")
            fvp.stdin.flush()
            assert line_of(fvp.stdout) == b"SERVER_INFERENCE_DONE\n"
        fvp.stdin.close()
        assert fvp.stdout.read() == b""
        assert fvp.wait(_SECONDS) == 0


def test_a_command_without_stdin_has_an_empty_console(
    standin_directory: Path, guest: Guest, tmp_path: Path, shared_hil_home: str
) -> None:
    line = 'exec "$0" "$@" <&-'
    words = [*semihosting(tmp_path), "-q", "-a", str(guest(SERVES=1))]
    done = subprocess.run(
        ["sh", "-c", line, str(standin_directory / U55), *words],
        capture_output=True,
        env={**os.environ, "HIL_HOME": shared_hil_home},
        timeout=_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"")
