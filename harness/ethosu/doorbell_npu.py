"""The functional model as the NPU behind the doorbell."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from harness.ethosu.codec import Codec
from harness.ethosu.doorbell import (
    STATUS_BUS_ERROR,
    STATUS_IRQ,
    STATUS_PARSE_ERROR,
    Identity,
    Outcome,
    Result,
    Run,
)
from harness.ethosu.driver_actions import Actions, Config
from harness.ethosu.errors import AccessError, StreamError, Unsupported
from harness.ethosu.model import Program

# The CONFIG word that Vela 5.1.0 compiles for (measured for each of ExecuTorch's targets); the
# driver compares its product, MACs, command stream version and the U85's AXI ports.
_CONFIGS = {
    ("u55", 32): 0x00001005,
    ("u55", 64): 0x00001006,
    ("u55", 128): 0x00001807,
    ("u55", 256): 0x00003008,
    ("u65", 256): 0x10003008,
    ("u65", 512): 0x10006009,
    ("u85", 128): 0x20000117,
    ("u85", 256): 0x20000118,
    ("u85", 512): 0x20001119,
    ("u85", 1024): 0x2000251A,
    ("u85", 2048): 0x2000261B,
}
_IDS = {"u55": 0x10066001, "u65": 0x10066001, "u85": 0x20007000}  # architecture 1.0.6, 2.0.0
_PROGRAMS = 32  # command streams kept decoded; a method seldom has more delegates


def identity(product: str, macs: int) -> Identity:
    """The registers of an NPU. KeyError: there is no such NPU."""
    return Identity(_CONFIGS[product, macs], _IDS[product])


def npu(product: str, macs: int, *, strict: bool = True) -> Run:
    """An NPU of this product and MAC count. A stream is decoded once."""
    shram = _CONFIGS[product, macs] >> 8 & 0xFF if product != "u85" else 0
    config = Config(product, macs, shram * 1024)
    programs: dict[bytes, Program] = {}
    codec = Codec()

    def run(commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
        stream = bytes(commands)
        try:
            program = programs.get(stream)
            if program is None:
                if len(programs) >= _PROGRAMS:
                    programs.clear()
                program = programs[stream] = Program(Actions(config, _words(stream)), codec)
            program.execute(
                {
                    number: np.frombuffer(region, np.uint8)
                    for number, region in enumerate(regions)
                    if region is not None
                },
                strict=strict,
            )
        except Unsupported as error:
            return Outcome(Result.UNSUPPORTED, str(error), status=0)
        except StreamError as error:
            return _fault(error, STATUS_PARSE_ERROR)
        except AccessError as error:
            return _fault(error, STATUS_BUS_ERROR)
        return Outcome(qread=len(stream))

    return run


def _words(stream: bytes) -> tuple[int, ...]:
    if len(stream) % 4:
        raise StreamError("the command stream is not a whole number of words", len(stream))
    return struct.unpack(f"<{len(stream) // 4}I", stream)


def _fault(error: StreamError | AccessError, status: int) -> Outcome:
    return Outcome(Result.FAULT, str(error), status=STATUS_IRQ | status, qread=error.offset)
