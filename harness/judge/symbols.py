"""Addresses of the target to functions and source lines: where a fault was, where a CPU spins."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.core.errors import MalformedFile
from harness.formats.demangle import plain
from harness.formats.elf import EM_ARM, SHF_EXECINSTR, SHT_PROGBITS, STT_FUNC, read_elf
from harness.log.events import CPU_FAULTS, Event, Kind, Observation

if TYPE_CHECKING:
    from harness.sim.monitor import CpuState, WaitingThread  # pexpect is slow to import

_ADDRESSES = ("pc", "lr")
_MOST_CALLS = 5
_RESETS = re.compile(r"sys_reboot|(?:__)?NVIC_SystemReset|wdt_\w+|\w*watchdog\w*", re.IGNORECASE)
_WITH_REGISTERS = CPU_FAULTS | {Kind.CPU_LOCKUP, Kind.ZEPHYR_FATAL, Kind.PROCESS_CRASH}


class Symbols:
    """Functions and source lines of one ELF. Raises MalformedFile, OSError."""

    def __init__(self, path: Path) -> None:
        elf = read_elf(path)
        self._path = path
        self._mask = ~1 if elf.machine_number == EM_ARM else ~0
        self._functions = {
            elf.address(s): s for s in elf.symbols if s.type == STT_FUNC and s.defined
        }
        self._starts = sorted(self._functions)
        self._code = [
            (section.address, elf.content(section))
            for section in elf.sections
            if section.flags & SHF_EXECINSTR and section.type == SHT_PROGBITS
        ]

    def function(self, address: int) -> str | None:
        """ "name+0x12", or None when the address is in no function."""
        address &= self._mask
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        start = self._starts[index]
        symbol = self._functions[start]
        if address >= start + max(symbol.size, 2):
            return None
        name = plain(symbol.name)
        return f"{name}+{address - start:#x}" if address > start else name

    def source(self, address: int) -> str | None:
        """ "file.cpp:12", or None where the DWARF does not say."""
        from harness.formats.dwarf import source_line  # pyelftools is slow to import

        return source_line(self._path, address & self._mask)

    def follows_call(self, address: int) -> bool:
        """Return whether the instruction before ``address`` is a call (Thumb BL or BLX)."""
        target = address & ~1
        for start, code in self._code:
            at = target - start
            if address & 1 and 4 <= at <= len(code):
                first = int.from_bytes(code[at - 4 : at - 2], "little")
                second = int.from_bytes(code[at - 2 : at], "little")
                long_call = first & 0xF800 == 0xF000 and second & 0xD000 == 0xD000
                return long_call or second & 0xFF87 == 0x4780
        return False

    def resets(self) -> list[str]:
        """Return the functions that reset a program's board, and those of a watchdog's driver."""
        names = {plain(symbol.name) for symbol in self._functions.values()}
        return sorted(name for name in names if _RESETS.fullmatch(name))

    def describe(self, address: int) -> dict[str, str]:
        """``symbol`` and ``source`` of an address, if they are known."""
        symbol = self.function(address)  # DWARF has lines for address 0 of what was not linked
        found = {"symbol": symbol, "source": self.source(address) if symbol else None}
        return {k: v for k, v in found.items() if v is not None}


def _symbols_of(elf: Path) -> Symbols | None:
    """None if the file is not a readable ELF."""
    try:
        return Symbols(elf)
    except (OSError, MalformedFile):
        return None


def with_symbols(observation: Observation, elf: Path) -> Observation:
    """Return the observation with symbols (``pc_symbol``, ...) in the facts of its faults."""
    explained = _WITH_REGISTERS | {Kind.RESET_LOOP}
    if not any(event.kind in explained for event in observation.failures):
        return observation
    symbols = _symbols_of(elf)
    if symbols is None:
        return observation
    failures = tuple(_explained(event, symbols) for event in observation.failures)
    return replace(observation, failures=failures)


def _explained(event: Event, symbols: Symbols) -> Event:
    facts = dict(event.facts)
    if event.kind is Kind.RESET_LOOP and (resets := symbols.resets()):
        return replace(event, facts={**facts, "resets": ", ".join(resets)})
    if event.kind not in _WITH_REGISTERS:
        return event
    for name in _ADDRESSES:
        address = _number(facts.get(name))
        if address is not None:
            facts |= {f"{name}_{key}": value for key, value in symbols.describe(address).items()}
    return replace(event, facts=facts)


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text, 0)
    except ValueError:
        return None


def where_spinning(cpu: CpuState, elf: Path | None) -> dict[str, Any]:
    """Describe where a CPU is: pc with symbol and source, calls, and instructions of silence."""
    pc = cpu.registers["pc"]
    facts: dict[str, Any] = {"pc": f"{pc:#010x}"}
    if cpu.silent is not None:
        facts["instructions"] = cpu.silent
    symbols = None if elf is None else _symbols_of(elf)
    if symbols is None:
        return facts
    facts.update({f"pc_{k}": v for k, v in symbols.describe(pc).items()})
    facts["backtrace"] = list(_frames(symbols, [cpu.registers.get("lr", 0), *cpu.stack]))
    if cpu.threads:
        facts["threads"] = [_waiting(thread, symbols) for thread in cpu.threads]
    return facts


def _waiting(thread: WaitingThread, symbols: Symbols) -> str:
    """ "thread main waits for mutex_b, which worker holds, in lock+0x1a < go+0x6" """
    holder = f", which {thread.holder} holds" if thread.holder else ""
    frames = [f for f in _frames(symbols, thread.stack) if not f.startswith("z_")]
    calls = f", in {' < '.join(frames[:_MOST_CALLS])}" if frames else ""
    return f"thread {thread.name} waits for {thread.waits_for}{holder}{calls}"


def _frames(symbols: Symbols, words: Iterable[int], most: int = 12) -> Iterable[str]:
    """Functions of words that are return addresses: in a function, odd, and right after a call."""
    found: list[str] = []
    for word in words:
        name = symbols.function(word) if symbols.follows_call(word) else None
        if name is not None and (not found or found[-1] != name):
            found.append(name)
    return found[:most]
