"""Blob, driver actions and stream: what is right is read, each fault is named with its place."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from harness.ethosu.blob import find_blobs, read_actions, read_blob
from harness.ethosu.disasm import disassemble
from harness.ethosu.errors import AccessError, BlobError, StreamError, Unsupported
from harness.ethosu.model import run
from tests.ethosu.assembling import U55_128, U85_256, blob, block, cop1, cop2, pool, tensors, words

INPUT = bytes(range(256))


def simple(**changes: int) -> bytes:
    return blob(cop1(U55_128, words("u55", *pool(**changes))))


@pytest.mark.parametrize("container", [cop1, cop2])
def test_both_containers_run(container: object) -> None:
    stream = words("u55", *pool())
    outputs, stats = run(blob(container(U55_128, stream)), [INPUT])  # type: ignore[operator]
    assert outputs == [INPUT]
    assert stats.config.name == "ethos-u55-128"


def test_external_block_comes_from_named_data() -> None:
    """The payload of an external block is a key, not the data."""
    data = simple()
    weights = block("weight_data", b"")
    external = data.replace(weights, block("weight_data", b"key", 1))
    assert read_blob(external, {"key": b"W" * 7}).weights == b"W" * 7
    with pytest.raises(BlobError, match="named data 'key'"):
        read_blob(external)
    with pytest.raises(BlobError, match="external flag 2"):
        read_blob(data.replace(weights, block("weight_data", b"key", 2)))


def test_blobs_are_found_inside_a_program() -> None:
    one = simple()
    assert find_blobs(b"junk" + one + b"more" + one) == [one, one]
    with pytest.raises(BlobError, match="before 'vela_end_stream'"):
        find_blobs(one[:-32])


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (b"", "ends inside a block header"),
        (block("cmd_data", b""), "the first block is 'cmd_data'"),
        (block("vela_bin_stream", b"") + block("what", b""), "unknown block 'what'"),
        (block("vela_bin_stream", b"") * 2, "appears twice"),
        (block("vela_bin_stream", b"") + block("vela_end_stream", b""), "no block 'cmd_data'"),
        (simple()[:-32], "ends inside a block header"),
        (struct.pack("<16sIB11s", b"vela_bin_stream", 99, 0, bytes(11)), "says 99 bytes"),
        (blob(b"", scratch=1 << 31), "plausible"),
        (blob(b"COP9"), "not COP1 or COP2"),
        (blob(b"COP1"), "no command stream"),
        (blob(b"COP1\x09\0\0\0"), "unknown driver action 9"),
        (blob(b"COP1\x02\0\x01\0" + bytes(4)), "without a configuration"),
        (blob(b"COP1\x01\0\0"), "inside a word"),
        (blob(cop1(U55_128, [1, 2])[:-4]), "says 2 words, 1 remain"),
        (blob(b"COP2"), "header is cut short"),
        (blob(cop2(U55_128, [0]) + b"\0\0\0\0"), "COP2 says"),
        (blob(cop2(U55_128, [0]).replace(b"VEUM", b"VEUX")), "not VEUM"),
        (blob(cop1(U55_128, [0]), io=b"\0"), "too short for its count"),
        (blob(cop1(U55_128, [0]), io=struct.pack("<i", 3)), "counts 3 tensors"),
        (blob(cop1(U55_128, [0]), io=tensors(((1, 1, 1, 0, 1, 1), 1, 0, 1))), "makes no sense"),
    ],
)
def test_malformed_container(broken: bytes, message: str) -> None:
    with pytest.raises(BlobError, match=message) as caught:
        run(broken, [INPUT])
    assert 0 <= caught.value.offset <= len(broken)


@pytest.mark.parametrize(
    ("stream", "message", "offset"),
    [
        ([0x0001_0000], "has no STOP", 4),
        ([0x0000_0400], "reserved bits", 0),
        ([0x0000_00FF], "unknown 32-bit command", 0),
        ([0x0000_C000], "unknown kind of command 3", 0),
        ([0x0000_4000], "ends inside a 64-bit command", 0),
        ([0x0000_4008, 0], "unknown 64-bit command", 0),
        (words("u55", ("POOL", 1)), "is used before it is set", 0),
    ],
)
def test_malformed_stream(stream: list[int], message: str, offset: int) -> None:
    if message == "has no STOP":
        stream = words("u55", ("DMA_WAIT", 0))
    with pytest.raises(StreamError, match=message) as caught:
        run(blob(cop1(U55_128, stream)), [INPUT])
    assert caught.value.offset == offset


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
        run(simple(**changes), [INPUT])


@pytest.mark.parametrize(
    ("changes", "register"),
    [
        ({"IFM_PRECISION": 0}, "IFM_PRECISION.activation_type"),
        ({"OFM_PRECISION": 0x4101}, "OFM_PRECISION.round_mode"),
        ({"OFM_PRECISION": 0x0101, "OFM_SCALE": 3 << 32 | 5}, "OFM_PRECISION.round_mode"),
        ({"ACTIVATION": 3}, "ACTIVATION.activation_function"),
        ({"ACTIVATION": 4}, "ACTIVATION.activation_function"),
        ({"ACTIVATION_MIN": 100, "ACTIVATION_MAX": 50}, "ACTIVATION_MIN"),
        ({"KERNEL_STRIDE": 32}, "KERNEL_STRIDE.decomposition"),
        ({"IFM_UPSCALE": 3}, "IFM_UPSCALE"),
        ({"IFM_PRECISION": 0x81}, "IFM_PRECISION.activation_format"),
        ({"OFM_DEPTH_M1": 7}, "IFM_DEPTH_M1"),
    ],
)
def test_unverified_registers_are_named(changes: dict[str, int], register: str) -> None:
    """Register, value and offset as data; nothing is guessed."""
    with pytest.raises(Unsupported) as caught:
        run(simple(**changes), [INPUT])
    assert caught.value.register == register
    assert caught.value.offset > 0
    assert caught.value.facts["value"] is not None


@pytest.mark.parametrize(
    ("operation", "register"),
    [(("POOL", 6), "POOL.pooling_mode"), (("ELEMENTWISE", 12), "ELEMENTWISE.elementwise_mode")],
)
def test_unverified_u85_operations_are_named(operation: tuple[str, int], register: str) -> None:
    items = [*pool()[:-2], operation, ("STOP", 0)]
    with pytest.raises(Unsupported) as caught:
        run(blob(cop1(U85_256, words("u85", *items))), [INPUT])
    assert caught.value.register == register


def test_unknown_npu_sizes() -> None:
    with pytest.raises(Unsupported, match="no u55 has that many MACs"):
        read_actions(cop1(0 << 28 | 9, [0]))
    with pytest.raises(Unsupported, match=r"CONFIG\.product"):
        read_actions(cop1(7 << 28 | 8, [0]))


def test_wrong_inputs() -> None:
    with pytest.raises(AccessError, match="0 inputs for 1"):
        run(simple(), [])
    with pytest.raises(AccessError, match="input 0 has 3 bytes, not 256"):
        run(simple(), [b"abc"])


def test_tiles_choose_their_base() -> None:
    """Right of WIDTH0 and below HEIGHT0 the other bases count."""
    changes = {"OFM_WIDTH0_M1": 1, "OFM_HEIGHT0_M1": 1, "OFM_HEIGHT1_M1": 1}
    bases = {"OFM_BASE1": 1024 + 32, "OFM_BASE2": 1024 + 128, "OFM_BASE3": 1024 + 160}
    assert run(simple(**changes, **bases), [INPUT])[0] == [INPUT]
    swapped = {"OFM_BASE1": 1024 + 128, "OFM_BASE2": 1024 + 32, "OFM_BASE3": 1024 + 160}
    quarters = np.frombuffer(INPUT, np.uint8).reshape(2, 2, 2, 32)  # lower, row, right, bytes
    expected = quarters.transpose(2, 1, 0, 3).tobytes()
    assert run(simple(**changes, **swapped), [INPUT])[0] == [expected]


def test_disassembly_has_every_command() -> None:
    actions = read_actions(cop1(U55_128, words("u55", *pool())))
    text = list(disassemble(actions))
    assert text[0] == f"; ethos-u55-128, {len(actions.words)} words"
    assert any(line.endswith("POOL AVERAGE") for line in text)
    assert any("ACTIVATION_MIN" in line and line.endswith("-128") for line in text)
    assert len(text) == 1 + len(pool())
