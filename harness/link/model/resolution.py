"""A model of GNU ld's symbol resolution: which members come in, what stays undefined.

The rules are those of bfd/linker.c (what a new symbol does to an old one) and bfd/elflink.c
(when an archive member is taken), binutils 2.40. Sections are never garbage-collected here.
tests/link compares every answer with the real linker on random link jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

SIZES, ADDRESSES = 1, 2
_PASSES = 3  # of ld over its assignments before the last one, which must find every value
State = Literal["undef", "undefweak", "def", "defweak", "common"]


@dataclass(frozen=True)
class ModelSymbol:
    name: str
    state: State
    function: bool = False  # STT_FUNC: no reason to replace a common symbol
    used: bool = False  # a relocation refers to it; only then can ld report it as undefined


@dataclass(frozen=True)
class Unit:
    """An object, or an archive's member."""

    name: str
    symbols: tuple[ModelSymbol, ...]


@dataclass(frozen=True)
class Archive:
    name: str
    units: tuple[Unit, ...]
    whole: bool = False


@dataclass(frozen=True)
class Group:
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Assign:
    """``--defsym name=value`` or an assignment of the linker script, where it stands.

    ``symbols`` are those that its value refers to; ``layout`` says whether it needs SIZES
    (SIZEOF, ALIGNOF) or ADDRESSES (ADDR, LOADADDR) of sections, which ld knows in its first or
    second pass over the assignments when all files are read; ``provide`` that it counts only
    where nothing else defines the name.
    """

    name: str
    symbols: tuple[str, ...] = ()
    provide: bool = False
    layout: int = 0


_Position = tuple[int, int]  # of an item on the line: which list, which position
Item = Unit | Archive | Group | Assign


@dataclass(frozen=True)
class LinkJob:
    items: tuple[Item, ...]
    undefined: tuple[str, ...] = ()  # --undefined
    wrap: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Pulled:
    archive: str
    member: str
    symbol: str | None  # whose need took it in; None under --whole-archive
    needed_by: str | None


@dataclass(frozen=True)
class Prediction:
    pulled: tuple[Pulled, ...]
    undefined: Mapping[str, tuple[str, ...]]  # symbol to the units that use it
    duplicates: Mapping[str, tuple[str, ...]]  # symbol to the units that define it, first first
    loaded: tuple[str, ...]
    unresolved_values: tuple[str, ...]  # symbols that assignments refer to in vain; fatal

    @property
    def links(self) -> bool:
        return not (self.undefined or self.duplicates or self.unresolved_values)


@dataclass
class _Entry:
    state: State | Literal["new"] = "new"
    by: str = ""
    needed_by: str = ""
    early: bool = False  # a definition by an early pass over the script, weaker than any other
    once: bool = False  # an object has defined it, whatever it is by now
    over: bool = False  # an assignment over a definition: any other one clashes, common replaces it


def _replaces_common(symbol: ModelSymbol) -> bool:
    return symbol.state == "def" and not symbol.function


