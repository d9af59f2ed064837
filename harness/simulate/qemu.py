"""QEMU system emulation, the program's command line passed through semihosting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness import toolchain
from harness.simulate.launch import Launch
from harness.target import Qemu

# In the guest's directory, QEMU's current one, so that its name is short: the path of a Unix
# socket has 107 characters at most.
MONITOR = "qemu-monitor"


def launch(settings: Qemu, elf: Path, arguments: Sequence[str]) -> Launch:
    tool = toolchain.require(settings.executable)
    words = argv(str(tool.path), settings, elf, arguments)
    prefix = tool.path.resolve().parent.parent
    own = tuple(prefix / name for name in ("lib", "libexec", "share"))
    return Launch("qemu", tool, words, readable=(elf, *own), monitor=MONITOR)


def argv(executable: str, settings: Qemu, elf: Path, arguments: Sequence[str]) -> tuple[str, ...]:
    memory = ("-m", settings.memory) if settings.memory else ()
    return (
        executable,
        *("-M", settings.machine),
        *memory,
        "-nographic",
        *("-monitor", f"unix:{MONITOR},server=on,wait=off"),
        *("-serial", "none"),
        *settings.arguments,
        *("-semihosting-config", semihosting(arguments)),
        *("-kernel", str(elf)),
    )


def semihosting(arguments: Sequence[str]) -> str:
    """The value of ``-semihosting-config``; in it a comma of an argument is written twice."""
    words = (f"arg={argument.replace(',', ',,')}" for argument in arguments)
    return ",".join(("enable=on", "target=native", *words))
