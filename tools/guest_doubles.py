"""Linux guests that end in every possible way: a program in the runner's place, a module that does
wrong, and targets whose guest does not come so far.

The program and the table of endings are in tests/endings; used by our tests and by
``hil bench verdict``. The guest and QEMU are the real ones.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from elftools.elf.elffile import ELFFile

from harness.config.loading import load_target, target_directories
from harness.config.target import Limits, Qemu, Target
from harness.core.errors import InfraError
from harness.export.program import Program
from harness.sim.guest.kernel import guest_kernel
from harness.system import toolchain
from tools.clone import project_root
from tools.doubles import FakeFirmware, double_program

TARGET = "corstone-1000-a320"
_STALL = 4.0  # seconds; more than a guest is still while it boots
# mov x0, #0; str x0, [x0] (Arm Architecture Reference Manual for A-profile, C6.2)
_STORE_TO_NULL = bytes.fromhex("000080d2000000f9")


@dataclass(frozen=True)
class GuestEnding:
    """``program`` says which it is to the firmware that ``ends_badly`` makes."""

    target: Target
    program: Program


def guest_endings() -> dict[str, tuple[str, str | None]]:
    """Ending -> (verdict, kind of its cause)."""
    table = json.loads((_folder() / "linux.json").read_text())
    return {name: (verdict, cause) for name, (verdict, cause) in table.items()}


def guest_ending(folder: Path, name: str) -> GuestEnding:
    """``folder`` must be new. Raises what ``guest_kernel`` does."""
    target = load_target(TARGET, target_directories({}))
    what = name.encode()
    if name == "OOPS":
        what = _faulty_module(target)
    elif name == "SLEEPS":
        target = replace(target, limits=Limits(host=200.0, stall=_STALL))
    elif name == "LOGIN_REFUSED":
        assert target.linux is not None
        stranger = replace(target.linux, user="nobody-here")
        target = replace(target, linux=stranger)
    elif name == "NO_ROOT_FILE_SYSTEM":
        target = _without_root(target)
    program = double_program(folder)
    program.pte_path.write_bytes(what)
    return GuestEnding(target, replace(program, pte_sha256=hashlib.sha256(what).hexdigest()))


def ends_badly(folder: Path) -> FakeFirmware:
    """A static program for AArch64 that ends as the program says that it is given. Raises
    InfraError."""
    elf = folder / "ends_badly"
    runner = project_root() / "targets" / "runner"
    sources = [
        _folder() / "linux.cpp",
        runner / "ports/linux/signals.cpp",
        runner / "ports/posix.cpp",
        runner / "core/format.cpp",
        runner / "core/log.cpp",
        runner / "core/arena.cpp",
    ]
    pools = [f"-DHIL_{name}_POOL_BYTES=4096" for name in ("METHOD", "TEMP", "FILE")]
    done = subprocess.run(
        [
            toolchain.locate("aarch64-linux-gnu-g++"),
            "-static",
            "-O1",
            "-g",
            "-w",
            "-Wl,--build-id",
            f"-I{runner}",
            *pools,
            "-o",
            elf,
            *sources,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise InfraError(f"the guest's program does not build: {done.stderr[:500]}")
    return FakeFirmware(elf)


def _faulty_module(target: Target) -> bytes:
    """A copy of the kernel's virtio_mmio under another name, whose first instruction is wrong."""
    guest = _qemu(target).guest
    assert guest is not None
    kernel = guest_kernel(guest.modules)
    module = next(path for path in kernel.modules if path.name == "virtio_mmio.ko")
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


def _without_root(target: Target) -> Target:
    """Its kernel is told of a first program that is not there, and then has nothing to mount."""
    qemu = _qemu(target)
    assert qemu.guest is not None
    options = (*qemu.guest.options, "rdinit=/nowhere")
    guest = replace(qemu.guest, options=options)
    settings = replace(target.simulators, qemu=replace(qemu, guest=guest))
    return replace(target, simulators=settings)


def _qemu(target: Target) -> Qemu:
    assert target.simulators.qemu is not None
    return target.simulators.qemu


def _folder() -> Path:
    return project_root() / "tests" / "endings"
