"""Weight streams: the compiled decoder, in a process of its own, and what it gives.

``ethosu.mlw_codec`` (ethos-u-vela 5.1.0) ends its process when a stream is cut short. Isolated,
that is an ordinary error here, and whatever else a malformed stream does to the decoder happens
elsewhere too. One worker serves all streams of a program.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from harness.errors import InfraError
from harness.ethosu.errors import AccessError

Weights = NDArray[np.int16]
_WORKER = Path(__file__).with_name("codec_worker.py")


class WeightDecoder(Protocol):
    def decode(self, encoded: bytes, offset: int) -> Weights:
        """Raises AccessError."""
        ...

    def fast(self, encoded: bytes) -> Weights | None:
        """Of the U85's fast format; None: it cannot, or something is wrong with it."""
        ...

    def reordered(self, streams: Sequence[Weights], layout: object) -> Weights | None:
        """As (ofm, y, x, ifm); None: it cannot, or something is wrong with them."""
        ...


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

    def fast(self, encoded: bytes) -> None:
        """That is numpy's."""

    def reordered(self, streams: Sequence[Weights], layout: object) -> None:
        """That is numpy's."""

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


class WeightStream:
    """Takes counted pieces off a decoded stream."""

    def __init__(self, values: Weights, offset: int) -> None:
        self._values = values
        self._at = 0
        self._offset = offset

    def take(self, count: int) -> Weights:
        piece = self._values[self._at : self._at + count]
        if len(piece) != count:
            raise AccessError(
                f"the weight stream has {len(self._values)} weights, {self._at + count} are needed",
                self._offset,
            )
        self._at += count
        return piece

    def require_zero(self, values: Weights) -> None:
        if values.any():
            raise AccessError("a weight in a padding position is not 0", self._offset)

    def finish(self) -> None:
        """What may follow the last weight is padding to the end of the coded block."""
        self.require_zero(self._values[self._at :])


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
