"""The functional model behind the doorbell: which NPU it is, how errors reach the guest."""

from __future__ import annotations

import struct

import pytest

from harness.npu.doorbell import STATUS_BUS_ERROR, STATUS_IRQ, STATUS_PARSE_ERROR, Result
from harness.npu.doorbell_npu import identity, npu

STOP = 0xFFFF0000  # NPU_OP_STOP
DMA_START = 0x0010
SET_DMA_SRC_REGION = 0x0130
SET_DMA_DST_REGION = 0x0131
SET_DMA_SRC = 0x4030
SET_DMA_DST = 0x4031
SET_DMA_LEN = 0x4032


def _dma(source: int, destination: int, length: int) -> bytes:
    """Copy within scratch (region 1), as Vela's streams do it."""
    words = [SET_DMA_SRC_REGION | 1 << 16, SET_DMA_DST_REGION | 1 << 16]
    for opcode, value in ((SET_DMA_SRC, source), (SET_DMA_DST, destination), (SET_DMA_LEN, length)):
        words += [opcode, value]
    return struct.pack(f"<{len(words) + 2}I", *words, DMA_START, STOP)


@pytest.mark.parametrize(
    ("product", "macs", "config"), [("u55", 128, 0x1807), ("u65", 512, 0x10006009)]
)
def test_identity_is_what_vela_compiles_for(product: str, macs: int, config: int) -> None:
    assert identity(product, macs).config == config
    assert config & 15 == macs.bit_length() - 1


def test_a_stream_works_on_the_guests_memory() -> None:
    scratch = memoryview(bytearray(range(64)))
    outcome = npu("u55", 128)(memoryview(_dma(0, 32, 16)), [None, scratch, None])
    assert outcome.result == Result.OK
    assert scratch[32:48] == bytes(range(16))
    assert scratch[48:] == bytes(range(48, 64))


def test_an_access_outside_its_region_is_a_bus_error() -> None:
    scratch = memoryview(bytearray(64))
    outcome = npu("u55", 128)(memoryview(_dma(0, 56, 16)), [None, scratch, None])
    assert outcome.result == Result.FAULT
    assert outcome.status == STATUS_IRQ | STATUS_BUS_ERROR
    assert "region 1 (scratch)" in outcome.message


def test_a_cut_stream_is_a_parse_error() -> None:
    outcome = npu("u85", 256)(memoryview(bytes(6)), [])
    assert outcome.status == STATUS_IRQ | STATUS_PARSE_ERROR
    assert outcome.qread == 6
