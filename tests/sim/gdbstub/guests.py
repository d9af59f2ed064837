"""Small programs for QEMU's mps3-an547, compiled from this folder's sources."""

from __future__ import annotations

import subprocess
from pathlib import Path

FOLDER = Path(__file__).parent
NPU_GUEST = FOLDER / "npu_guest.c"
_MACHINE = ("-mthumb", "-O1", "-Wl,--build-id=none")


def bare(
    elf: Path,
    source: Path,
    *,
    code: int = 0x10000000,
    data: int = 0x30000000,
    cpu: str = "cortex-m55",
    **macros: object,
) -> Path:
    """Without any library; ``code`` and ``data`` say where it lies."""
    _compile(
        *(f"-mcpu={cpu}", *_MACHINE, "-nostdlib", "-ffreestanding", "-Wl,--entry=reset"),
        *(f"-Wl,--section-start=.vectors=0x{code:x}", f"-Wl,-Ttext=0x{code + 256:x}"),
        *(f"-Wl,--section-start=.rodata=0x{code + 0x4000:x}", f"-Wl,-Tbss=0x{data:x}"),
        *("-Wl,-z,max-page-size=256", *_defined(macros), str(source), "-o", str(elf)),
    )
    return elf


def newlib(elf: Path, source: str = "newlib.c", **macros: object) -> Path:
    """A source of this folder with newlib's own start-up and semihosting."""
    _compile(
        *("-mcpu=cortex-m55", "-mfloat-abi=soft", *_MACHINE, "--specs=rdimon.specs"),
        *("-T", str(FOLDER / "newlib.ld"), "-Wl,--no-warn-rwx-segments", *_defined(macros)),
        *(str(FOLDER / source), "-o", str(elf)),
    )
    return elf


def stripped(elf: Path) -> Path:
    """A copy without symbols."""
    copy = elf.with_name(f"stripped-{elf.name}")
    subprocess.run(["arm-none-eabi-strip", "-o", str(copy), str(elf)], check=True)
    return copy


def _defined(macros: dict[str, object]) -> list[str]:
    return [f"-D{name}={value}" for name, value in macros.items()]


def _compile(*words: str) -> None:
    subprocess.run(["arm-none-eabi-gcc", *words], check=True)
