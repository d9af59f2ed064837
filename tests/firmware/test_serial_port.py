"""The runner's serial port: the program in flash, what it says in frames over a UART, on QEMU's
STM32F405 and MPS2 (AN505), whose UARTs are of two kinds."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest

from harness.config.loading import load_target, target_directories
from harness.config.target import Region, Target
from harness.core.errors import BuildError
from harness.core.simulator_name import SimulatorName
from harness.firmware.source import BuildRequest, Firmware, source_named
from tools.clone import project_root

# What our exporter makes, with three input sets and what they give.
PROGRAM = project_root() / "targets/runner/ports/zephyr/sample/qlinear.bpte"
RUN = "0123456789abcdef"
SERIAL = {"HIL_HOST_LINK": "serial", "HIL_SYSTEM_COUNTER_BASE": "", "HIL_STACK_BYTES": "16384"}
_FRAME = re.compile(rb"@([0-9a-f]{4})([BLFX]) (.*) ([0-9a-f]{8})")


def stm32f405() -> Target:
    """Half of its flash has the firmware, the other half the program. A Cortex-M4 runs what other
    tests compile for a Cortex-M0+."""
    base = load_target("mps2-m0plus", target_directories({}))
    regions = (
        ("ITCM", 0x08000000, 0x80000),
        ("DDR", 0x08080000, 0x80000),
        ("DTCM", 0x20000000, 0x8000),
        ("SRAM", 0x20008000, 0x18000),
    )
    return replace(
        base,
        memory=tuple(Region(name=n, origin=at, size=size) for n, at, size in regions),
        cmake={**base.cmake, **SERIAL, "HIL_UART_STM32": "1", "HIL_UART_BASE": "0x40011000"},
        default_pools={"file": 0x80000, "method": 0x10000, "temp": 0x2000},
    )


def an505() -> Target:
    base = load_target("mps2-m33", target_directories({}))
    return replace(base, cmake={**base.cmake, **SERIAL})


@dataclass(frozen=True)
class Board:
    machine: str
    target: Target
    flash: int
    programs: int  # where the file pool is


STM32F405 = Board("netduinoplus2", stm32f405(), 0x08000000, 0x08080000)
AN505 = Board("mps2-an505", an505(), 0x10000000, 0x80000000)


@cache
def built(machine: str) -> Firmware:
    board = {b.machine: b for b in (STM32F405, AN505)}[machine]
    return source_named("bundled").build(BuildRequest(board.target, SimulatorName.QEMU))


def image_of(arguments: str, files: Mapping[str, bytes]) -> bytes:
    """As ports/program_image.h has it."""
    start = 36 + 32 * len(files)
    table, content = b"", arguments.encode() + b"\0"
    for name, data in files.items():
        content += bytes(-(start + len(content)) % 32)
        table += struct.pack("<24sII", name.encode(), start + len(content), len(data))
        content += data
    rest = RUN.encode() + struct.pack("<II", start, len(files)) + table + content
    return struct.pack("<4sII", b"HILI", 12 + len(rest), crc32(rest)) + rest


def said(board: Board, image: bytes, folder: Path) -> list[tuple[str, bytes]]:
    """The frames of a whole run: kind and content."""
    flash, programs = folder / "flash.bin", folder / "programs.bin"
    elf = built(board.machine).elf
    subprocess.run(["arm-none-eabi-objcopy", "-O", "binary", elf, flash], check=True)
    programs.write_bytes(image)
    loaders = [(flash, board.flash), (programs, board.programs)]
    words = [f"loader,file={f},addr={at:#x},force-raw=on" for f, at in loaders]
    argv = ["qemu-system-arm", "-M", board.machine, "-nographic", "-monitor", "none"]
    argv += ["-serial", "stdio", *(w for word in words for w in ("-device", word))]
    frames = []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as qemu:
        assert qemu.stdout is not None
        try:
            for number, line in enumerate(qemu.stdout):
                match = _FRAME.fullmatch(line.rstrip(b"\n"))
                assert match is not None, line
                assert int(match[1], 16) == number
                assert crc32(line[1 : match.end(3)]) == int(match[4], 16)
                frames.append((match[2].decode(), match[3]))
                if match[2] == b"X":
                    break
        finally:
            qemu.kill()
    return frames


@pytest.mark.parametrize("board", [STM32F405, AN505], ids=lambda board: str(board.machine))
def test_a_program_in_flash_runs_and_its_outputs_come_in_frames(
    board: Board, tmp_path: Path
) -> None:
    """Every line has its number and its checksum; the firmware says which run's image it has."""
    image = image_of("runner -m program.bpte -o s0", {"program.bpte": PROGRAM.read_bytes()})
    frames = said(board, image, tmp_path)
    assert frames[0] == ("B", RUN.encode())
    assert frames[-1] == ("X", b"0")
    text = b"\n".join(content for kind, content in frames if kind == "L").decode()
    assert f"build id {built(board.machine).build_id}" in text
    assert text.count("Test_result: PASS") == 3
    parts = [content.split(b" ") for kind, content in frames if kind == "F"]
    assert {name for name, *_ in parts} == {b"s0-0.bin"}
    assert sum(len(data) // 2 for *_, data in parts) == int(parts[0][2]) == 1184


def test_a_damaged_image_is_not_run(tmp_path: Path) -> None:
    """Whatever its outputs would be, they would not be those of the program that was asked for."""
    image = bytearray(image_of("runner -m program.bpte", {"program.bpte": PROGRAM.read_bytes()}))
    image[1000] ^= 1
    frames = said(STM32F405, bytes(image), tmp_path)
    assert frames[0] == ("B", b"none")
    assert b"there is no program image at 0x8080000, or it is damaged: flash it" in frames[1][1]
    assert frames[2:] == [("X", b"1")]


def test_a_file_that_the_image_has_not_is_told(tmp_path: Path) -> None:
    frames = said(STM32F405, image_of("runner -m other.pte -o s0", {"a": b""}), tmp_path)
    assert any(b"cannot open program 'other.pte'" in content for _, content in frames)
    assert frames[-1] == ("X", b"1")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("HIL_HOST_LINK", "usb", "HIL_HOST_LINK is 'usb', and can be semihosting or serial"),
        ("HIL_BOARD_SETUP", "0x1:2", "HIL_BOARD_SETUP has '0x1:2', expected 0xADDRESS:0xCLEAR"),
    ],
)
def test_a_wrong_option_is_told(option: str, value: str, message: str) -> None:
    board = replace(STM32F405.target, cmake={**STM32F405.target.cmake, option: value})
    with pytest.raises(BuildError, match=re.escape(message)):
        source_named("bundled").build(BuildRequest(board, SimulatorName.QEMU))
