"""What the tests of a Linux guest's endings run: programs, and a module that does wrong."""

from __future__ import annotations

import subprocess
from pathlib import Path

from elftools.elf.elffile import ELFFile

from harness.dev.doubles import FakeFirmware
from harness.system import toolchain
from harness.system.paths import project_root

# mov x0, #0; str x0, [x0] (Arm Architecture Reference Manual for A-profile, C6.2)
_STORE_TO_NULL = bytes.fromhex("000080d2000000f9")


def program(folder: Path, ending: str) -> FakeFirmware:
    """A static program for AArch64 that ends as ``ending`` says."""
    elf = folder / ending
    runner = project_root() / "targets" / "runner"
    sources = [
        Path(__file__).with_name("linux.cpp"), runner / "ports/linux/signals.cpp",
        runner / "ports/posix.cpp", runner / "core/format.cpp", runner / "core/log.cpp",
        runner / "core/arena.cpp",
    ]  # fmt: skip
    pools = [f"-DHIL_{name}_POOL_BYTES=4096" for name in ("METHOD", "TEMP", "FILE")]
    done = subprocess.run(
        [toolchain.require("aarch64-linux-gnu-g++").path, "-static", "-O1", "-g", "-w",
         "-Wl,--build-id", f"-I{runner}", f"-DENDING={ending}", *pools, "-o", elf, *sources],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return FakeFirmware(elf)


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
