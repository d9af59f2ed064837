"""Sets a program's inputs and reads its outputs where ExecuTorch's ``Method`` takes and gives them.

ExecuTorch's samples for Zephyr read no file: they fill the inputs with ones, and print outputs of
some types. The guest is stopped when it calls ``Method::set_input``, where the bytes of its tensor
are replaced, and when ``Method::get_outputs`` returns, where the tensors are read. It ends when
``main`` returns or ``_exit`` is called, because Zephyr would then be idle for ever.

Layouts, for pointers of 32 bits: EValue of ExecuTorch's runtime/core/evalue.h, TensorImpl of
runtime/core/portable_type/tensor_impl.h.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.formats.elf import STT_FUNC, read_elf
from harness.formats.pte import SCALAR_TYPES
from harness.formats.schema import PTE, load_schema
from harness.sim.gdbstub.stub import LR, PC, SP, Stub, StubError
from harness.sim.run_files import output_name

_METHOD = "_ZN10executorch7runtime6Method"
_SET_INPUT, _GET_OUTPUTS = (
    f"{_METHOD}9set_inputERKNS0_6EValueEj",
    f"{_METHOD}11get_outputsEPNS0_6EValueEj",
)
_MAIN, _EXIT = "main", "_exit"
_EVALUE, _TAG, _IS_TENSOR = 16, 8, 1  # bytes of one; offset of its tag; its value for a tensor
_DATA, _NUMEL, _TYPE = 12, 20, 28  # offsets in a TensorImpl
_BKPT = b"\xab\xbe"  # the semihosting call of the M profile
_SYS_EXIT_EXTENDED, _APPLICATION_EXIT = 0x20, 0x20026


@dataclass(frozen=True)
class TensorFiles:
    """The files of one input set in the directory ``work``: inputs by name, ``base`` of outputs."""

    work: Path
    inputs: tuple[str, ...]
    base: str


def method_calls(path: Path) -> Mapping[str, int]:
    """Return the addresses where a program is stopped, by symbol.

    Raises StubError without one of them."""
    elf = read_elf(path)
    named = {s.name: elf.address(s) for s in elf.symbols if s.type == STT_FUNC and s.value}
    wanted = (_SET_INPUT, _GET_OUTPUTS, _MAIN)
    if missing := [name for name in wanted if name not in named]:
        raise StubError(f"{path} has no function {', '.join(missing)}, at which tensors are set")
    return {name: named[name] for name in (*wanted, _EXIT) if name in named}


class MethodTensors:
    """``hook`` makes the guest stop at an address and call a function there."""

    def __init__(
        self, stub: Stub, files: TensorFiles, hook: Callable[[int, Callable[[], None]], None]
    ) -> None:
        self._stub = stub
        self._files = files
        self._hook = hook

    def attach(self, calls: Mapping[str, int]) -> None:
        self._hook(calls[_SET_INPUT], self._set_input)
        self._hook(calls[_GET_OUTPUTS], self._get_outputs)
        self._hook(calls[_MAIN], partial(self._on_return, self._end))
        if _EXIT in calls:
            self._hook(calls[_EXIT], self._end)

    def _set_input(self) -> None:
        """Answer ``set_input`` (this, const EValue&, index)."""
        number, names = self._stub.register(2), self._files.inputs
        tensor = self._tensor(self._stub.register(1))
        content = (self._files.work / names[number]).read_bytes() if number < len(names) else b""
        if tensor is None or tensor[1] != len(content):
            size = "no tensor" if tensor is None else f"{tensor[1]} bytes"
            raise StubError(f"set_input got {size} for input {number}; its file has {len(content)}")
        self._stub.write(tensor[0], content)
        self._stub.step_over(self._stub.register(PC) & ~1)

    def _get_outputs(self) -> None:
        """Answer ``get_outputs`` (this, EValue*, count)."""
        values = range(0, self._stub.register(2) * _EVALUE, _EVALUE)
        first = self._stub.register(1)
        self._on_return(partial(self._read_outputs, [first + offset for offset in values]))

    def _read_outputs(self, values: Iterable[int]) -> None:
        for number, value in enumerate(values):
            if (tensor := self._tensor(value)) is not None:
                file = self._files.work / output_name(self._files.base, number)
                file.write_bytes(self._stub.read(*tensor))
        self._stub.step_over(self._stub.register(PC) & ~1)

    def _on_return(self, function: Callable[[], None]) -> None:
        self._hook(self._stub.register(LR) & ~1, function)
        self._stub.step_over(self._stub.register(PC) & ~1)

    def _tensor(self, value: int) -> tuple[int, int] | None:
        """Address and bytes of an EValue's tensor; None for another value."""
        stub = self._stub
        if stub.word(value + _TAG) != _IS_TENSOR:
            return None
        tensor = stub.word(value)
        kinds = load_schema(PTE).enums["ScalarType"]
        element = SCALAR_TYPES.get(kinds.get(stub.read(tensor + _TYPE, 1)[0], ""))
        if element is None:
            raise StubError(f"the tensor at 0x{tensor:x} has no known type")
        return stub.word(tensor + _DATA), stub.word(tensor + _NUMEL) * element[0]

    def _end(self) -> None:
        """End QEMU with the guest's status in r0, by a semihosting call in its place."""
        stub = self._stub
        place, block = stub.register(PC) & ~1, (stub.register(SP) - 8) & ~7
        stub.remove_breakpoint(place)
        stub.write(block, struct.pack("<2I", _APPLICATION_EXIT, stub.register(0)))
        stub.write(place, _BKPT)
        stub.set_register(0, _SYS_EXIT_EXTENDED)
        stub.set_register(1, block)
