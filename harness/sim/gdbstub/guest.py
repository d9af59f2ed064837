"""The program while it is stopped at a breakpoint: its call, its memory, its functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.sim.gdbstub.driver import GuestStuck
from harness.sim.gdbstub.stub import LR, PC, SP, Stub, StubError

if TYPE_CHECKING:
    from harness.npu.doorbell import SharedMemory

_PIECE = 1024  # bytes that are written together when one of them has changed


def argument(stub: Stub, number: int) -> int:
    """Of the function that is being called: Arm AAPCS32, four words in registers, the rest on
    the stack."""
    if number < 4:
        return stub.register(number)
    return stub.word(stub.register(SP) + 4 * (number - 4))


def give_back(stub: Stub, result: int) -> None:
    """Return from the function at whose first instruction the core is; r1 is the caller's to lose,
    and half of a result of 64 bits."""
    stub.set_register(0, result)
    stub.set_register(1, result >> 32)
    stub.set_register(PC, stub.register(LR) & ~1)


class GuestMemory:
    """What is shared is read and written in place; the rest is copied by the debugger interface.

    ``origin`` and ``size``: where the shared memory is, if there is any.
    """

    def __init__(
        self, stub: Stub, shared: SharedMemory | None = None, origin: int = 0, size: int = 0
    ) -> None:
        self._stub = stub
        self._shared = shared
        self._origin = origin
        self._end = origin + size
        self._before: dict[int, bytes] = {}  # what was copied, by address

    def read(self, address: int, size: int) -> bytes:
        shared = self._in_place(address, size)
        return self._copied(address, size) if shared is None else bytes(shared)

    def view(self, address: int, size: int) -> memoryview:
        shared = self._in_place(address, size)
        if shared is not None:
            return shared
        self._before[address] = self._copied(address, size)
        return memoryview(bytearray(self._before[address]))

    def commit(self, address: int, view: memoryview) -> None:
        """Only what has changed is written, since that takes time."""
        before = self._before.pop(address, None)
        if before is None:
            return
        for at in range(0, len(view), _PIECE):
            piece = bytes(view[at : at + _PIECE])
            if piece != before[at : at + _PIECE]:
                self._stub.write(address + at, piece)

    def _copied(self, address: int, size: int) -> bytes:
        try:
            return self._stub.read(address, size)
        except StubError as error:
            raise GuestStuck(
                f"the program gave its NPU's driver {size} bytes at 0x{address:x}, and not all of "
                "them are memory"
            ) from error

    def _in_place(self, address: int, size: int) -> memoryview | None:
        if self._shared is None or not self._origin <= address <= address + size <= self._end:
            return None
        return self._shared.at(address, size)
