"""Where two runners part: the first instruction of a program whose result they do not agree on.

The program is cut after an instruction (``formats/pte_cut``), and both run it. What differs once
differs later, too, as a rule, so the place is searched by halves, and then held against the
instruction before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.formats.damage import DamagedFile
from harness.formats.pte_cut import CuttableProgram, Instruction

Outputs = Callable[[bytes], "tuple[bytes, ...] | None"]  # of a .pte; None: it did not run


@dataclass(frozen=True)
class FirstDifference:
    """``differing`` of ``size`` bytes of the instruction's result differ. ``after``: the operator
    before it, whose result was the same from both, or ""."""

    instruction: int
    operator: str
    differing: int
    size: int
    after: str = ""

    def __str__(self) -> str:
        before = f", after {self.after}, which is the same from both" if self.after else ""
        return (
            f"instruction {self.instruction} ({self.operator}): {self.differing} of {self.size} "
            f"bytes differ{before}"
        )


def first_operator(pte: Path, one: Outputs, other: Outputs) -> FirstDifference | None:
    """The first instruction on which two runners differ; None when they agree to the end, or one
    of them cannot run the cut program, or it cannot be cut."""
    try:
        program = CuttableProgram(pte)
        steps = [step for step in program.instructions() if step.values]
    except (DamagedFile, OSError):
        return None
    found: dict[int, int | None] = {}

    def differing(index: int) -> int | None:
        if index not in found:
            found[index] = _apart(program.cut(steps[index]), one, other)
        return found[index]

    low, high = 0, len(steps) - 1
    while low < high:
        middle = (low + high) // 2
        if differing(middle):
            high = middle
        else:
            low = middle + 1
    count = differing(low) if steps else None
    if not count:
        return None
    return _described(steps, low, count, program, one)


def _described(
    steps: list[Instruction], at: int, count: int, program: CuttableProgram, one: Outputs
) -> FirstDifference:
    result = one(program.cut(steps[at])) or (b"",)
    before = steps[at - 1].operator if at else ""
    return FirstDifference(steps[at].number, steps[at].operator, count, len(result[0]), before)


def _apart(pte: bytes, one: Outputs, other: Outputs) -> int | None:
    """How many bytes differ; None when there is nothing to be compared."""
    a, b = one(pte), other(pte)
    if a is None or b is None:
        return None
    left, right = b"".join(a), b"".join(b)
    if len(left) != len(right):
        return max(len(left), len(right))
    return sum(x != y for x, y in zip(left, right, strict=True))
