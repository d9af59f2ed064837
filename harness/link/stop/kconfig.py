"""What Kconfig says: what it refuses, and the values that options did not get, of which Zephyr
only warns.

Sources: what scripts/kconfig/kconfig.py of Zephyr 4.1.0 prints, and kconfiglib 14.1."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from harness.link.stop.model import Statement, StopKind, rules

_AT = r"(?P<file>[^\s:]+):(?P<at>\d+): "

RULES = rules(
    StopKind.KCONFIG,
    ("to the undefined symbol", _AT + r"warning: attempt to assign the value '(?P<value>[^']*)' to "
     r"the undefined symbol (?P<symbol>\w+)",
     "{place} sets CONFIG_{symbol}, and no Kconfig file of this build defines {symbol}: it is "
     "misspelt, has another name in this Zephyr, or belongs to a module that is not there.",
     "Correct the name in {place}, or take the line out."),
    ("malformed line", _AT + r"warning: ignoring malformed line '(?P<what>.*)'$",
     "{place} is no assignment: `{what}`.", "Write it as CONFIG_NAME=value, without spaces."),
    ("is not a valid value", _AT + r"warning: '(?P<value>[^']*)' is not a valid value for the "
     r"(?P<type>\w+) symbol (?P<symbol>\w+)",
     "{place} sets CONFIG_{symbol} to {value}, and it is of the type {type}.",
     "Give it a value of that type in {place} (y or n, a number, or a \"string\")."),
    ("is invalid for", r"warning: the value '(?P<value>[^']*)' is invalid for (?P<symbol>\w+) "
     r"\(defined at .*?\), which has type (?P<type>\w+)",
     "CONFIG_{symbol} is set to {value}, and it is of the type {type}.",
     "Give it a value of that type in the configuration file (prj.conf or what the command line "
     "adds)."),
    ("outside the active range", r"warning: user value (?P<value>\S+) on the \w+ symbol "
     r"(?P<symbol>\w+) \(defined at (?P<file>[^:]+):(?P<at>\d+).*?range \(\[(?P<range>[^\]]+)\]\)",
     "CONFIG_{symbol} is set to {value}; {place} allows {range}.",
     "Give it a value in that range in the configuration file."),
    ("but is currently being y-selected", r"warning: (?P<symbol>\w+) \(defined at (?P<file>[^:]+):"
     r"(?P<at>\d+).*?\) has direct dependencies (?P<unmet>.+?) with value n, but is currently "
     r"being y-selected by the following symbols:\s+- (?P<by>\w+)",
     "{by} selects {symbol} ({place}), whose own dependency {unmet} is not met.",
     "Set {unmet} too, or have {by} depend on it; `select` does not look at dependencies."),
    ("is not directly user-configurable", r"error: (?P<symbol>\w+) \(defined at (?P<file>[^:]+):"
     r"(?P<at>\d+)[^)]*\) is assigned in a configuration file",
     "CONFIG_{symbol} is set in a configuration file, but has no prompt: other options decide it "
     "({place}).",
     "Take the line out, and set the option that selects {symbol}."),
    ("couldn't parse", _AT + r"error: couldn't parse '(?P<what>.*)': (?P<why>.+)$",
     "{place} is no Kconfig: `{what}` ({why}).", "Correct {place}."),
    ("not found (in '", _AT + r"'(?P<what>[^']+)' not found \(in '(?P<by>[^']+)'\)",
     "{place} has `{by}`, and there is no file {what}.",
     "Correct the path in {place} (rsource: beside that file; source: from ZEPHYR_BASE), write the "
     "file, or take osource for one that may be missing."),
    ("at end of '", r"error: expected '(?P<what>\w+)' at end of '(?P<file>[^']+)'",
     "{file} opens a block that has no {what}.", "Add {what} where the block ends in {file}."),
    ("Dependency loop", r"Dependency loop (?:=+ )?(?P<symbol>\w+) \(defined at (?P<file>[^:]+):"
     r"(?P<at>\d+)\).*?depends again on",
     "{symbol} ({place}) depends on itself, by way of what its dependencies depend on.",
     "Take one `depends on`, `select` or `default` out of that circle."),
)  # fmt: skip


@dataclass(frozen=True)
class NotTaken:
    """An option that was set and has another value. ``unmet``: dependencies, as Kconfig writes
    them; "0" stands for a module that is not there."""

    symbol: str  # without CONFIG_
    asked: str
    got: str
    defined: str  # file:line
    unmet: tuple[str, ...]

    @property
    def why(self) -> str:
        where = f" ({self.defined})" if self.defined else ""
        if "0" in self.unmet:
            return f"what it needs is not in this workspace: a module is missing{where}"
        if self.unmet:
            return f"it depends on {' and '.join(self.unmet)}, which is n{where}"
        return f"its range or a choice forbids that{where}"

    @property
    def fix(self) -> str:
        if "0" in self.unmet:
            return (f"Add the module that CONFIG_{self.symbol} belongs to ({self.defined}) to the "
                    "manifest (its project filter included) and `west update`, or name its folder "
                    "in EXTRA_ZEPHYR_MODULES.")  # fmt: skip
        plain = [name for name in self.unmet if re.fullmatch(r"[A-Z0-9_]+", name)]
        if plain:
            wanted = " and ".join(f"CONFIG_{name}=y" for name in plain)
            return f"Set {wanted} too, beside CONFIG_{self.symbol}={self.asked}."
        return f"Meet what CONFIG_{self.symbol} depends on, or do without it."


_NOT_TAKEN = re.compile(
    r"warning: (?P<symbol>\w+) \(defined at (?P<defined>[^,)]+)[^)]*\) was assigned the value "
    r"'(?P<asked>[^']*)' but got the value '(?P<got>[^']*)'\."
    r"(?: Check these unsatisfied dependencies: (?P<unmet>.+?)\.(?: See |$))?"
)


def not_taken(statements: Iterable[Statement]) -> tuple[NotTaken, ...]:
    """The options of which Kconfig warned that they did not get their value."""
    found = []
    for statement in statements:
        if "was assigned the value" in statement.text and (m := _NOT_TAKEN.search(statement.text)):
            unmet = re.findall(r"(?:^|, )(.+?) \(=\w\)", m["unmet"] or "")
            found.append(NotTaken(m["symbol"], m["asked"], m["got"], m["defined"], tuple(unmet)))
    return tuple(found)


_SECONDS = 2.5
_ELSEWHERE = {".git", "boards", "doc", "dts", "include", "samples", "soc", "tests"}
_DEFINED = re.compile(r"^[ \t]*(?:menu)?config[ \t]+(?P<name>\w+)", re.MULTILINE)
_ALIKE, _MOST = 0.85, 4


def likely(symbol: str, base: Path) -> tuple[str, ...]:
    """Options of Zephyr's Kconfig files below ``base`` with a name like it, the likeliest first."""
    words = set(symbol.split("_"))
    found: dict[str, float] = {}
    for name in _names(base):
        others = set(name.split("_"))
        if name != symbol and (words <= others or (others <= words and len(others) > 1)):
            found[name] = 2 - len(words ^ others) / 10
        elif SequenceMatcher(None, symbol, name).quick_ratio() > _ALIKE:
            found[name] = SequenceMatcher(None, symbol, name).ratio()
    alike = {name: ratio for name, ratio in found.items() if ratio > _ALIKE}
    return tuple(sorted(alike, key=lambda name: (-alike[name], len(name)))[:_MOST])


def _names(base: Path) -> Iterator[str]:
    deadline = time.monotonic() + _SECONDS
    for directory, folders, files in os.walk(base):
        folders[:] = [f for f in folders if f not in _ELSEWHERE]
        for name in files:
            if name.startswith("Kconfig"):
                text = Path(directory, name).read_text("utf-8", "replace")
                yield from (m["name"] for m in _DEFINED.finditer(text))
        if time.monotonic() > deadline:
            return
