"""Finds the host calls that an ELF needs on QEMU, from its bytes and its symbol table.

SYS_HEAPINFO is answered as the FVPs do. QEMU 7.2 invents a stack (for a program in ITCM the answer
is stack base 0x80000), and newlib's start-up uses that as its stack pointer. The models answer with
their parameters, where 0 means: as the program was linked. (Arm, "Semihosting for AArch32 and
AArch64", SYS_HEAPINFO; newlib, libgloss/arm/crt0.S.)

Also counts instructions per operator of ExecuTorch's runner, which counts none itself.
``Method::execute_instruction`` runs one instruction of a program; the core is stopped at its begin
and its return, and the board's system counter is read. The counter stops with the core, and the
harness's start-up code makes it count instructions (QEMU with ``-icount
shift=5``; registers: Arm SSE-300 Technical Reference Manual, system counter control frame).
The counts are written to the console as the bundled runner prints its own (``op_ticks``).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from harness.core.errors import MalformedFile, UsageError
from harness.formats.elf import EM_ARM, STT_FUNC, ElfFile, read_elf
from harness.sim.gdbstub.driver import CALLBACKS, handled
from harness.sim.gdbstub.stub import Stub
from harness.sim.gdbstub.tensors import TensorFiles

SYS_HEAPINFO = 0x16
_CALL = re.compile(rb"\xab\xbe")  # BKPT 0xAB, the semihosting call of the M profile
# MOVS Rd, #0x16; MOV.W and MOVS.W Rd, #0x16; MOVW Rd, #0x16 (Armv8-M Architecture Reference Manual,
# part C2): Rd is in the last byte.
_LOADED = re.compile(rb"(?=\x16[\x20-\x27]|[\x4f\x5f]\xf0\x16[\0-\x0e]|\x40\xf2\x16[\0-\x0e])")


@dataclass(frozen=True)
class HeapInfo:
    """The answer.

    The defaults are those of a Cortex-M in Fast Models, as the README of the debugger cornea shows
    them for one; no Corstone model's own list was at hand."""

    heap_base: int = 0
    heap_limit: int = 0x2070_0000
    stack_base: int = 0x2080_0000
    stack_limit: int = 0x2070_0000

    def block(self) -> bytes:
        words = (self.heap_base, self.heap_limit, self.stack_base, self.stack_limit)
        return struct.pack("<4I", *(word & 0xFFFFFFFF for word in words))


def heap_calls(elf: ElfFile) -> tuple[int, ...]:
    """Return the addresses of a program's semihosting calls, if one may be SYS_HEAPINFO.

    Then somewhere the program loads 0x16 into a register. The harness's own runner never asks for
    its heap."""
    if _OWN_RUNNER in elf.data:
        return ()
    code = [
        (segment.run, elf.data[segment.offset : segment.offset + segment.file_size])
        for segment in elf.segments
        if segment.code
    ]
    if not any(_found(_LOADED, data) for _, data in code):
        return ()
    return tuple(sorted(start + at for start, data in code for at in _found(_CALL, data)))


def _found(pattern: re.Pattern[bytes], data: bytes) -> list[int]:
    """Only at even offsets: instructions are aligned to two bytes."""
    return [match.start() for match in pattern.finditer(data) if match.start() % 2 == 0]


_DOORBELL = b"npu-request\0"
_OWN_RUNNER = b"build id %s\0"  # its log line (targets/runner/runner.cpp)
_NAMED = b"\0ethosu_invoke"  # in a symbol table's names, or in what assert() prints
# Messages that a driver built with its logs has (src/ethosu_driver.c); ours has neither.
_MESSAGES = (b"Failed to create global driver semaphore", b"Inference job not running...")
# executorch::runtime::Method::execute_instruction(), as GCC and clang name it.
FUNCTION = "_ZN10executorch7runtime6Method19execute_instructionEv"
_COUNT_LOW, _COUNT_HIGH = 0x5810_0008, 0x5810_000C  # CNTCV, Secure
_PREFIX = "I [executorch:counted_outside]"


