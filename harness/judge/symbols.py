"""What an address of the target means: the function and the source line, from the ELF."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from elftools.common.exceptions import DWARFError, ELFError
from elftools.elf.elffile import ELFFile

from harness.observe.events import CPU_FAULTS, Event, Kind, Observation

_ADDRESSES = ("pc", "lr")
_WITH_REGISTERS = CPU_FAULTS | {Kind.CPU_LOCKUP, Kind.ZEPHYR_FATAL}


class Symbols:
    """Functions and source lines of one ELF. An address may carry the Thumb bit."""

    def __init__(self, elf: Path) -> None:
        self._elf = elf
        self._starts: list[int] = []
        self._functions: list[tuple[int, str]] = []  # size, name
        self._code: list[tuple[int, bytes]] = []
        with elf.open("rb") as file:
            image = ELFFile(file)
            self._read_functions(image)
            for section in image.iter_sections():
                if section["sh_flags"] & 4 and section["sh_type"] == "SHT_PROGBITS":
                    self._code.append((int(section["sh_addr"]), section.data()))

    def _read_functions(self, image: Any) -> None:
        table = image.get_section_by_name(".symtab")
        found = {}
        for symbol in table.iter_symbols() if table is not None else ():
            if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_shndx"] != "SHN_UNDEF":
                found[int(symbol["st_value"]) & ~1] = (int(symbol["st_size"]), plain(symbol.name))
        self._starts = sorted(found)
        self._functions = [found[start] for start in self._starts]

    def function(self, address: int) -> str | None:
        """ "name+0x12", or None when the address is in no function."""
        address &= ~1
        index = bisect.bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        start, (size, name) = self._starts[index], self._functions[index]
        if address >= start + max(size, 2):
            return None
        return f"{name}+{address - start:#x}" if address > start else name

    def source(self, address: int) -> str | None:
        """ "file.cpp:12" from the DWARF line program of the unit that holds the address."""
        address &= ~1
        try:
            with self._elf.open("rb") as file:
                image = ELFFile(file)
                if not image.has_dwarf_info():
                    return None
                return _source(image.get_dwarf_info(), address)
        except (DWARFError, ELFError, KeyError, IndexError, AttributeError):
            return None  # a producer that pyelftools does not understand: only the name is lost

    def follows_call(self, address: int) -> bool:
        """True when the instruction before ``address`` is a call (Thumb BL or BLX register)."""
        target = address & ~1
        for start, code in self._code:
            at = target - start
            if address & 1 and 4 <= at <= len(code):
                first = int.from_bytes(code[at - 4 : at - 2], "little")
                second = int.from_bytes(code[at - 2 : at], "little")
                long_call = first & 0xF800 == 0xF000 and second & 0xD000 == 0xD000
                return long_call or second & 0xFF87 == 0x4780
        return False

    def describe(self, address: int) -> dict[str, str]:
        """``symbol`` and ``source`` of an address, as far as they are known."""
        found = {"symbol": self.function(address), "source": self.source(address)}
        return {k: v for k, v in found.items() if v is not None}


def plain(name: str) -> str:
    """A mangled C++ name without its argument types ("hil::Method::run"); others unchanged.

    Itanium C++ ABI, section 5.1.3: ``_ZN`` then each part as its length and its letters.
    """
    if not name.startswith("_Z"):
        return name
    rest = name[2:].lstrip("NKVRrO")
    parts = []
    while match := re.match(r"(?:L?)(\d+)", rest):
        end = match.end() + int(match[1])
        parts.append(rest[match.end() : end])
        rest = rest[end:]
    shown = ["(anonymous)" if part.startswith("_GLOBAL__N") else part for part in parts]
    return "::".join(shown) or name


def _source(dwarf: Any, address: int) -> str | None:
    ranges = dwarf.get_aranges()
    offset = ranges.cu_offset_at_addr(address) if ranges is not None else None
    if offset is None:
        return None
    unit = dwarf._parse_CU_at_offset(offset)
    program = dwarf.line_program_for_CU(unit)
    best = None
    for entry in program.get_entries() if program is not None else ():
        state = entry.state
        if state is None:
            continue
        if best is not None and best.address <= address < state.address and not best.end_sequence:
            return _place(program, best)
        best = state
    return None


def _place(program: Any, state: Any) -> str:
    base = 0 if program.header.version >= 5 else 1
    name = program.header.file_entry[state.file - base].name
    return f"{name.decode('utf-8', 'replace')}:{state.line}"


@lru_cache(maxsize=8)
def load_symbols(elf: Path, _stamp: int = 0) -> Symbols | None:
    """None when the file is no readable ELF. ``_stamp`` keeps a changed file from being reused."""
    try:
        return Symbols(elf)
    except (OSError, ELFError):
        return None


def symbols_of(elf: Path) -> Symbols | None:
    try:
        return load_symbols(elf, elf.stat().st_mtime_ns)
    except OSError:
        return None


def with_symbols(observation: Observation, elf: Path) -> Observation:
    """The observation with ``pc_symbol``, ``pc_source`` and so on in the facts of its faults."""
    if not any(event.kind in _WITH_REGISTERS for event in observation.failures):
        return observation
    symbols = symbols_of(elf)
    if symbols is None:
        return observation
    return replace(
        observation, failures=tuple(_explained(event, symbols) for event in observation.failures)
    )


def _explained(event: Event, symbols: Symbols) -> Event:
    if event.kind not in _WITH_REGISTERS:
        return event
    facts = dict(event.facts)
    for name in _ADDRESSES:
        address = _number(facts.get(name))
        if address is not None:
            for key, value in symbols.describe(address).items():
                facts[f"{name}_{key}"] = value
    return replace(event, facts=facts)


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text, 0)
    except ValueError:
        return None


def where_spinning(
    registers: Mapping[str, int], stack: Sequence[int], elf: Path | None
) -> dict[str, Any]:
    """Where a CPU is: pc with symbol and source, and the calls that its stack tells of."""
    facts: dict[str, Any] = {"pc": f"{registers['pc']:#010x}"}
    symbols = None if elf is None else symbols_of(elf)
    if symbols is None:
        return facts
    facts.update({f"pc_{k}": v for k, v in symbols.describe(registers["pc"]).items()})
    facts["backtrace"] = list(_frames(symbols, [registers.get("lr", 0), *stack]))
    return facts


def _frames(symbols: Symbols, words: Iterable[int], most: int = 12) -> Iterable[str]:
    """Words that are return addresses: in a function, odd, and just behind a call."""
    found: list[str] = []
    for word in words:
        name = symbols.function(word) if symbols.follows_call(word) else None
        if name is not None and (not found or found[-1] != name):
            found.append(name)
    return found[:most]
