"""The part of a root file system that a program with ExecuTorch's libraries needs, beside it.

A guest has no libraries of its own, and this machine's are for another CPU: the wheel's are there,
and the C and C++ libraries of the compiler that linked the program.

XNNPACK also asks what CPU there is, in /proc and /sys. A guest's are its kernel's, and lie over
what is here; in QEMU's user mode they would be this machine's, or not there for a process that is
confined.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from harness.core.errors import BuildError
from harness.formats.elf import read_elf

_LIBRARIES = "lib"  # where the linker was told that they are
_SECONDS = 60
# The part numbers of Arm's cores (Linux, arch/arm64/include/asm/cputype.h).
_PARTS = {
    "cortex-a35": 0xD04,
    "cortex-a53": 0xD03,
    "cortex-a55": 0xD05,
    "cortex-a57": 0xD07,
    "cortex-a72": 0xD08,
    "cortex-a76": 0xD0B,
}
_ARM = 0x41


class LibraryMissing(BuildError):
    """Neither the wheel nor the compiler has ``library``, which ``wanted_by`` is linked with."""

    kind = "library_missing"

    def __init__(self, library: str, wanted_by: str, compiler: Path) -> None:
        self.library = library
        self.wanted_by = wanted_by
        super().__init__(
            f"{wanted_by} wants {library}, which {compiler.name} does not have either",
            hint="the compiler's C and C++ libraries for AArch64 are not all there: `hil doctor` "
            "says how to get them",
        )


def lay_out(program: Path, given: Sequence[Path], compiler: Path, root: Path) -> None:
    """Everything that ``program`` and what it loads are linked with, in ``root``/lib. ``given``:
    libraries that are no compiler's. Raises LibraryMissing, DamagedFile, OSError."""
    folder = root / _LIBRARIES
    folder.mkdir(parents=True)
    known = {path.name: path for path in given}
    elf = read_elf(program)
    wanted = [(name, program.name) for name in elf.needed]
    if elf.interpreter is not None:
        wanted.append((Path(elf.interpreter).name, program.name))
    done: set[str] = set()
    while wanted:
        name, by = wanted.pop()
        if name in done:
            continue
        done.add(name)
        source = known.get(name) or _of_compiler(compiler, name)
        if source is None:
            raise LibraryMissing(name, by, compiler)
        shutil.copyfile(source, folder / name)
        (folder / name).chmod(0o755)
        wanted += [(other, name) for other in read_elf(source).needed]


def describe_cpu(cpu: str, root: Path) -> None:
    """One core of ``cpu`` (GCC's name), as Linux tells of it: arch/arm64/kernel/cpuinfo.c and
    Documentation/admin-guide/cputopology.rst."""
    cores = root / "sys" / "devices" / "system" / "cpu"
    cores.mkdir(parents=True)
    for name in ("possible", "present"):
        (cores / name).write_text("0\n")
    lines = ["processor\t: 0"]
    if cpu in _PARTS:
        lines += [
            f"CPU implementer\t: {_ARM:#04x}",
            "CPU architecture: 8",
            f"CPU part\t: {_PARTS[cpu]:#05x}",
        ]
    (root / "proc").mkdir()
    (root / "proc" / "cpuinfo").write_text("\n".join(lines) + "\n")


def _of_compiler(compiler: Path, name: str) -> Path | None:
    """gcc(1): -print-file-name gives the name back when it knows of no such file."""
    said = subprocess.run(
        [str(compiler), f"-print-file-name={name}"],
        capture_output=True,
        timeout=_SECONDS,
        check=False,
        text=True,
    ).stdout.strip()
    found = Path(said)
    return found if found.is_absolute() and found.is_file() else None
