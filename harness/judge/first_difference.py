"""Where a computation of a program goes wrong: the first instruction whose result is.

The program is cut after an instruction (``formats/pte``) and run. Later results are usually
wrong too, so the place is found by halving. A result may also be right although an earlier one that
it does not read is wrong, so the search goes on among what the found instruction reads.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from harness.formats.pte import CuttableProgram, Instruction

Differs = Callable[[Instruction], "bool | None"]  # None: it is unknown


@dataclass(frozen=True)
class FirstDifference:
    """The first instruction whose result is wrong.

    ``after``: the last operator before it whose result it reads. ``read``: the values that it
    reads. ``sure``: each of them was right when it was written; otherwise that is not known of all.
    """

    instruction: int
    operator: str
    after: str = ""
    read: tuple[int, ...] = ()
    sure: bool = True

    @property
    def place(self) -> str:
        return f"instruction {self.instruction} ({self.operator})"

    def __str__(self) -> str:
        before = f", after {self.after}, where all is right" if self.after and self.sure else ""
        return f"{self.place}{before}"


def first_difference(program: CuttableProgram, differs: Differs) -> FirstDifference | None:
    """None if everything that the outputs depend on is right, or if that is unknown."""
    return _Search(program, differs).found()


def first_upstream(program: CuttableProgram, differs: Differs, instruction: int) -> FirstDifference:
    """Return the first that differs among what ``instruction`` depends on, or itself."""
    return _Search(program, differs).upstream(instruction)


class _Search:
    def __init__(self, program: CuttableProgram, differs: Differs) -> None:
        self._differs = differs
        self._steps: list[Instruction] = []
        self._read: list[dict[int, int]] = []  # value to the step that wrote it
        writers: dict[int, int] = {}
        for step, reads in program.flow():
            if step.values or step.operator == "":
                self._read.append({v: writers[s] for v, s in reads.items() if s in writers})
                new = {*program.tensors(step.arguments)} - {*program.inputs, *writers, *reads}
                writers |= dict.fromkeys(new, len(self._steps))
                self._steps.append(step)
        self._ends = sorted({*self._read[-1].values()})
        self._known: dict[int, bool | None] = {}

    def found(self) -> FirstDifference | None:
        end = next(filter(self._wrong, self._ends), None)
        if end is None:
            return None
        return self._described(self._earliest(end))

    def upstream(self, instruction: int) -> FirstDifference:
        number = next(n for n, step in enumerate(self._steps) if step.number == instruction)
        while (source := self._wrong_source(number)) is not None:
            number = source
        return self._described(number)

    def _described(self, number: int) -> FirstDifference:
        step, read = self._steps[number], self._read[number]
        sure = all(self._wrong(source) is False for source in read.values())
        after = self._steps[max(read.values())].operator if read else ""
        return FirstDifference(step.number, step.operator, after, tuple(read), sure)

    def _earliest(self, last: int) -> int:
        """``last`` is wrong."""
        first = bisect_left(range(last), True, key=lambda number: bool(self._wrong(number)))
        source = self._wrong_source(first)
        return first if source is None else self._earliest(source)

    def _wrong_source(self, number: int) -> int | None:
        return next(filter(self._wrong, self._read[number].values()), None)

    def _wrong(self, number: int) -> bool | None:
        if number not in self._known:
            self._known[number] = self._differs(self._steps[number])
        return self._known[number]
