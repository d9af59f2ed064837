"""What the NPU's driver does with a custom operator payload before it starts the NPU.

Order, checks and messages: ethos-u-core-driver, src/ethosu_driver.c and src/ethosu_device_*.c
(public); the same in C++ is targets/runner/ethosu/driver.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.formats import cop
from harness.formats.damage import DamagedFile

_COMPARED = ("product", "macs_per_cc", "cmd_stream_version", "num_axi_sram", "num_axi_ext")


class DriverError(Exception):
    """The driver refuses; ``lines`` is what it logs."""

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.lines = lines


@dataclass(frozen=True)
class Payload:
    config: tuple[int, int] | None  # the words of OPTIMIZER_CONFIG: config, id
    start: int  # of the command stream, from the beginning of the payload
    size: int


def read_payload(data: bytes) -> Payload:
    """The first command stream; of the two containers the driver knows only COP1."""
    if data[:4] != cop.COP1:
        first, wanted = (int.from_bytes(magic, "little") for magic in (data[:4], cop.COP1))
        raise DriverError(f"Custom Operator Payload: {first} is not correct, expected {wanted:x}")
    if len(data) % 4:
        raise DriverError(f"custom_data_size=0x{len(data):x} not a multiple of 4")
    try:
        stream = next(cop.command_streams(data), None)
    except cop.UnknownAction as error:
        raise DriverError(f"UNSUPPORTED driver_action_command: {error.action}") from None
    except DamagedFile as error:
        raise DriverError(
            f"Custom Operator Payload: the action at byte {error.offset} is cut off"
        ) from None
    if stream is None:
        raise DriverError("Custom Operator Payload: there is no command stream in it")
    return Payload(stream.npu, stream.start, stream.size)


def verify_config(npu: tuple[int, int], optimizer: tuple[int, int]) -> None:
    """The CONFIG and ID registers against what the stream was compiled for."""
    lines = list(_differences(npu[0], optimizer[0]))
    major, minor, patch = cop.architecture(npu[1])
    wanted_major, wanted_minor, wanted_patch = cop.architecture(optimizer[1])
    if major != wanted_major or minor < wanted_minor:
        lines.append(
            f"NPU arch mismatch. npu.arch={major}.{minor}.{patch}, "
            f"optimizer.arch={wanted_major}.{wanted_minor}.{wanted_patch}"
        )
    if lines:
        raise DriverError(*lines)


def _differences(npu: int, optimizer: int) -> Iterator[str]:
    fields, wanted = cop.config_fields(npu), cop.config_fields(optimizer)
    for name in _COMPARED:
        if name in fields and name in wanted and fields[name] != wanted[name]:
            yield _mismatch(name, fields[name], wanted[name])
    if wanted["custom_dma"] > fields["custom_dma"]:
        yield _mismatch("custom_dma", fields["custom_dma"], wanted["custom_dma"])


def _mismatch(name: str, ours: int, theirs: int) -> str:
    return f"NPU config mismatch. npu.{name}={ours}, optimizer.{name}={theirs}"
