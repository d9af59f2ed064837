"""The functional model as the NPU behind the doorbell."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from harness.formats.cop import CONFIG_WORDS, ID_WORDS, read_config
from harness.npu.blob import Actions
from harness.npu.doorbell import (
    STATUS_BUS_ERROR,
    STATUS_IRQ,
    STATUS_PARSE_ERROR,
    Identity,
    Outcome,
    Result,
    Run,
)
from harness.npu.errors import AccessError, StreamError, Unsupported, WorkLimit
from harness.npu.model import DecodedStream

_PROGRAMS = 32  # command streams kept decoded; a method seldom has more delegates


def identity(product: str, macs: int) -> Identity:
    """The registers of an NPU. KeyError: there is no such NPU."""
    return Identity(CONFIG_WORDS[product, macs], ID_WORDS[product])


def npu(product: str, macs: int, *, strict: bool = True) -> Run:
    """An NPU of this product and MAC count. A stream is decoded once."""
    config = read_config(CONFIG_WORDS[product, macs])
    programs: dict[bytes, DecodedStream] = {}

    def run(commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
        stream = bytes(commands)
        try:
            program = programs.get(stream)
            if program is None:
                if len(programs) >= _PROGRAMS:
                    programs.clear()
                program = programs[stream] = DecodedStream(Actions(config, _words(stream)))
            program.execute(
                {
                    number: np.frombuffer(region, np.uint8)
                    for number, region in enumerate(regions)
                    if region is not None
                },
                strict=strict,
            )
        except (Unsupported, WorkLimit) as error:
            return Outcome(Result.UNSUPPORTED, str(error), status=0)
        except MemoryError as error:  # the program decides how much an operation wants
            return Outcome(Result.UNSUPPORTED, f"more memory than there is: {error}", status=0)
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
