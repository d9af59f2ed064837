"""Which operators of a program an ELF has no kernel for, before anything is run.

Runners register a kernel under the operator's full name ("cortex_m::quantized_add.out"), so the
name is in the ELF as a string of its own; ExecuTorch's and ours do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.build.source import FirmwareSource
from harness.errors import LinkError
from harness.formats.damage import DamagedFile
from harness.formats.elf import SHF_ALLOC, ElfFile, Section, read_elf

_HINTS = {
    FirmwareSource.BUNDLED: "add the kernel to targets/runner/kernels (a file op_*.cpp with its "
    "HIL_OPERATOR line), link the library that registers it, or lower the model differently",
    FirmwareSource.EXECUTORCH: "the checkout's list of operators, or the kernel libraries that its "
    "runner links, lack it: add it there, or lower the model differently",
}


class OperatorMissing(LinkError):
    """The linked program has no kernel for some operators."""

    kind = "operator_missing"

    def __init__(self, elf: Path, operators: Sequence[str], source: FirmwareSource) -> None:
        self.operators = tuple(operators)
        self.source = source
        plural = "s" if len(operators) > 1 else ""
        whose = "the runner" if source is FirmwareSource.BUNDLED else "ExecuTorch's runner"
        super().__init__(
            f"{whose} has no kernel for operator{plural} {', '.join(operators)}",
            hint=_HINTS[source],
            path=elf,
        )


def require_operators(
    elf: Path, operators: Iterable[str], source: FirmwareSource = FirmwareSource.BUNDLED
) -> None:
    """Raises OperatorMissing, with all their names, when the ELF lacks kernels."""
    missing = missing_operators(elf, operators)
    if missing:
        raise OperatorMissing(elf, missing, source)


def missing_operators(elf: Path, operators: Iterable[str]) -> tuple[str, ...]:
    """Those of ``operators`` ("namespace::name.overload") that no loaded section names."""
    program = read_elf(elf)
    loaded = [(s, program.content(s)) for s in program.sections if s.flags & SHF_ALLOC]
    return tuple(
        name for name in dict.fromkeys(operators) if not _is_named(name.encode(), program, loaded)
    )


def _is_named(name: bytes, program: ElfFile, loaded: Sequence[tuple[Section, bytes]]) -> bool:
    """The name as a whole string; or as the tail of one to which something points, for the
    linker lets a string share the end of a longer one."""
    text = name + b"\0"
    for section, content in loaded:
        at = content.find(text)
        while at >= 0:
            if at == 0 or content[at - 1] == 0:
                return True
            if _is_pointed_to(section.address + at, program, loaded):
                return True
            at = content.find(text, at + 1)
    return False


def _is_pointed_to(address: int, program: ElfFile, loaded: Sequence[tuple[Section, bytes]]) -> bool:
    size = program.bits // 8
    pointer = address.to_bytes(size, program.byte_order)
    return any(
        (section.address + content.find(pointer)) % size == 0
        for section, content in loaded
        if pointer in content
    )


def operators_of(pte: Path) -> tuple[str, ...]:
    """The operators that a ``.pte`` calls; ``()`` for a file that does not keep to the format,
    of which the runner says more."""
    from harness.formats.flatbuffer import FlatBuffer
    from harness.formats.schema import PTE, load_schema

    content = pte.read_bytes()
    if content[4:6] != b"ET":
        return ()
    found = []
    try:
        program = FlatBuffer(memoryview(content), load_schema(PTE), len(content)).root()
        for plan in program.items("execution_plan"):
            for operator in plan.items("operators"):
                overload = operator.get("overload")
                found.append((operator.get("name") or "") + (f".{overload}" if overload else ""))
    except DamagedFile:
        return ()
    return tuple(dict.fromkeys(found))
