"""Malformed blobs and streams: a clear error with its offset, or a result; never anything else.

``HIL_NPU_FUZZ`` sets the number of mutations (100000 for the full run); seeds are printed.
"""

from __future__ import annotations

import resource
import time

import numpy as np
import pytest

from harness.npu.errors import EthosUError
from harness.npu.model import Network
from tests.npu.recorded import Recorded, recorded_cases
from tests.thorough import amount

MUTATIONS = amount(250, 10_000)
SEED = 20
SLOW = 60.0  # seconds of processor time for one case: a hang, whatever the machine
MOST = 1 << 20  # KiB that all of them may add to this process


def mutated(blob: bytes, generator: np.random.Generator) -> bytes:
    """Bits flipped, bytes replaced, words zeroed, the end cut; mostly in the commands."""
    data = bytearray(blob)
    commands = blob.find(b"COP1") if b"COP1" in blob else 0
    weights = blob.find(b"weight_data")
    for _ in range(int(generator.integers(1, 4))):
        low, high = (commands, weights) if generator.random() < 0.7 else (0, len(data))
        at = int(generator.integers(low, max(low + 1, min(high, len(data)))))
        at = min(at, len(data) - 1)  # the last turn may have cut the end off
        kind = int(generator.integers(0, 5))
        if kind == 0:
            data[at] ^= 1 << int(generator.integers(0, 8))
        elif kind == 1:
            data[at] = int(generator.integers(0, 256))
        elif kind == 2:
            data[at & ~3 : (at & ~3) + 4] = bytes(4)
        elif kind == 3:
            data[at & ~3 : (at & ~3) + 4] = generator.bytes(4)
        elif generator.random() < 0.1:
            del data[at:]
            if not data:
                data = bytearray(b"\0")
    return bytes(data)


def outcome(case: Recorded, blob: bytes) -> str:
    """By name; the same again, word for word."""
    start = time.process_time()
    try:
        outputs: list[bytes] | str = Network(blob).run(case.inputs)[0]
        name = "ran"
    except EthosUError as error:
        name, outputs = type(error).__name__, str(error)
        offset = getattr(error, "offset", None)
        if not isinstance(offset, int):
            pytest.fail(f"an error without its offset: {error}")
    assert time.process_time() - start < SLOW, "it hangs"
    assert outputs == again(case, blob)
    return name


def _most() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def again(case: Recorded, blob: bytes) -> list[bytes] | str:
    try:
        return Network(blob).run(case.inputs)[0]
    except EthosUError as error:
        return str(error)


def test_mutations_end_in_a_result_or_a_named_error() -> None:
    generator = np.random.default_rng(SEED)
    cases = [case for case in recorded_cases() if len(case.blob) < 20000]
    seen, start = dict[str, int](), _most()
    for index in range(MUTATIONS):
        case = cases[index % len(cases)]
        blob = mutated(case.blob, generator)
        try:
            name = outcome(case, blob)
        except BaseException:
            print(f"seed {SEED}, mutation {index} of {case.name}")
            raise
        seen[name] = seen.get(name, 0) + 1
    print(f"seed {SEED}:", seen, f"{_most() - start} KiB")
    assert _most() - start < MOST, "they take more memory than there is for them"
    assert {"ran", "AccessError", "StreamError", "BlobError", "Unsupported"} <= set(seen)
