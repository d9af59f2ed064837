"""Inputs, accesses and branches of a run: what it may not do is named."""

from __future__ import annotations

import struct

import pytest

from harness.npu import model
from harness.npu.doorbell import STATUS_BUS_ERROR, STATUS_IRQ, STATUS_PARSE_ERROR, Result
from harness.npu.errors import AccessError, StreamError, Unsupported, WorkLimit
from harness.npu.model import Network, npu
from tests.npu.assembling import (
    INPUT,
    U55_128,
    U85_256,
    blob,
    cop1,
    copying,
    pool,
    run,
    tensors,
    words,
)


def test_wrong_inputs() -> None:
    with pytest.raises(AccessError, match="0 inputs for 1"):
        run(copying(), [])
    with pytest.raises(AccessError, match="input 0 has 3 bytes, not 256"):
        run(copying(), [b"abc"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"IFM_REGION": 7}, "region 7, which does not exist"),
        ({"IFM_BASE0": 4000}, r"reaches 0xfa0\.\."),
        ({"OFM_BASE0": 4000}, "region 1 .scratch. has 0x1000 bytes"),
        ({"OFM_STRIDE_Y": -2000}, "OFM reaches"),
        ({"OFM_REGION": 0}, "read-only weights"),
        ({"OFM_BASE0": 1040}, "output 0: byte 0 was never written"),
    ],
)
def test_accesses_are_checked(changes: dict[str, int], message: str) -> None:
    with pytest.raises(AccessError, match=message):
        run(copying(**changes), [INPUT])


@pytest.mark.parametrize("target", [2, 1 << 20])
def test_branches_stay_inside(target: int) -> None:
    stream = [0x0000_4100, target, *words("u85", ("STOP", 0))]
    with pytest.raises(StreamError, match="BRANCH goes to"):
        run(blob(cop1(U85_256, stream)), [bytes(256)])


def test_branch_condition_needs_one_element() -> None:
    stream = [0x0001_4100, 0, *words("u85", ("STOP", 0))]
    with pytest.raises(Unsupported, match="RF_TRUE"):
        run(blob(cop1(U85_256, stream)), [bytes(256)])


COPY = [
    ("DMA0_SRC_REGION", 1),
    ("DMA0_DST_REGION", 1),
    ("DMA0_SRC", 0),
    ("DMA0_DST", 512),
    ("DMA0_LEN", 16),
    ("DMA_START", 0),
]


@pytest.mark.parametrize("turn", [[], words("u85", *COPY)], ids=["idle", "working"])
def test_a_loop_that_does_not_end_is_ended(
    turn: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "_MAX_OPERATIONS", 8)
    stream = [*turn, 0x0000_4100, 0]
    with pytest.raises(StreamError, match="no STOP after 8 operations") as caught:
        run(blob(cop1(U85_256, stream)), [bytes(256)])
    assert caught.value.offset == (4 * (len(turn) - 1) if turn else 0)


def test_work_is_limited_with_branches_and_without() -> None:
    """A limit that is reached says so, with the figures; nothing is computed before."""
    data = copying()
    with pytest.raises(WorkLimit, match="units of work, the limit of the model is 1000") as caught:
        Network(data, work_limit=1000)
    assert caught.value.asked > caught.value.limit == 1000
    stream = [*words("u85", *COPY), 0x0000_4100, 0]
    looping = Network(blob(cop1(U85_256, stream)), work_limit=40_000)
    with pytest.raises(WorkLimit, match="the stream asks for"):
        looping.run([bytes(256)])


def test_a_loop_may_do_less_than_a_stream_whose_end_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody has to wait a minute for a guest's loop that counts on."""
    monkeypatch.setattr(model.workload, "LOOPING", 50_000)
    stream = [*words("u85", *COPY), 0x0000_4100, 0]
    with pytest.raises(WorkLimit, match="the limit of the model is 50000"):
        run(blob(cop1(U85_256, stream)), [bytes(256)])


