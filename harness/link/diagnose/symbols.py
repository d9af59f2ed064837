"""Causes of an undefined symbol that no object explains: common knowledge (``symbols.yaml``), and
options of Zephyr that are not set, were refused, or whose driver is not enabled."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from harness.config.schema import Data
from harness.link.diagnose.tree import Tree
from harness.link.diagnose.zephyr import BuildCondition, ZephyrBuild
from harness.link.facts import read_facts
from harness.link.failure import CodePlace, LinkCause
from harness.link.kconfig import RefusedOption

_FACTS = Path(__file__).with_name("symbols.yaml")
_NOT_GNU = ("armlink", "iar", "msvc", "ti")


@dataclass(frozen=True)
class Undefined:
    """Why a symbol is undefined, and the definitions that exist after all."""

    kind: LinkCause
    cause: str
    fix: str
    definitions: tuple[CodePlace, ...] = ()
    tries: tuple[tuple[str, ...], ...] = ()  # changes of the link that would be the fix
    otherwise: str = ""  # the fix where none of them helps


@dataclass(frozen=True)
class SymbolReason(Data):
    name: str
    cause: str
    fix: str
    kind: LinkCause | None = None


@cache
def reasons() -> dict[str, SymbolReason]:
    rows = read_facts(SymbolReason, Path(__file__).with_name("reasons.yaml"))
    return {row.name: row for row in rows}


def because(name: str, definitions: tuple[CodePlace, ...] = (), /, **words: object) -> Undefined:
    """The reason of that name, with these words filled in."""
    reason = reasons()[name]
    cause, fix = reason.cause.format(**words), reason.fix.format(**words)
    return Undefined(reason.kind or LinkCause.NO_DEFINITION, cause, fix, definitions)


@dataclass(frozen=True)
class SymbolFact(Data):
    """A row of ``symbols.yaml``; ``home`` and ``fix`` may use the named groups of ``pattern``."""

    pattern: re.Pattern[str]
    home: str
    fix: str
    library: str = ""
    cause: LinkCause | None = None
    gnu: bool = False
    option: str = ""
    linker: str = ""
    tries: tuple[str, ...] = ()
    otherwise: str = ""

    def of(self, symbol: str) -> SymbolFact | None:
        """The fact with the words of a symbol that it is about; None for another symbol."""
        match = self.pattern.search(symbol)
        if match is None or not (words := match.groupdict()):
            return self if match else None
        return replace(self, home=self.home.format(**words), fix=self.fix.format(**words))

    def undefined(self) -> Undefined:
        usual = LinkCause.LIBRARY_NOT_LINKED if self.library else LinkCause.NO_DEFINITION
        text = f"It belongs to {self.home}, and nothing on the link line defines it."
        return Undefined(self.cause or usual, text, self.fix, (), self.changes, self.otherwise)

    @property
    def changes(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(words.split()) for words in self.tries)


def known_fact(
    shown: str, linker: str, options: Mapping[str, str] | None = None
) -> SymbolFact | None:
    """A commonly known fact about a symbol. ``shown``: the symbol as the linker prints it.
    ``options``: those of a build of Zephyr; there an option brings the symbol, or nothing, though a
    library of the toolchain has it elsewhere."""
    facts = read_facts(SymbolFact, _FACTS, "anywhere" if options is None else "zephyr")
    rows = (r for r in facts if r.linker in ("", linker) and (options or {}).get(r.option) != "y")
    return next(filter(None, (row.of(shown) for row in rows)), None)


def common_knowledge(
    fact: SymbolFact, shown: str, line: Sequence[str], linker: str, read: bool
) -> Undefined:
    """``line``: the inputs of the link, where they are known. ``read``: their symbols are, too."""
    if fact.gnu and linker in _NOT_GNU:  # the library and its name differ there
        return because("another linker", home=fact.home)
    archives = [Path(word).name for word in line]
    present = [n for n in archives if fact.library and re.fullmatch(fact.library, n)]
    if present and (read or linker == "lld"):  # lld reads an archive as often as it needs
        return because("library without it", home=fact.home, library=present[0], symbol=shown)
    if present:
        early = because("library too early", home=fact.home, library=present[0], fix=fact.fix)
        return replace(early, tries=fact.changes, otherwise=fact.otherwise)
    return fact.undefined()


# Causes that name no definition: an option that is n may be the reason.
_VAGUE = (
    LinkCause.NO_DEFINITION,
    LinkCause.WEAK_DEFAULT_NOT_COMPILED,
    LinkCause.LIBRARY_NOT_LINKED,
)


def behind_option(
    gate: BuildCondition, where: str, definition: str, zephyr: ZephyrBuild
) -> Undefined:
    """``where`` defines the symbol (``definition``: "it" or "a weak default of it"), and is not
    compiled because an option is not set."""
    place = f"{gate.file}:{gate.line}"
    behind = f"{where} defines {definition}, and {place} compiles it only with CONFIG_{gate.option}"
    refused = zephyr.refusal(gate.option)
    if not refused.defined:
        return because("unknown option", behind=behind, place=place, option=gate.option)
    if gate.option not in zephyr.requested:
        depends = f": {refused.why}" if refused.unmet else ""
        return because("option not set", behind=behind, depends=depends, fix=refused.fix_if_unset)
    _, file, line = zephyr.requested[gate.option]
    return because(
        "option not taken", behind=behind, place=f"{file}:{line}", why=refused.why, fix=refused.fix
    )


def blamed_on_options(cause: Undefined, refused: Sequence[RefusedOption]) -> Undefined:
    """A cause that names no definition, with the option that was set and refused."""
    if not refused or cause.kind not in _VAGUE or cause.definitions:
        return cause
    more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
    return because("option refused", cause=cause.cause, option=refused[0], more=more)


def of_device(symbol: str, tree: Tree | None) -> Undefined | None:
    """``__device_dts_ord_42``: no source was compiled that defines the device of that node."""
    zephyr = None if tree is None else tree.zephyr
    if zephyr is None or (node := zephyr.device(symbol)) is None:
        return None
    device = f"It is the device of the devicetree node {node.path}"
    device += f" (compatible {node.compatible})" if node.compatible else ""
    if not node.okay:
        return because("device not enabled", device=device, node=node.path)
    if not node.drivers:
        return because("device without a driver", device=device)
    options = " or ".join(f"CONFIG_{name}" for name in node.drivers)
    refused = zephyr.refusal(node.drivers[0])
    why = f": CONFIG_{refused.symbol}: {refused.why}" if refused.unmet else ""
    return because(
        "driver not enabled", device=device, options=options, why=why, fix=refused.fix_if_unset
    )
