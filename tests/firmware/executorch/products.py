"""Building a checkout, looking at what came out, and leaving marks in its sources."""

from __future__ import annotations

import os
import re
from pathlib import Path

from harness.config.loading import load_target
from harness.core.simulator_name import SimulatorName
from harness.firmware.source import BuildRequest, Firmware, source_named
from harness.formats.elf import read_elf
from harness.sim.simulator import pick
from harness.system import paths
from harness.system.progress import Progress, silent
from tests.firmware.executorch.conftest import Source
from tests.firmware.executorch.small import edit

M55, U55, U85 = "corstone-300-m55", "corstone-300-u55-128", "corstone-320-u85-256"


def built(source: Source, target: str = M55, progress: Progress = silent) -> Firmware:
    chosen = pick(load_target(target), "qemu").target
    return source_named("executorch").build(
        BuildRequest(chosen, SimulatorName.QEMU, source.find()), progress
    )


def tree(source: Source, target: str = M55) -> Path:
    return paths.cache_dir("executorch") / source.plan(target).tree()


def compiled(source: Source, target: str = M55) -> list[str]:
    """The sources that the last build compiled."""
    log = (tree(source, target) / "build.log").read_text()
    found = re.findall(r"^\[\d+/\d+\] Building \w+ object (\S+)", log, re.MULTILINE)
    return sorted(Path(name).name.partition(".obj")[0] for name in found)


def marked(firmware: Firmware, text: str) -> bool:
    return text.encode() in firmware.elf.read_bytes()


def mark(path: Path, text: str) -> None:
    """Make a source leave a text in the program, where no linker takes it for unused."""
    with path.open("a") as file:
        section = f'.pushsection .mark\\n.asciz \\"<{text}>\\"\\n.popsection'
        file.write(f'\n__asm__("{section}");\n')


def stack_limit(firmware: Firmware) -> int:
    symbols = read_elf(firmware.elf).symbols
    return next(symbol.value for symbol in symbols if symbol.name == "__StackLimit")


def replaced(path: Path, old: str, new: str) -> None:
    """An edit that keeps the file's time, as ``cp -p`` and ``mv`` of another version do."""
    before = path.stat()
    edit(path, old, new)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
