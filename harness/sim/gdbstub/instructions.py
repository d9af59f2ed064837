"""Instructions per operator of ExecuTorch's runner, which counts none itself.

``Method::execute_instruction`` runs one instruction of a program; the core is stopped where it
begins and where it returns, and the board's system counter is read. While the core stands still
the counter does, too, and our start-up code makes it count instructions (QEMU with ``-icount
shift=5``; registers: Arm SSE-300 Technical Reference Manual, system counter control frame).
The counts are written to the console as the bundled runner prints its own (``op_ticks``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.sim.gdbstub.stub import Stub

# executorch::runtime::Method::execute_instruction(), as GCC and clang name it.
FUNCTION = "_ZN10executorch7runtime6Method19execute_instructionEv"
_COUNT_LOW, _COUNT_HIGH = 0x5810_0008, 0x5810_000C  # CNTCV, Secure
_PREFIX = "I [executorch:counted_outside]"


@dataclass(frozen=True)
class CountedOperators:
    """The operators of a program's instructions, which are counted for one input set."""

    input_set: int
    operators: tuple[str, ...]


class InstructionCounter:
    def __init__(self, stub: Stub, counted: CountedOperators, log: Callable[[str], None]) -> None:
        self._stub = stub
        self._counted = counted
        self._log = log
        self._began = 0
        self._first: int | None = None
        self._number = 0

    def enter(self) -> None:
        self._began = self._count()
        self._first = self._began if self._first is None else self._first

    def leave(self) -> None:
        now = self._count()
        names: Sequence[str] = self._counted.operators
        name = names[self._number] if self._number < len(names) else "?"
        k = self._counted.input_set
        self._log(f"{_PREFIX} op_ticks: {k} {self._number} {name} {now - self._began}")
        self._number += 1
        if self._number == len(names) and self._first is not None:
            self._log(f"{_PREFIX} system_counter_ticks: {now - self._first} (set {k})")

    def _count(self) -> int:
        return self._stub.word(_COUNT_HIGH) << 32 | self._stub.word(_COUNT_LOW)
