"""Gdbstub hooks: at the breakpoint of each host call the answer is set; the program continues."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from harness.sim.gdbstub.driver import Driver
from harness.sim.gdbstub.host_calls import SYS_HEAPINFO, HostCalls, InstructionCounter
from harness.sim.gdbstub.stub import LR, PC, SP, Stub, StubError

_EARLY_CALLS = 32  # semihosting calls among which a program asks for its heap
_BKPT_BYTES = 2


class HookLoop:
    """Runs the program from breakpoint to breakpoint.

    ``counter``: counts the instructions of each operator."""

    def __init__(self, stub: Stub, calls: HostCalls, counter: InstructionCounter | None) -> None:
        self._stub = stub
        self._calls = calls
        self._counter = counter
        self._early_calls = _EARLY_CALLS
        self._hooks: dict[int, Callable[[], None]] = {}
        self._open = False

    def add(self, address: int, hook: Callable[[], None]) -> None:
        """Call ``hook`` whenever the core comes to ``address``."""
        if self._open and address not in self._hooks:
            self._stub.breakpoint(address)
        self._hooks[address] = hook

    def run(self, driver: Driver | None) -> None:
        """Run until TargetEnded. ``driver``: of the NPU. Raises StubError, GuestStuck."""
        for call in self._calls.heap_calls:
            self._hooks[call] = partial(self._semihosting_call, call)
        if driver is not None:
            for name, address in self._calls.functions.items():
                self._hooks[address] = partial(self._driver_call, driver, name)
        if self._counter is not None and self._calls.instruction is not None:
            self._hooks[self._calls.instruction] = partial(self._begins, self._counter)
        self._stub.open()
        for address in self._hooks:
            self._stub.breakpoint(address)
        self._open = True
        self._resume(None)

    def call_back(self, name: str, *arguments: int) -> None:
        """Call a function of the program while it waits in another one."""
        if name not in self._calls.callbacks:
            return
        stub = self._stub
        waiting_at, return_address = stub.register(PC), stub.register(LR)
        for number, value in enumerate(arguments):
            stub.set_register(number, value)
        stub.set_register(LR, waiting_at | 1)  # it has a breakpoint
        stub.set_register(PC, self._calls.callbacks[name])
        self._resume((waiting_at & ~1, stub.register(SP)))
        stub.set_register(LR, return_address)

    def _resume(self, until: tuple[int, int] | None) -> None:
        """Run the hooks until the core is at this address with this stack pointer."""
        stub = self._stub
        while True:
            stub.resume()
            address = stub.register(PC) & ~1
            if until is not None and until == (address, stub.register(SP)):
                return
            if address not in self._hooks:
                raise StubError(f"the core stopped at 0x{address:x}, where there is no hook")
            self._hooks[address]()

    def _driver_call(self, driver: Driver, name: str) -> None:
        """Do the work of the function at whose first instruction the core is, and return from it.

        r1 is half of a 64-bit result, and the callee may always change it."""
        stub = self._stub
        result = driver.call(name, partial(argument, stub))
        stub.set_register(0, result)
        stub.set_register(1, result >> 32)
        stub.set_register(PC, stub.register(LR) & ~1)

    def _begins(self, counter: InstructionCounter) -> None:
        """Enter an instruction. The first time, set a breakpoint at the return address too."""
        stub = self._stub
        return_address = stub.register(LR) & ~1
        if return_address not in self._hooks:
            self.add(return_address, partial(self._returns, counter))
        counter.enter()
        stub.step_over(stub.register(PC) & ~1)

    def _returns(self, counter: InstructionCounter) -> None:
        counter.leave()
        self._stub.step_over(self._stub.register(PC) & ~1)

    def _semihosting_call(self, address: int) -> None:
        """Answer SYS_HEAPINFO and leave other calls to QEMU.

        Only start-up code asks for the heap, so the breakpoints go after some calls: each stop
        takes about a millisecond."""
        stub = self._stub
        if stub.register(0) == SYS_HEAPINFO:
            stub.write(stub.word(stub.register(1)), self._calls.heap.block())
            stub.set_register(0, 0)
            stub.set_register(PC, address + _BKPT_BYTES)
            return
        self._early_calls -= 1
        if self._early_calls:
            stub.step_over(address)
            return
        for call in self._calls.heap_calls:
            del self._hooks[call]
            stub.remove_breakpoint(call)


def argument(stub: Stub, number: int) -> int:
    """Return an argument: four words in registers, then the stack (Arm AAPCS32)."""
    if number < 4:
        return stub.register(number)
    return stub.word(stub.register(SP) + 4 * (number - 4))
