"""Which operators of a program an ELF has no kernel for, before anything is run.

Runners register a kernel under the operator's full name ("cortex_m::quantized_add.out"), so the
name is in the ELF as a string of its own; ExecuTorch's and ours do.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.link.elfobj import SHF_ALLOC, read_object


def missing_operators(elf: Path, operators: Iterable[str]) -> tuple[str, ...]:
    """Those of ``operators`` ("namespace::name.overload") that no loaded section names."""
    program = read_object(elf)
    loaded = [program.content(s) for s in program.sections if s.flags & SHF_ALLOC]
    return tuple(
        name
        for name in dict.fromkeys(operators)
        if not any(_whole(name, content) for content in loaded)
    )


def _whole(name: str, content: bytes) -> bool:
    """The name as a string that ends where it ends; its start may be the tail of another."""
    return name.encode() + b"\0" in content
