"""A model of GNU ld's symbol resolution: which members come in, what stays undefined.

The rules are those of bfd/linker.c (what a new symbol does to an old one) and bfd/elflink.c
(when an archive member is taken), binutils 2.40. Sections are never garbage-collected here.
tests/link compares every answer with the real linker on random link jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

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

    ``value`` is the symbol it refers to, None for a number; ``provide`` only where nothing else
    defines it. Exact for numbers and addresses relative to ``.``; a value that is another symbol
    or needs the layout (SIZEOF) takes effect later in ld than here, which matters only where an
    archive or a second object defines the name too.
    """

    name: str
    value: str | None = None
    provide: bool = False


Item = Unit | Archive | Group | Assign


@dataclass(frozen=True)
class Job:
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
    defined_by: Mapping[str, str]
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
    seen: set[tuple[str, int]] = field(default_factory=set)
    pulled: list[Pulled] = field(default_factory=list)
    duplicates: dict[str, list[str]] = field(default_factory=dict)

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

    def assign(self, item: Assign) -> None:
        entry = self.table.get(item.name)
        if item.provide and (entry is None or entry.state not in ("undef", "undefweak")):
            return
        if item.value is not None:
            value = self.wrapped(item.value)
            self.add(value, "undef", "an assignment")
            if not self.defines(value):
                return  # its value is not known yet, so what follows may still define it
        entry = self.table.setdefault(item.name, _Entry())
        entry.over |= entry.once and not entry.early
        entry.early |= not entry.over
        entry.state, entry.by = "def", "an assignment"

    def search(self, archive: Archive) -> None:
        """Take members until none defines what is wanted, in the order of the archive's index."""
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
                if (archive.name, number) in self.seen or symbol.name not in self.table:
                    left.append((number, symbol))
                    continue
                state = self.table[symbol.name].state
                if state == "undef" or (state == "common" and _replaces_common(symbol)):
                    self._take(archive, number, symbol.name)
                elif state in ("undefweak", "common"):
                    left.append((number, symbol))
                # any other was defined when it was looked up: ld does not look again
            again, entries = self.wanted != before, left

    def _take(self, archive: Archive, number: int, symbol: str | None) -> None:
        unit = archive.units[number]
        self.seen.add((archive.name, number))
        needed = self.table[symbol].needed_by if symbol else None
        self.pulled.append(Pulled(archive.name, unit.name, symbol, needed))
        self.add_unit(unit)

    def read(self, items: Iterable[Item], *, again: bool = False) -> None:
        for item in items:
            if isinstance(item, Assign):
                self.assign(item)
            elif isinstance(item, Group):
                self._group(item)
            elif isinstance(item, Unit):
                if not again:
                    self.add_unit(item)
            elif not item.whole:
                self.search(item)
            elif not again:
                for number in range(len(item.units)):
                    self._take(item, number, None)

    def _group(self, group: Group) -> None:
        again = False
        while True:
            before = self.wanted
            self.read(group.items, again=again)
            again = True
            if self.wanted == before:
                return


def predict(job: Job) -> Prediction:
    """What GNU ld does with the job."""
    link = _Link(job.wrap)
    for name in job.undefined:
        link.add(name, "undef", "--undefined")
    link.read(job.items)
    assignments = _assignments(job.items)
    late = {a.name for a in assignments if not a.provide or a.name in link.table}
    values = {link.wrapped(a.value) for a in assignments if a.value is not None}
    undefined: dict[str, list[str]] = {}
    for unit in link.loaded:
        for symbol in unit.symbols:
            if symbol.used and symbol.state in ("undef", "undefweak"):
                name = link.wrapped(symbol.name)
                if link.table[name].state == "undef" and name not in late:
                    undefined.setdefault(name, []).append(unit.name)
    return Prediction(
        tuple(link.pulled),
        {name: tuple(users) for name, users in undefined.items()},
        {name: tuple(units) for name, units in link.duplicates.items()},
        {n: e.by for n, e in link.table.items() if e.state not in ("new", "undef", "undefweak")},
        tuple(unit.name for unit in link.loaded),
        tuple(sorted(v for v in values if v not in late and not link.defines(v))),
    )


def _assignments(items: Sequence[Item]) -> list[Assign]:
    found: list[Assign] = []
    for item in items:
        if isinstance(item, Assign):
            found.append(item)
        elif isinstance(item, Group):
            found += _assignments(item.items)
    return found
