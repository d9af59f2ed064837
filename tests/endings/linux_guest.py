"""What the tests of a Linux guest's endings run: programs, and a module that does wrong."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import replace
from pathlib import Path

from elftools.elf.elffile import ELFFile

from harness.dev.doubles import FakeFirmware, double_program
from harness.export.program import Program
from harness.system import toolchain
from harness.system.paths import project_root

# mov x0, #0; str x0, [x0] (Arm Architecture Reference Manual for A-profile, C6.2)
_STORE_TO_NULL = bytes.fromhex("000080d2000000f9")


def ends_badly(folder: Path) -> FakeFirmware:
    """A static program for AArch64 that ends as the program says that it is given."""
    elf = folder / "ends_badly"
    runner = project_root() / "targets" / "runner"
    sources = [
        Path(__file__).with_name("linux.cpp"), runner / "ports/linux/signals.cpp",
        runner / "ports/posix.cpp", runner / "core/format.cpp", runner / "core/log.cpp",
        runner / "core/arena.cpp",
    ]  # fmt: skip
    pools = [f"-DHIL_{name}_POOL_BYTES=4096" for name in ("METHOD", "TEMP", "FILE")]
    done = subprocess.run(
        [toolchain.require("aarch64-linux-gnu-g++").path, "-static", "-O1", "-g", "-w",
         "-Wl,--build-id", f"-I{runner}", *pools, "-o", elf, *sources],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return FakeFirmware(elf)


def told(folder: Path, what: bytes) -> Program:
    """The program that tells it."""
    given = double_program(folder)
    given.pte_path.write_bytes(what)
    return replace(given, pte_sha256=hashlib.sha256(what).hexdigest())


def faulty_module(module: Path) -> bytes:
    """A copy of the kernel's virtio_mmio under another name, whose first instruction is wrong."""
    content = bytearray(module.read_bytes())
    with module.open("rb") as file:
        elf = ELFFile(file)
        (init,) = elf.get_section_by_name(".symtab").get_symbol_by_name("init_module")
        code = elf.get_section(init["st_shndx"])
        itself = elf.get_section_by_name(".gnu.linkonce.this_module")
        start, size = itself["sh_offset"], itself["sh_size"]
        at = code["sh_offset"] + init["st_value"]
    content[at : at + len(_STORE_TO_NULL)] = _STORE_TO_NULL
    renamed = content[start : start + size].replace(b"virtio_mmio\0", b"virtio_oops\0")
    content[start : start + size] = renamed
    # Signed no more: a signature that is wrong is refused, none is not (Linux, kernel/module).
    return bytes(content).removesuffix(b"~Module signature appended~\n")
