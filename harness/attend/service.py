"""Serves a program from its first instruction to its end: one breakpoint for each thing that it
asks for, and the answer given at it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from harness.attend.driver import Driver
from harness.attend.guest import argument, give_back
from harness.attend.heap import SYS_HEAPINFO, HeapCall, HeapInfo
from harness.attend.program import Program
from harness.attend.stub import LR, PC, SP, Stub, StubError
from harness.attend.ticks import Ticks


class Service:
    """``heap`` is the answer to SYS_HEAPINFO; None leaves that to QEMU. ``ticks`` counts the
    program's instructions, if somebody wants to know."""

    def __init__(
        self, stub: Stub, program: Program, heap: HeapInfo | None, ticks: Ticks | None = None
    ) -> None:
        self._stub = stub
        self._program = program
        self._heap = heap
        self._ticks = ticks
        self._answers: dict[int, Callable[[], None]] = {}

    def run(self, driver: Driver | None) -> None:
        """Until TargetEnded. ``driver`` answers the program's calls of its driver, if it has one.

        StubError, GuestStuck: the program waits for what will not come.
        """
        if self._heap is not None:
            for call in self._program.heap_calls:
                self._answers[call.address] = partial(self._heap_info, call, self._heap.block())
        if driver is not None:
            for name, address in self._program.functions.items():
                self._answers[address] = partial(self._driver_call, driver, name)
        if self._ticks is not None and self._program.instruction is not None:
            self._answers[self._program.instruction] = partial(self._begins, self._ticks)
        self._stub.open()
        for address in self._answers:
            self._stub.breakpoint(address)
        self._resume(None)

    def hook(self, name: str, *arguments: int) -> None:
        """Call a function of the program while it waits in another one."""
        if name not in self._program.hooks:
            return
        stub = self._stub
        here, back = stub.register(PC), stub.register(LR)
        for number, value in enumerate(arguments):
            stub.set_register(number, value)
        stub.set_register(LR, here | 1)  # a breakpoint is there
        stub.set_register(PC, self._program.hooks[name])
        self._resume((here & ~1, stub.register(SP)))
        stub.set_register(LR, back)

    def _resume(self, until: tuple[int, int] | None) -> None:
        """Answer what is asked, until the core is at this place with this stack pointer."""
        stub = self._stub
        while True:
            stub.resume()
            place = stub.register(PC) & ~1
            if until is not None and until == (place, stub.register(SP)):
                return
            if place not in self._answers:
                raise StubError(f"the core stopped at 0x{place:x}, where nothing is asked")
            self._answers[place]()

    def _driver_call(self, driver: Driver, name: str) -> None:
        give_back(self._stub, driver.call(name, partial(argument, self._stub)))

    def _begins(self, ticks: Ticks) -> None:
        """An instruction begins; the first time it is also seen where they return to."""
        stub = self._stub
        back = stub.register(LR) & ~1
        if back not in self._answers:
            self._answers[back] = partial(self._returns, ticks)
            stub.breakpoint(back)
        ticks.enter()
        stub.step_over(stub.register(PC) & ~1)

    def _returns(self, ticks: Ticks) -> None:
        ticks.leave()
        self._stub.step_over(self._stub.register(PC) & ~1)

    def _heap_info(self, call: HeapCall, block: bytes) -> None:
        stub = self._stub
        if stub.register(0) != SYS_HEAPINFO:
            stub.step_over(call.address)
            return
        stub.write(stub.word(stub.register(1)), block)
        stub.set_register(0, 0)
        behind = stub.register(LR) if call.tail else call.address + call.size
        stub.set_register(PC, behind & ~1)
