"""Values that options did not get, of which Kconfig only warns, and options of similar names.

Sources: what scripts/kconfig/kconfig.py of Zephyr 4.1.0 prints, and kconfiglib 14.1."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from harness.link.configure.failure import Statement


@dataclass(frozen=True)
class RefusedOption:
    """An option that was set to one value and has another. ``unmet``: its dependencies that do not
    hold, as Kconfig writes them; "0" stands for a module that is missing."""

    symbol: str  # without CONFIG_
    wanted: str
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
            return (
                f"Add the module that CONFIG_{self.symbol} belongs to ({self.defined}) to the "
                "manifest (its project filter included) and `west update`, or name its folder "
                "in EXTRA_ZEPHYR_MODULES."
            )
        plain = [name for name in self.unmet if re.fullmatch(r"[A-Z0-9_]+", name)]
        if plain:
            wanted = " and ".join(f"CONFIG_{name}=y" for name in plain)
            return f"Set {wanted} too, beside CONFIG_{self.symbol}={self.wanted}."
        return f"Meet what CONFIG_{self.symbol} depends on, or do without it."


_REFUSED = re.compile(
    r"warning: (?P<symbol>\w+) \(defined at (?P<defined>[^,)]+)[^)]*\) was assigned the value "
    r"'(?P<asked>[^']*)' but got the value '(?P<got>[^']*)'\."
    r"(?: Check these unsatisfied dependencies: (?P<unmet>.+?)\.(?: See |$))?"
)


def refused_options(statements: Iterable[Statement]) -> tuple[RefusedOption, ...]:
    """The options of which Kconfig warned that they did not get their value."""
    options = []
    for statement in statements:
        if "was assigned the value" in statement.text and (m := _REFUSED.search(statement.text)):
            unmet = tuple(re.findall(r"(?:^|, )(.+?) \(=\w\)", m["unmet"] or ""))
            options.append(RefusedOption(m["symbol"], m["asked"], m["got"], m["defined"], unmet))
    return tuple(options)


_MOST_FOLDERS = 20_000  # Zephyr 4.1.0 with all its modules has fewer
_ELSEWHERE = {".git", "boards", "doc", "dts", "include", "samples", "soc", "tests"}
_DEFINED = re.compile(r"^[ \t]*(?:menu)?config[ \t]+(?P<name>\w+)", re.MULTILINE)
_ALIKE, _MOST = 0.85, 4


def similar_options(symbol: str, base: Path) -> tuple[str, ...]:
    """Options in the Kconfig files below ``base`` with a similar name, the most similar first."""
    words = set(symbol.split("_"))
    ratios: dict[str, float] = {}
    for name in _names(base):
        others = set(name.split("_"))
        if name != symbol and (words <= others or (others <= words and len(others) > 1)):
            ratios[name] = 2 - len(words ^ others) / 10
        elif SequenceMatcher(None, symbol, name).quick_ratio() > _ALIKE:
            ratios[name] = SequenceMatcher(None, symbol, name).ratio()
    alike = {name: ratio for name, ratio in ratios.items() if ratio > _ALIKE}
    return tuple(sorted(alike, key=lambda name: (-alike[name], len(name)))[:_MOST])


def _names(base: Path) -> Iterator[str]:
    for number, (directory, folders, files) in enumerate(os.walk(base)):
        if number >= _MOST_FOLDERS:
            return
        folders[:] = sorted(f for f in folders if f not in _ELSEWHERE)
        for name in files:
            if name.startswith("Kconfig"):
                text = Path(directory, name).read_text("utf-8", "replace")
                yield from (match["name"] for match in _DEFINED.finditer(text))
