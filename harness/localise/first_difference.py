"""After a MISMATCH: the first delegate, operator and element where NPU and TOSA disagree."""

from __future__ import annotations

from pathlib import Path

from harness.export.program import Program

_ELSEWHERE = (
    "every delegate computes what TOSA does, so the difference comes from an operator on the CPU "
    "or from how tensors are passed"
)


def first_difference(program: Program, pte: Path) -> str | None:
    """In words; None for a program without delegates. ``pte`` is the one that ran."""
    if not program.delegates:
        return None
    from harness.localise.disagreement import localise

    found = localise(program, pte=pte)
    return _ELSEWHERE if found is None else str(found)
