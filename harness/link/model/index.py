"""Everything the files of a link define and need, by symbol, and the link as the model takes it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

from harness.formats import archive as ar
from harness.formats.damage import DamagedFile
from harness.formats.elf import STB_WEAK, STT_FUNC, ElfFile, Symbol, relocation_name
from harness.link.failure import CodePlace
from harness.link.line.command import Input, LinkLine
from harness.link.model.resolution import (
    ADDRESSES,
    SIZES,
    Archive,
    Assign,
    Group,
    Item,
    LinkJob,
    ModelSymbol,
    Prediction,
    State,
    Unit,
)
from harness.link.model.resolution import predict as predict_job

# Assignments as "Expressions in Linker Scripts" in the manual of GNU ld has them.
_NAME = r"[A-Za-z_.$][\w.$]*"
# Of the section in parentheses.
_LAYOUT = {"SIZEOF": SIZES, "ALIGNOF": SIZES, "ADDR": ADDRESSES, "LOADADDR": ADDRESSES}
_CONSTANT = {"ORIGIN", "LENGTH", "CONSTANT"}  # of a name that is no symbol
_PLAIN = {"ALIGN", "MAX", "MIN", "ABSOLUTE", "NEXT", "LOG2CEIL"}  # of an expression
_TOKEN = re.compile(rf"(?P<word>{_NAME})\s*(?P<call>\()?|(?P<number>\d\w*)|(?P<choice>\?)|\S")
_ASSIGNMENT = re.compile(
    rf"\b(?P<how>PROVIDE|PROVIDE_HIDDEN|HIDDEN)\s*\(\s*(?P<name>{_NAME})\s*=(?P<value>[^;{{}}]*)\)"
    rf"|(?:^|[;{{}}])\s*(?P<plain>{_NAME})\s*(?P<operator>[-+*/&|]|<<|>>)?=(?!=)(?P<is>[^;{{}}]*);",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Loaded:
    """One object of the link, or a member of one of its archives."""

    input: Input
    object: ElfFile

    @property
    def name(self) -> str:
        return self.object.name


@dataclass(frozen=True)
class Definition:
    unit: Loaded
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
    line: LinkLine
    units: tuple[Loaded, ...]
    unreadable: tuple[str, ...]  # inputs that are no ELF objects

    @cached_property
    def definitions(self) -> dict[str, list[Definition]]:
        found: dict[str, list[Definition]] = {}
        for unit in self.units:
            for symbol in unit.object.globals:
                if symbol.defined:
                    found.setdefault(symbol.name, []).append(Definition(unit, symbol))
        return found

    @cached_property
    def references(self) -> dict[str, list[Loaded]]:
        found: dict[str, list[Loaded]] = {}
        for unit in self.units:
            for symbol in unit.object.globals:
                if not symbol.defined:
                    found.setdefault(symbol.name, []).append(unit)
        return found

    def local(self, name: str) -> Definition | None:
        """A static definition of the name: there, but for its own file only."""
        for unit in self.units:
            if name.encode() in unit.object.data:
                for symbol in unit.object.symbols:
                    if symbol.name == name and symbol.bind == 0 and symbol.defined:
                        return Definition(unit, symbol)
        return None

    def uses(self, name: str, first: Collection[str] = (), limit: int = 8) -> tuple[CodePlace, ...]:
        """Where relocations refer to the name, also in members of archives that no link takes;
        ``first``: objects that come before all others."""
        found = []
        for unit in sorted(self.references.get(name, ()), key=lambda unit: unit.name not in first):
            try:
                places = uses_in(unit.object, name)
            except DamagedFile:  # its symbols are sound, its relocations are not
                places = [CodePlace(unit.name)]
            for place in places:
                found.append(place)
                if len(found) >= limit:
                    return tuple(found)
        return tuple(found)

    @cached_property
    def prediction(self) -> Prediction:
        return predict_job(self.job)

    @cached_property
    def job(self) -> LinkJob:
        """The link for the model."""
        by_input: dict[int, list[Unit]] = {}
        for unit in self.units:
            by_input.setdefault(unit.input.index, []).append(_model_unit(unit.object))
        found: list[tuple[int, int, list[Item]]] = []  # index, group, items
        for each in self.line.inputs:
            units = by_input.get(each.index, [])
            archive = Archive(f"{each.word}#{each.index}", tuple(units), each.whole)
            found.append((each.index, each.group, [archive] if each.is_archive else list(units)))
        for index, _, assign in self._assignments:
            group = next((g for i, g, _ in reversed(found) if i < index), 0)
            found += [(index, group, [assign])] if assign is not None else []
        top: list[Item] = []
        for number, parts in groupby(sorted(found, key=lambda f: f[0]), key=lambda f: f[1]):
            items = [item for _, _, some in parts for item in some]
            top += [Group(tuple(items))] if number else items
        return LinkJob(tuple(top), self.line.undefined, frozenset(self.line.wrap))

    @cached_property
    def _assignments(self) -> list[tuple[int, str, Assign | None]]:
        """Index in argv, symbol, and the assignment where the model knows it."""
        found = [(i, name, assignment(name, value)) for i, name, value in self.line.defined]
        for script in self.line.scripts:
            if script.is_file():
                text = script.read_text("utf-8", "replace")
                found += [(self.line.script_at, name, each) for name, each in in_script(text)]
        return found

    @property
    def not_modelled(self) -> tuple[str, ...]:
        """Symbols with a value that the model does not know; its prediction may be wrong."""
        return tuple(name for _, name, each in self._assignments if each is None)


def uses_in(unit: ElfFile, name: str) -> list[CodePlace]:
    wanted = {i for i, s in enumerate(unit.symbols) if s.name == name and not s.defined}
    found = []
    for relocation in unit.relocations():
        if relocation.symbol in wanted:
            function = unit.function_at(relocation.section, relocation.offset)
            sections = unit.sections
            known = relocation.section < len(sections)
            found.append(
                CodePlace(unit.name, function, None, None,
                      sections[relocation.section].name if known else None, relocation.offset,
                      relocation_name(unit.machine_number, relocation.type),
                      "weak" if any(unit.symbols[i].bind == STB_WEAK for i in wanted) else "strong")
            )  # fmt: skip
    return found


def _model_unit(unit: ElfFile) -> Unit:
    symbols = []
    for symbol in unit.globals:
        weak = symbol.bind == STB_WEAK
        state: State
        if not symbol.defined:
            state = "undefweak" if weak else "undef"
        else:
            state = "common" if symbol.common else "defweak" if weak else "def"
        symbols.append(ModelSymbol(symbol.name, state, symbol.type == STT_FUNC, True))
    return Unit(unit.name, tuple(symbols))


def units_of(path: Path, word: str) -> tuple[list[ElfFile], list[str]]:
    """The objects of a file, and the names of what is no object or is damaged."""
    try:
        parts = contents(path, word)
    except DamagedFile:
        return [], [word]
    found, not_objects = [], []
    for name, data in parts:
        try:
            unit = ElfFile(data, name)
            _ = unit.symbols
            found.append(unit)
        except DamagedFile:
            not_objects.append(name)
    return found, not_objects


def contents(path: Path, word: str) -> list[tuple[str, bytes]]:
    data = path.read_bytes()
    if ar.is_archive(data):
        return [(f"{word}({m.name})", m.data) for m in ar.members(path)]
    return [(word, data)]


def load(line: LinkLine) -> LinkIndex:
    """Read every input that is there."""
    units, unreadable = [], []
    for each in line.inputs:
        if each.path is None:
            continue
        objects, others = units_of(each.path, _shown(each))
        units += [Loaded(each, unit) for unit in objects]
        unreadable += others
    return LinkIndex(line, tuple(units), tuple(unreadable))


def _shown(each: Input) -> str:
    return each.path.name if each.word.startswith("-l") and each.path else each.word


def assignment(name: str, value: str, *, provide: bool = False) -> Assign | None:
    """``name=value`` (--defsym, or of a script); None for what the model does not know: conditions,
    and symbols that depend on themselves."""
    symbols: list[str] = []
    layout, at = 0, 0
    while match := _TOKEN.search(value, at):
        at = match.end()
        word = match["word"]
        if match["choice"] or (word and match["call"] and not _is_known(word)):
            return None
        if word and match["call"] and word not in _PLAIN:
            layout = max(layout, _LAYOUT.get(word, 0))
            at = value.find(")", at) + 1 or len(value)
        elif word == "SIZEOF_HEADERS":
            layout = max(layout, SIZES)
        elif word and not match["call"] and word != ".":
            symbols.append(word)
    if name in symbols:
        return None
    return Assign(name, tuple(dict.fromkeys(symbols)), provide, layout)


def _is_known(function: str) -> bool:
    return function in _LAYOUT or function in _CONSTANT or function in _PLAIN


def in_script(text: str) -> Iterator[tuple[str, Assign | None]]:
    """The symbols that a linker script assigns, in order, each with its assignment if the model
    knows it. Included scripts are not looked into."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    position = 0
    while match := _ASSIGNMENT.search(text, position):
        position = match.end() - (match["plain"] is not None)  # its ";" may precede the next one
        name = match["name"] or match["plain"]
        if name == ".":
            continue
        if match["operator"]:
            yield name, None
        else:
            provide = (match["how"] or "").startswith("PROVIDE")
            yield name, assignment(name, match["value"] or match["is"], provide=provide)
