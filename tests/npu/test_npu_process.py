"""The model in a process of its own: the same results, and it can be ended."""

from __future__ import annotations

import os
import struct
import threading
from pathlib import Path

import pytest

from harness.npu.doorbell import DDR_BASE, Outcome, Result, SharedMemory
from harness.npu.npu_process import STOPPED, NpuModelFailed, NpuProcess
from tests.escapes.attempts import long_job

_STOP = struct.pack("<I", 0xFFFF0000)


def copying(source: int, destination: int, length: int) -> bytes:
    words = [0x0130 | 1 << 16, 0x0131 | 1 << 16]  # DMA_SRC_REGION, DMA_DST_REGION: 1
    for opcode, value in ((0x4030, source), (0x4031, destination), (0x4032, length)):
        words += [opcode, value]
    return struct.pack(f"<{len(words) + 2}I", *words, 0x0010, 0xFFFF0000)


def children() -> set[int]:
    pid = os.getpid()
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return {int(word) for word in text.split()}


def test_it_works_in_shared_memory_and_on_copies() -> None:
    """Both in one job, and neither is taken for the other."""
    with SharedMemory(1 << 20) as memory, NpuProcess("u55", 128, memory) as npu:
        stream = memory.at(DDR_BASE, 0)
        shared, own = memory.at(DDR_BASE + 4096, 64), memoryview(bytearray(range(64)))
        shared[:] = bytes(range(64))
        for scratch in (shared, own):
            stream = memory.at(DDR_BASE, len(copying(0, 32, 16)))
            stream[:] = copying(0, 32, 16)
            assert npu(stream, [None, scratch, None]) == Outcome(qread=len(stream))
            assert bytes(scratch[32:48]) == bytes(range(16))
            assert bytes(scratch[48:]) == bytes(range(48, 64))


def test_a_fault_is_reported() -> None:
    with NpuProcess("u55", 128, None) as npu:
        scratch = memoryview(bytearray(64))
        outcome = npu(memoryview(bytearray(copying(0, 56, 16))), [None, scratch])
    assert outcome.result == Result.FAULT
    assert "region 1 (scratch)" in outcome.message


def test_a_job_ends_when_somebody_says_so() -> None:
    """This one would copy for a quarter of an hour; nothing of it is left."""
    before, told = children(), []
    with SharedMemory(64 << 20) as memory, NpuProcess("u55", 128, memory) as npu:
        assert npu(memoryview(bytearray(_STOP)), []).result == Result.OK  # it is ready
        scratch, stream = memory.at(DDR_BASE, 16 << 20), memoryview(bytearray(long_job()))
        job = threading.Thread(target=lambda: told.append(npu(stream, [None, scratch])))
        job.start()
        assert children() > before
        npu.stop()
        job.join()
        assert told == [STOPPED]
        assert npu(stream, []) is STOPPED
    assert children() == before


def test_a_process_that_dies_is_the_models_failure() -> None:
    before = children()
    with NpuProcess("u55", 128, None) as npu:
        for pid in children() - before:
            os.kill(pid, 9)
        with pytest.raises(NpuModelFailed, match="its process ended with status -9"):
            npu(memoryview(bytearray(_STOP)), [])


def test_an_npu_that_there_is_not() -> None:
    with NpuProcess("u55", 127, None) as npu, pytest.raises(NpuModelFailed, match="KeyError"):
        npu(memoryview(bytearray(_STOP)), [])


def test_more_memory_than_there_is_is_not_a_failure_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A program decides how much an operation wants."""
    from harness.npu import model

    def greedy(*_: object) -> None:
        raise MemoryError("Unable to allocate 762 GiB")

    monkeypatch.setattr(model, "DecodedStream", greedy)
    outcome = model.npu("u55", 128)(memoryview(bytearray(_STOP)), [])
    assert outcome.result == Result.UNSUPPORTED
    assert "762 GiB" in outcome.message
