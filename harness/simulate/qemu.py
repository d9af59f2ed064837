"""QEMU system emulation, the program's command line passed through semihosting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.simulate.launch import Launch
from harness.system import toolchain
from harness.target.loading import Qemu

# In the guest's directory, QEMU's current one, so that its name is short: the path of a Unix
# socket has 107 characters at most.
MONITOR = "qemu-monitor"
DDR = "npu-ddr"  # likewise: the file of the memory that QEMU shares


def launch(settings: Qemu, elf: Path, arguments: Sequence[str]) -> Launch:
    tool = toolchain.require(settings.executable)
    words = argv(str(tool.path), settings, elf, arguments)
    prefix = tool.path.resolve().parent.parent
    own = tuple(prefix / name for name in ("lib", "libexec", "share"))
    return Launch("qemu", tool, words, readable=(elf, *own), monitor=MONITOR)


def argv(executable: str, settings: Qemu, elf: Path, arguments: Sequence[str]) -> tuple[str, ...]:
    return (
        executable,
        *_machine(settings),
        "-nographic",
        *("-monitor", f"unix:{MONITOR},server=on,wait=off"),
        *("-serial", "none"),
        *settings.arguments,
        *("-semihosting-config", semihosting(arguments)),
        *("-kernel", str(elf)),
    )


def _machine(settings: Qemu) -> tuple[str, ...]:
    memory = ("-m", settings.memory) if settings.memory else ()
    if settings.shared_memory is None:
        return ("-M", settings.machine, *memory)
    size = f"{settings.shared_memory.size >> 20}M"
    file = f"memory-backend-file,id=ddr,size={size},mem-path={DDR},share=on"
    return ("-M", f"{settings.machine},memory-backend=ddr", "-m", size, "-object", file)


def semihosting(arguments: Sequence[str]) -> str:
    """The value of ``-semihosting-config``; in it a comma of an argument is written twice."""
    words = (f"arg={argument.replace(',', ',,')}" for argument in arguments)
    return ",".join(("enable=on", "target=native", *words))