TILES = {  # one for each map
    f"{map}_{size}_M1": 65535 for map in ("IFM", "OFM") for size in ("HEIGHT0", "HEIGHT1", "WIDTH0")
}
LARGE = {"OFM_HEIGHT_M1": 65535, "OFM_WIDTH_M1": 65535, "OFM_DEPTH_M1": 65535}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (LARGE, "the OFM asks for 281474976710656 elements"),
        ({"KERNEL_HEIGHT_M1": 65535, "KERNEL_WIDTH_M1": 9}, "the kernel asks for 655360 elements"),
        (
            {**TILES, "IFM_PAD_TOP": 8999, "KERNEL_HEIGHT_M1": 9000, "OFM_WIDTH_M1": 4095},
            "the IFM with its padding",
        ),
    ],
)
def test_registers_may_describe_more_than_any_machine_has(
    changes: dict[str, int], message: str
) -> None:
    """16-bit sizes, of maps, kernels and padding: counted before anything is allocated."""
    with pytest.raises(WorkLimit, match=message):
        run(copying(**changes), [INPUT])


@pytest.mark.parametrize("operation", ["CONV", "DEPTHWISE"])
def test_weights_are_counted_before_there_is_room_for_them(operation: str) -> None:
    """64 x 64 kernels for 65,536 channels would be 32 GiB."""
    items = pool(**TILES, KERNEL_HEIGHT_M1=63, KERNEL_WIDTH_M1=63, OFM_HEIGHT_M1=0, OFM_WIDTH_M1=0)
    depth = 255 if operation == "CONV" else 32767
    fields = {"OFM_DEPTH_M1": 32767, "IFM_DEPTH_M1": depth, "OFM_BLK_DEPTH_M1": 15}
    fields |= {"WEIGHT_REGION": 0, "WEIGHT_BASE": 0, "WEIGHT_LENGTH": 16, "ACC_FORMAT": 0}
    fields |= {"SCALE_REGION": 0, "SCALE_BASE": 0, "SCALE_LENGTH": 160, "OFM_PRECISION": 0x8001}
    stream = words("u55", *items[:-2], *fields.items(), (operation, 0), ("STOP", 0))
    with pytest.raises(WorkLimit, match=r"asks for \d+ (bytes for its weights|elements)"):
        run(blob(cop1(U55_128, stream)), [INPUT])


def test_a_dma_may_not_copy_more_than_there_is() -> None:
    copy = [*COPY[:4], ("DMA0_LEN", 1 << 31), ("DMA_START", 0), ("STOP", 0)]
    with pytest.raises(WorkLimit, match="DMA asks for 2147483648 bytes"):
        run(blob(cop1(U85_256, words("u85", *copy))), [INPUT])
    rows = {"DMA0_DST_REGION": 1 | 2 << 9, "DMA0_SIZE0": 16384, "DMA0_SIZE1": 8192}
    skips = {"DMA0_LEN": 1, "DMA0_SKIP0": 0, "DMA0_SKIP1": 0}
    stream = words("u55", *{**dict(COPY[:4]), **rows, **skips}.items(), ("DMA_START", 0))
    with pytest.raises(WorkLimit, match="units of work"):
        run(blob(cop1(U55_128, stream)), [INPUT])


def test_regions_are_no_larger_than_plausible() -> None:
    """A tensor of six dimensions, each of 31 bits, and a scratch of 4 GB."""
    io = tensors(((1 << 30,) * 6, 8, 0, 3))
    with pytest.raises(WorkLimit, match=r"inputs\[0\] asks for \d+ bytes, the limit"):
        run(blob(cop1(U55_128, []), io=io), [INPUT])
    with pytest.raises(WorkLimit, match=r"scratch asks for 4294967295 bytes, .* of the blob"):
        run(blob(cop1(U55_128, []), scratch=0xFFFFFFFF), [INPUT])


def test_an_average_of_padding_alone_is_refused() -> None:
    """No window element is valid, so there is nothing to divide by."""
    pads = {"IFM_PAD_TOP": 2, "IFM_PAD_BOTTOM": 0, "KERNEL_HEIGHT_M1": 1, "OFM_HEIGHT_M1": 3}
    with pytest.raises(Unsupported, match="an average of padding alone"):
        run(copying(**pads), [INPUT])


# The model behind the doorbell.
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


@pytest.mark.parametrize("strict", [True, False])
def test_memory_that_nobody_wrote_does_not_look_like_zeros(strict: bool) -> None:
    """A read of it is legal: a wrong stream must show in the result."""
    (found,), _ = run(copying(IFM_BASE0=2048), [INPUT], strict=strict)
    assert found == b"\xa5" * 256