@dataclass(frozen=True)
class HostCalls:
    """The calls of a program that the host answers.

    ``doorbell``: it reaches the NPU by targets/runner/ethosu/doorbell.h. ``functions``: those of
    ethos-u-core-driver that are done here, ``callbacks``: those it calls; by name, addresses
    without the Thumb bit. ``heap``: the answer to SYS_HEAPINFO. ``counted``: the operators whose
    instructions are counted. ``tensors``: of a program that reads no files."""

    doorbell: bool = False
    functions: Mapping[str, int] = field(default_factory=dict)
    callbacks: Mapping[str, int] = field(default_factory=dict)
    heap_calls: tuple[int, ...] = ()
    instruction: int | None = None  # where a runtime's are counted, see ``counted``
    method: Mapping[str, int] = field(default_factory=dict)  # of gdbstub/tensors.py
    heap: HeapInfo = field(default_factory=HeapInfo)
    counted: CountedOperators | None = None
    tensors: TensorFiles | None = None

    @property
    def needs_hooks(self) -> bool:
        """Whether it needs something that the gdbstub hooks do."""
        found = (self.functions, self.heap_calls, self.method, self.instruction is not None)
        return any(found)


def read_host_calls(path: Path) -> HostCalls:
    """Read any file: one that is not a 32-bit Arm ELF needs nothing.

    Raises UsageError for a program whose driver calls cannot be found: it would wait for its NPU
    for ever."""
    try:
        stat = path.stat()
    except OSError:
        return HostCalls()
    return _read(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=8)
def _read(path: Path, _mtime: int, _size: int) -> HostCalls:
    """Once for all processes of a run."""
    try:
        elf = read_elf(path)
        return host_calls_of(elf, path) if elf.machine_number == EM_ARM else HostCalls()
    except (MalformedFile, OSError):
        return HostCalls()  # its loader reports the damage


def counted(calls: HostCalls, path: Path) -> HostCalls:
    """Add the address where ExecuTorch's runtime runs an instruction, if it has a symbol."""
    named = dict(_functions(read_elf(path)))
    return replace(calls, instruction=named.get(FUNCTION))


def host_calls_of(elf: ElfFile, path: Path) -> HostCalls:
    """Return the host calls of an ELF. Raises as ``read_host_calls``, and MalformedFile."""
    calls = heap_calls(elf)
    if _DOORBELL in elf.data:
        return HostCalls(doorbell=True, heap_calls=calls)
    with_driver = any(message in elf.data for message in _MESSAGES)
    if not with_driver and _NAMED not in elf.data:
        return HostCalls(heap_calls=calls)
    named = dict(_functions(elf))
    functions = {name: address for name, address in named.items() if handled(name)}
    if with_driver and not any(name.startswith("ethosu_") for name in functions):
        what = "no symbols of the driver's functions" if elf.symbols else "no symbol table"
        raise UsageError(
            f"{path} has Arm's Ethos-U core driver in it but {what}: QEMU has no Ethos-U, and the "
            "calls of the driver are found by their names",
            hint="keep the section .symtab: do not strip the ELF (no `strip`, no `-s`), and build "
            "the driver without link-time optimisation",
            path=path,
            kind="symbols_missing",
            stripped=not elf.symbols,
        )
    callbacks = {name: named[name] for name in CALLBACKS if name in named}
    return HostCalls(False, functions, callbacks, calls)


def _functions(elf: ElfFile) -> Iterator[tuple[str, int]]:
    for symbol in elf.symbols:
        if symbol.type == STT_FUNC and symbol.value:
            yield symbol.name, elf.address(symbol)


@dataclass(frozen=True)
class CountedOperators:
    """The operators of a program's instructions, to be counted for one input set."""

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
