"""Everything that the files of a link define and need, by symbol."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.core.errors import MalformedFile
from harness.formats import archive as ar
from harness.formats.elf import STB_WEAK, ElfFile, Symbol, relocation_name
from harness.link.command import Input, LinkerCall
from harness.link.failure import CodePlace
from harness.system.files import read_regular


@dataclass(frozen=True)
class LinkedObject:
    """One object of the link, or a member of one of its archives."""

    input: Input
    object: ElfFile

    @property
    def name(self) -> str:
        return self.object.name

    @property
    def is_member(self) -> bool:
        return self.name.endswith(")")


@dataclass(frozen=True)
class Definition:
    unit: LinkedObject
    symbol: Symbol

    def place(self) -> CodePlace:
        sections = self.unit.object.sections
        known = 0 < self.symbol.shndx < len(sections)
        return CodePlace(
            object=self.unit.name,
            section=sections[self.symbol.shndx].name if known else None,
            binding=self.symbol.binding,
        )


@dataclass(frozen=True)
class LinkIndex:
    """The objects of a link. Damaged files and files that are not ELF are left out."""

    call: LinkerCall
    units: tuple[LinkedObject, ...]

    @cached_property
    def definitions(self) -> dict[str, list[Definition]]:
        by_name: dict[str, list[Definition]] = {}
        for unit in self.units:
            for symbol in unit.object.globals:
                if symbol.defined:
                    by_name.setdefault(symbol.name, []).append(Definition(unit, symbol))
        return by_name

    @cached_property
    def references(self) -> dict[str, list[LinkedObject]]:
        by_name: dict[str, list[LinkedObject]] = {}
        for unit in self.units:
            for symbol in unit.object.globals:
                if not symbol.defined:
                    by_name.setdefault(symbol.name, []).append(unit)
        return by_name

    def local(self, name: str) -> Definition | None:
        """A static definition of the name, which only its own file can use."""
        for unit in self.units:
            if name.encode() in unit.object.data:
                for symbol in unit.object.symbols:
                    if symbol.name == name and symbol.bind == 0 and symbol.defined:
                        return Definition(unit, symbol)
        return None

    def uses(self, name: str, first: Collection[str] = (), limit: int = 8) -> tuple[CodePlace, ...]:
        """The relocations that refer to the name, including those in archive members that the
        linker does not load. ``first``: objects to list first."""
        uses: list[CodePlace] = []
        for unit in sorted(self.references.get(name, ()), key=lambda unit: unit.name not in first):
            try:
                places = uses_in(unit.object, name)
            except MalformedFile:  # its symbols are sound, its relocations are not
                places = [CodePlace(unit.name)]
            uses += places[: limit - len(uses)]
            if len(uses) >= limit:
                break
        return tuple(uses)


def uses_in(unit: ElfFile, name: str) -> list[CodePlace]:
    """The relocations of an object that refer to a symbol that it does not define."""
    wanted = {i for i, s in enumerate(unit.symbols) if s.name == name and not s.defined}
    weak = any(unit.symbols[i].bind == STB_WEAK for i in wanted)
    uses = []
    for relocation in unit.relocations():
        if relocation.symbol in wanted:
            known = relocation.section < len(unit.sections)
            use = CodePlace(
                object=unit.name,
                function=unit.function_at(relocation.section, relocation.offset),
                section=unit.sections[relocation.section].name if known else None,
                offset=relocation.offset,
                relocation=relocation_name(unit.machine_number, relocation.type),
                binding="weak" if weak else "strong",
            )
            uses.append(use)
    return uses


def units_of(path: Path, word: str) -> list[ElfFile]:
    """The sound ELF objects of a file; ``word``: its name on the link line."""
    data = read_regular(path)
    try:
        members = ar.members(path) if ar.is_archive(data) else None
    except MalformedFile:
        return []
    whole = [(word, data)]
    parts = whole if members is None else [(f"{word}({m.name})", m.data) for m in members]
    objects = []
    for name, data in parts:
        with suppress(MalformedFile):
            unit = ElfFile(data, name)
            _ = unit.symbols
            objects.append(unit)
    return objects


def load(call: LinkerCall) -> LinkIndex:
    """Reads every input that exists, and once what is on the line twice, as the C library is."""
    units = []
    read: dict[tuple[Path, str], list[ElfFile]] = {}
    for each in call.inputs:
        if each.path is not None:
            file = each.path, each.path.name if each.word.startswith("-l") else each.word
            if file not in read:
                read[file] = units_of(*file)
            units += [LinkedObject(each, unit) for unit in read[file]]
    return LinkIndex(call, tuple(units))