@dataclass
class _Link:
    wrap: frozenset[str]
    table: dict[str, _Entry] = field(default_factory=dict)
    wanted: int = 0  # how often a symbol became undefined; ld's list of undefined symbols
    loaded: list[Unit] = field(default_factory=list)
    seen: set[tuple[_Position, int]] = field(default_factory=set)
    pulled: list[Pulled] = field(default_factory=list)
    duplicates: dict[str, list[str]] = field(default_factory=dict)
    provided: set[int] = field(default_factory=set)  # id of each PROVIDE that took effect

    def wrapped(self, name: str) -> str:
        """The symbol a reference to ``name`` means under --wrap."""
        if name in self.wrap:
            return f"__wrap_{name}"
        real = name.removeprefix("__real_")
        return real if real != name and real in self.wrap else name

    def defines(self, name: str) -> bool:
        return name in self.table and self.table[name].state in ("def", "defweak", "common")

    def add_unit(self, unit: Unit) -> None:
        self.loaded.append(unit)
        for symbol in unit.symbols:
            reference = symbol.state in ("undef", "undefweak")
            name = self.wrapped(symbol.name) if reference else symbol.name
            self.add(name, symbol.state, unit.name)

    def add(self, name: str, state: State, by: str) -> None:
        entry = self.table.setdefault(name, _Entry())
        old = "undef" if entry.early else entry.state
        if state in ("undef", "undefweak"):
            if old == "new" or (state == "undef" and old == "undefweak"):
                entry.state, entry.needed_by = state, by
                self.wanted += state == "undef"
            return
        if old == "def" and (state == "def" or (state == "defweak" and entry.over)):
            self.duplicates.setdefault(name, [entry.by]).append(by)
            return
        stays = {
            "def": ("def",), "defweak": ("def", "defweak", "common"), "common": ("def", "common"),
        }[state]  # fmt: skip
        if old not in stays or (entry.over and state == "common"):
            entry.over = False
            self.wanted += state == "common" and old == "new"  # a definition may still replace it
            entry.state, entry.by, entry.early = state, by, False
        entry.once |= state != "common"

    def assign(self, item: Assign, pass_: int = 0) -> None:
        """Evaluate an assignment (exp_fold_tree_1 in ld/ldexp.c): where it stands, and several
        times again when all files are read."""
        entry = self.table.get(item.name)
        if item.provide and id(item) not in self.provided:
            if entry is None or entry.state not in ("new", "undef", "undefweak"):
                return
            self.provided.add(id(item))  # from now on it is an assignment like any other
        known = item.layout <= pass_
        for symbol in map(self.wrapped, item.symbols):
            if self.table.setdefault(symbol, _Entry()).state == "new":
                self.add(symbol, "undef", "an assignment")
            known &= self.table[symbol].state in ("def", "defweak")
        entry = self.table.setdefault(item.name, _Entry())
        if not known and entry.state != "new":
            return  # what follows may still define the name; a new one is taken for zero
        entry.over |= entry.once and not entry.early
        entry.early |= not entry.over
        entry.state, entry.by = "def", "an assignment"

    def finish(self, assignments: Sequence[Assign]) -> tuple[str, ...]:
        """When all files are read: the symbols that assignments need in vain."""
        for entry in self.table.values():
            entry.state = "def" if entry.state == "common" else entry.state
        for number in range(1, _PASSES + 1):
            for item in assignments:
                self.assign(item, number)
            if number == 1:
                self._forget(assignments)
        counting = [a for a in assignments if not a.provide or id(a) in self.provided]
        values = {self.wrapped(symbol) for a in counting for symbol in a.symbols}
        return tuple(sorted(v for v in values if not self.defines(v)))

    def _forget(self, assignments: Sequence[Assign]) -> None:
        """What is to be assigned counts as new again (bfd_elf_record_link_assignment), so that
        symbols which need each other are taken for zero."""
        for item in assignments:
            entry = self.table.get(item.name)
            if entry is not None and entry.state in ("undef", "undefweak"):
                entry.state = "new"

    def search(self, archive: Archive, place: _Position) -> None:
        """Take members until none defines what is wanted, in the order of the archive's index.
        An archive that stands in two places is read as two."""
        entries = [
            (number, symbol)
            for number, unit in enumerate(archive.units)
            for symbol in unit.symbols
            if symbol.state not in ("undef", "undefweak")
        ]
        again = True
        while again:
            before, left = self.wanted, []
            for number, symbol in entries:
                if (place, number) in self.seen or symbol.name not in self.table:
                    left.append((number, symbol))
                    continue
                state = self.table[symbol.name].state
                if state == "undef" or (state == "common" and _replaces_common(symbol)):
                    self._take(archive, place, number, symbol.name)
                elif state in ("undefweak", "common"):
                    left.append((number, symbol))
                # any other was defined when it was looked up: ld does not look again
            again, entries = self.wanted != before, left

    def _take(self, archive: Archive, place: _Position, number: int, symbol: str | None) -> None:
        unit = archive.units[number]
        self.seen.add((place, number))
        needed = self.table[symbol].needed_by if symbol else None
        self.pulled.append(Pulled(archive.name, unit.name, symbol, needed))
        self.add_unit(unit)

    def read(self, items: Sequence[Item], *, again: bool = False) -> None:
        for position, item in enumerate(items):
            place = (id(items), position)
            if isinstance(item, Assign):
                self.assign(item)
            elif isinstance(item, Group):
                self._group(item)
            elif isinstance(item, Unit):
                if not again:
                    self.add_unit(item)
            elif not item.whole:
                self.search(item, place)
            elif not again:
                for number in range(len(item.units)):
                    self._take(item, place, number, None)

    def _group(self, group: Group) -> None:
        again = False
        while True:
            before = self.wanted
            self.read(group.items, again=again)
            again = True
            if self.wanted == before:
                return


def predict(job: LinkJob) -> Prediction:
    """What GNU ld does with the job."""
    link = _Link(job.wrap)
    for name in job.undefined:
        link.add(name, "undef", "--undefined")
    link.read(job.items)
    unresolved = link.finish(_assignments(job.items))
    undefined: dict[str, list[str]] = {}
    for unit in link.loaded:
        for symbol in unit.symbols:
            if symbol.used and symbol.state in ("undef", "undefweak"):
                name = link.wrapped(symbol.name)
                if link.table[name].state == "undef":
                    undefined.setdefault(name, []).append(unit.name)
    return Prediction(
        tuple(link.pulled),
        {name: tuple(users) for name, users in undefined.items()},
        {name: tuple(units) for name, units in link.duplicates.items()},
        tuple(unit.name for unit in link.loaded),
        unresolved,
    )


def _assignments(items: Sequence[Item]) -> list[Assign]:
    found: list[Assign] = []
    for item in items:
        if isinstance(item, Assign):
            found.append(item)
        elif isinstance(item, Group):
            found += _assignments(item.items)
    return found
