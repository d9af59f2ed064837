"""QEMU's command line, its own files, and the memory that it may need."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.config.target import Qemu
from harness.system.toolchain import Tool

# QEMU without the guest's RAM takes 1.2 GiB, most of it room for translated code. It asks for more
# when a guest writes or reads much at once, up to 2 GiB, which would be the host's memory.
_OWN_MEMORY = 5 << 29
_RAM = 2 << 30  # of the boards with most, where no size is given
_UNITS = {"K": 10, "M": 20, "G": 30}


def own_files(tool: Tool) -> tuple[Path, ...]:
    """QEMU's own libraries and data."""
    prefix = tool.path.resolve().parent.parent
    return (prefix / "lib", prefix / "share" / "qemu")


def memory_limit(settings: Qemu) -> int:
    """Bytes that QEMU may need; it has the guest's RAM unless that is shared."""
    if settings.shared_memory is not None:
        return _OWN_MEMORY
    if settings.memory is None:
        return _OWN_MEMORY + _RAM
    size = settings.memory.upper()  # mebibytes are QEMU's default
    return _OWN_MEMORY + (int(size.rstrip("KMG")) << _UNITS.get(size[-1], 20))


def argv(executable: str, settings: Qemu, elf: Path, arguments: Sequence[str]) -> tuple[str, ...]:
    return (
        executable,
        *common(settings),
        *("-serial", "stdio" if settings.serial else "none"),
        *settings.arguments,
        *("-semihosting-config", semihosting(arguments)),
        *("-kernel", str(elf)),
    )


def common(settings: Qemu) -> tuple[str, ...]:
    machine, memory = settings.machine, ("-m", settings.memory) if settings.memory else ()
    if settings.shared_memory is not None:  # the memory itself is the companion's
        from harness.sim.companion import MEMORY

        machine += f",memory-backend={MEMORY}"
        memory = ("-m", f"{settings.shared_memory.size >> 20}M")
    return ("-M", machine, *memory, "-nographic", *("-monitor", "none"))


def semihosting(arguments: Sequence[str]) -> str:
    """Return the value of ``-semihosting-config``, where an argument's comma is doubled."""
    words = (f"arg={argument.replace(',', ',,')}" for argument in arguments)
    return ",".join(("enable=on", "target=native", *words))
