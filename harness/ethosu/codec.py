"""The compiled decoder of weight streams, in a process of its own.

``ethosu.mlw_codec`` (ethos-u-vela 5.1.0) ends its process when a stream is cut short. Isolated,
that is an ordinary error here, and whatever else a malformed stream does to the decoder happens
elsewhere too. One worker serves all streams of a program.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np

from harness.errors import InfraError
from harness.ethosu.errors import AccessError
from harness.ethosu.u55.weights import Weights

_WORKER = Path(__file__).with_name("codec_worker.py")


class Codec:
    """Starts its worker at the first stream; the worker ends when this object goes."""

    def __init__(self) -> None:
        self._worker: subprocess.Popen[bytes] | None = None

    def decode(self, encoded: bytes, offset: int) -> Weights:
        if not encoded:
            return np.zeros(0, np.int16)
        worker = self._started()
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            worker.stdin.write(len(encoded).to_bytes(4, "little") + encoded)
            worker.stdin.flush()
            count = worker.stdout.read(4)
            size = 2 * int.from_bytes(count, "little")
            content = worker.stdout.read(size) if len(count) == 4 else b""
        except BrokenPipeError:
            count, size, content = b"", 0, b""
        if len(count) < 4 or len(content) < size:
            _stop(worker)
            self._worker = None
            raise AccessError(f"the {len(encoded)} bytes of weights cannot be decoded", offset)
        return np.frombuffer(content, np.int16)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._worker is None:
            self._worker = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_WORKER), _extension()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            weakref.finalize(self, _stop, self._worker)
        return self._worker


def _extension() -> str:
    """Where Vela's codec lies; only the worker loads it."""
    found = importlib.util.find_spec("ethosu.mlw_codec")
    if found is None or found.origin is None:
        raise InfraError("decoding weights needs the package ethos-u-vela, which is not installed")
    return found.origin


def _stop(worker: subprocess.Popen[bytes]) -> None:
    worker.kill()
    for pipe in (worker.stdin, worker.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue
    worker.wait()
