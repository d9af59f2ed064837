"""Where two runners part: the first instruction of a program whose result they do not agree on.

The program is cut after an instruction (``formats/pte_cut``), and both run it. What differs once
differs later, too, as a rule, so the place is searched by halves. That the instruction before it
gives the same from both is only said when both have run it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.core.errors import MalformedFile
from harness.formats.pte_cut import CuttableProgram

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
    except (MalformedFile, OSError):
        return None
    apart: dict[int, tuple[int, int] | None] = {}

    def differs(index: int) -> bool:
        if index not in apart:
            apart[index] = _apart(program.cut(steps[index]), one, other)
        found = apart[index]
        return found is not None and found[0] > 0

    low, high = 0, len(steps) - 1
    while low < high:
        middle = (low + high) // 2
        if differs(middle):
            high = middle
        else:
            low = middle + 1
    if not steps or not differs(low):
        return None
    differing, size = apart[low] or (0, 0)
    known = low > 0 and apart.get(low - 1) is not None
    before = steps[low - 1].operator if known else ""
    return FirstDifference(steps[low].number, steps[low].operator, differing, size, before)


def _apart(pte: bytes, one: Outputs, other: Outputs) -> tuple[int, int] | None:
    """How many bytes differ, and of how many; None when there is nothing to be compared."""
    a, b = one(pte), other(pte)
    if a is None or b is None:
        return None
    left, right = b"".join(a), b"".join(b)
    if len(left) != len(right):
        return max(len(left), len(right)), len(left)
    return sum(x != y for x, y in zip(left, right, strict=True)), len(left)
