"""The planted firmware for a real Zephyr: built in its workspace, told which way to go wrong."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from harness.firmware.zephyr.workspace import find_workspace
from harness.formats.elf import read_elf

APPLICATION = Path(__file__).parent / "zephyr"
BOARD = "mps3/corstone300/an547"
_WAY = "way"


def build(folder: Path, logging: str) -> Path:
    """The ELF with Zephyr's logging "deferred" or "minimal"; some minutes, or half of one where
    ccache knows Zephyr."""
    workspace = find_workspace(BOARD)
    argv = [
        str(workspace.west),
        "build",
        "-b",
        BOARD,
        "-d",
        str(folder / logging),
        str(APPLICATION),
        "--",
        f"-DEXTRA_CONF_FILE={logging}.conf",
    ]
    done = subprocess.run(
        argv,
        env={**os.environ, **workspace.environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder / logging / "zephyr" / "zephyr.elf"


def told(elf: Path, way: str, to: Path) -> Path:
    """A copy whose constant names one of the ways of src/main.c."""
    image = read_elf(elf)
    symbol = next(s for s in image.symbols if s.name == _WAY)
    section = image.sections[symbol.shndx]
    at = section.offset + symbol.value - section.address
    content = bytearray(elf.read_bytes())
    content[at : at + symbol.size] = way.encode().ljust(symbol.size, b"\0")
    to.write_bytes(content)
    return to
