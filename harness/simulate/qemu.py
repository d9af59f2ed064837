"""QEMU system emulation, the program's command line passed through semihosting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness import toolchain
from harness.simulate.launch import Launch
from harness.target import Qemu


def launch(settings: Qemu, elf: Path, arguments: Sequence[str]) -> Launch:
    tool = toolchain.require(settings.executable)
    return Launch("qemu", tool, argv(str(tool.path), settings, elf, arguments), readable=(elf,))


def argv(executable: str, settings: Qemu, elf: Path, arguments: Sequence[str]) -> tuple[str, ...]:
    memory = ("-m", settings.memory) if settings.memory else ()
    return (
        executable,
        *("-M", settings.machine),
        *memory,
        "-nographic",
        *("-monitor", "none"),
        *("-serial", "none"),
        *settings.arguments,
        *("-semihosting-config", semihosting(arguments)),
        *("-kernel", str(elf)),
    )


def semihosting(arguments: Sequence[str]) -> str:
    """The value of ``-semihosting-config``; in it a comma of an argument is written twice."""
    words = (f"arg={argument.replace(',', ',,')}" for argument in arguments)
    return ",".join(("enable=on", "target=native", *words))
