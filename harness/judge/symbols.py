"""Registers of the target to facts: where a fault was, and where a CPU spins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.formats.damage import DamagedFile
from harness.formats.symbols import Symbols
from harness.log.events import CPU_FAULTS, Event, Kind, Observation

_ADDRESSES = ("pc", "lr")
_WITH_REGISTERS = CPU_FAULTS | {Kind.CPU_LOCKUP, Kind.ZEPHYR_FATAL, Kind.PROCESS_CRASH}


def _symbols_of(elf: Path) -> Symbols | None:
    """None when the file is no readable ELF."""
    try:
        return Symbols(elf)
    except (OSError, DamagedFile):
        return None


def with_symbols(observation: Observation, elf: Path) -> Observation:
    """The observation with ``pc_symbol``, ``pc_source`` and so on in the facts of its faults."""
    if not any(event.kind in _WITH_REGISTERS for event in observation.failures):
        return observation
    symbols = _symbols_of(elf)
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
    symbols = None if elf is None else _symbols_of(elf)
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
