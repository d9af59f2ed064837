"""Blobs and streams made by hand, to have something to break."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from harness.npu.model import Network, Stats
from harness.npu.stream import register_set

U55_128 = 0 << 28 | 24 << 8 | 7
U85_256 = 2 << 28 | 8
Item = tuple[str, int]


def words(product: str, *items: Item) -> list[int]:
    names = register_set(product)
    cmd0 = {
        name: code for code, name in (*names.cmd0.items(), *register_set("u85").operations.items())
    }
    cmd1 = {name: code for code, name in names.cmd1.items()}
    result = []
    for name, value in items:
        if name in cmd0:
            result.append(cmd0[name] | (value & 0xFFFF) << 16)
        else:
            result += [cmd1[name] | 1 << 14 | (value >> 32 & 0xFFFF) << 16, value & 0xFFFFFFFF]
    return result


def cop1(config: int, stream: list[int]) -> bytes:
    head = [1, config, 0, 5, 5, 5, 2 | (len(stream) & 0xFFFF) << 16 | (len(stream) >> 16) << 8]
    return b"COP1" + struct.pack(f"<{len(head) + len(stream)}I", *head, *stream)


def cop2(config: int, stream: list[int], cache: int = 0) -> bytes:
    content = struct.pack(f"<{len(stream)}I", *stream)
    metadata = b"VEUM" + struct.pack("<IIIIIQ", 1, 20, config, 0, 2, cache)
    metadata = metadata.ljust(36, b"\xff")
    entry = struct.pack("<I", len(metadata)) + metadata + content
    body = struct.pack("<II", 1, len(entry)) + entry
    return b"COP2" + struct.pack("<IQ", 1, len(body)) + body


def block(name: str, content: bytes, external: int = 0) -> bytes:
    padding = bytes(-len(content) % 16)
    header = struct.pack("<16sIB11s", name.encode(), len(content), external, bytes(11))
    return header + content + padding


def tensors(*entries: tuple[tuple[int, ...], int, int, int]) -> bytes:
    parts = [struct.pack("<9i", *shape, size, at, region) for shape, size, at, region in entries]
    return struct.pack("<i", len(entries)) + b"".join(parts)


def blob(
    commands: bytes,
    *,
    weights: bytes = b"",
    scratch: int = 4096,
    io: bytes | None = None,
    inputs: bytes | None = None,
    outputs: bytes | None = None,
) -> bytes:
    """``io`` stands for both tensor lists; without any, 256 bytes go in at 0 and out at 1024."""
    one = inputs or (io if io is not None else tensors(((1, 1, 1, 4, 4, 16), 1, 0, 1)))
    two = outputs or (io if io is not None else tensors(((1, 1, 1, 4, 4, 16), 1, 1024, 1)))
    return b"".join(
        (
            block("vela_bin_stream", b""),
            block("cmd_data", commands),
            block("weight_data", weights),
            block("scratch_size", struct.pack("<I", scratch)),
            block("inputs", one),
            block("outputs", two),
            block("vela_end_stream", b""),
        )
    )


def pool(**changes: int) -> list[Item]:
    """A 1x1 average pool that copies 4x4x16 bytes from 0 to 1024 on a U55; rounding NATURAL."""
    items = {
        "IFM_REGION": 1,
        "IFM_BASE0": 0,
        "IFM_HEIGHT0_M1": 3,
        "IFM_HEIGHT1_M1": 3,
        "IFM_WIDTH0_M1": 3,
        "IFM_DEPTH_M1": 15,
        "IFM_STRIDE_Y": 64,
        "IFM_STRIDE_X": 16,
        "IFM_STRIDE_C": 1,
        "IFM_ZERO_POINT": 0,
        "IFM_PRECISION": 1,
        "IFM_UPSCALE": 0,
        **{f"IFM_PAD_{side}": 0 for side in ("TOP", "LEFT", "BOTTOM", "RIGHT")},
        "OFM_REGION": 1,
        "OFM_BASE0": 1024,
        "OFM_HEIGHT0_M1": 3,
        "OFM_HEIGHT1_M1": 3,
        "OFM_WIDTH0_M1": 3,
        "OFM_HEIGHT_M1": 3,
        "OFM_WIDTH_M1": 3,
        "OFM_DEPTH_M1": 15,
        "OFM_STRIDE_Y": 64,
        "OFM_STRIDE_X": 16,
        "OFM_STRIDE_C": 1,
        "OFM_ZERO_POINT": 0,
        "OFM_PRECISION": 0x8101,
        "KERNEL_HEIGHT_M1": 0,
        "KERNEL_WIDTH_M1": 0,
        "KERNEL_STRIDE": 0,
        "ACC_FORMAT": 0,
        "ACTIVATION": 0,
        "ACTIVATION_MIN": -128,
        "ACTIVATION_MAX": 127,
        "OFM_SCALE": 1,
    }
    items.update(changes)
    return [*items.items(), ("POOL", 1), ("STOP", 0xFFFF)]


INPUT = bytes(range(256))


def copying(**changes: int) -> bytes:
    """A blob for a U55 that gives its input, 256 bytes, as its output."""
    return blob(cop1(U55_128, words("u55", *pool(**changes))))


def run(
    stream: bytes, inputs: Sequence[bytes], *, strict: bool = True
) -> tuple[list[bytes], Stats]:
    return Network(stream).run(inputs, strict=strict)
