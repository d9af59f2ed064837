"""What the NPU's driver does with a custom operator payload before it starts the NPU.

Order, checks and messages: ethos-u-core-driver, src/ethosu_driver.c and src/ethosu_device_*.c
(public); the same in C++ is targets/runner/ethosu/driver.cpp.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_COP1 = 0x31504F43
_CONFIG, _STREAM, _NOP = 1, 2, 5
_U85 = 2
_CUSTOM_DMA = 27


class DriverError(Exception):
    """The driver refuses; each argument is a line that it logs."""


@dataclass(frozen=True)
class Payload:
    config: tuple[int, int] | None  # the words of OPTIMIZER_CONFIG: config, id
    start: int  # of the command stream, from the beginning of the payload
    size: int


def read_payload(data: bytes) -> Payload:
    if len(data) < 4 or struct.unpack_from("<I", data)[0] != _COP1:
        first = int.from_bytes(data[:4], "little")
        raise DriverError(f"Custom Operator Payload: {first} is not correct, expected {_COP1:x}")
    if len(data) % 4:
        raise DriverError(f"custom_data_size=0x{len(data):x} not a multiple of 4")
    config, at = None, 4
    while at < len(data):
        (word,) = struct.unpack_from("<I", data, at)
        action, count = word & 0xFF, word >> 16 | (word >> 8 & 0xFF) << 16
        if action == _CONFIG and at + 12 <= len(data):
            config = struct.unpack_from("<II", data, at + 4)
            at += 12
        elif action == _STREAM and at + 4 + 4 * count <= len(data):
            return Payload(config, at + 4, 4 * count)
        elif action == _NOP:
            at += 4
        elif action in (_CONFIG, _STREAM):
            raise DriverError(f"Custom Operator Payload: the action at byte {at} is cut off")
        else:
            raise DriverError(f"UNSUPPORTED driver_action_command: {action}")
    raise DriverError("Custom Operator Payload: there is no command stream in it")


def verify_config(npu: tuple[int, int], optimizer: tuple[int, int]) -> None:
    """The CONFIG and ID registers against what the stream was compiled for."""
    lines = list(_differences(npu[0], optimizer[0]))
    major, minor, patch = _version(npu[1])
    wanted_major, wanted_minor, wanted_patch = _version(optimizer[1])
    if major != wanted_major or minor < wanted_minor:
        lines.append(
            f"NPU arch mismatch. npu.arch={major}.{minor}.{patch}, "
            f"optimizer.arch={wanted_major}.{wanted_minor}.{wanted_patch}"
        )
    if lines:
        raise DriverError(*lines)


def _differences(npu: int, optimizer: int) -> Iterator[str]:
    fields = [("product", 28, 4), ("macs_per_cc", 0, 4), ("cmd_stream_version", 4, 4)]
    if npu >> 28 == optimizer >> 28 == _U85:  # these bits are the SHRAM size of U55 and U65
        fields += [("num_axi_sram", 8, 2), ("num_axi_ext", 10, 1)]
    for name, low, bits in fields:
        ours, theirs = (word >> low & ((1 << bits) - 1) for word in (npu, optimizer))
        if ours != theirs:
            yield _mismatch(name, ours, theirs)
    ours, theirs = (word >> _CUSTOM_DMA & 1 for word in (npu, optimizer))
    if theirs > ours:
        yield _mismatch("custom_dma", ours, theirs)


def _mismatch(name: str, ours: int, theirs: int) -> str:
    return f"NPU config mismatch. npu.{name}={ours}, optimizer.{name}={theirs}"


def _version(identity: int) -> tuple[int, int, int]:
    return identity >> 28, identity >> 20 & 0xFF, identity >> 16 & 0xF
