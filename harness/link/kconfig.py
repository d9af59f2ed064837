"""Options of Kconfig: those that did not get their value (by its warnings, or from a build
directory), those with similar names, and where its files define one.

Sources: what Zephyr 4.1.0's scripts/kconfig/kconfig.py prints, and kconfiglib 14.1."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from harness.system.files import text_of

_DEPENDS = re.compile(r"depends[ \t]+on\b")
_CONTINUED = re.compile(r"(?:.*\\\n)+.*")
_PROMPT = re.compile(r"(?:bool|tristate|string|int|hex|prompt)[ \t]+[\"']")


@dataclass(frozen=True)
class RefusedOption:
    """An option that was set to one value and got another.

    ``unmet``: its dependencies that do not hold, as Kconfig writes them; "0" stands for a missing
    module. ``needs``: for each of them that is a single option, why that option is n. ``instead``:
    the advice for an option that no configuration file can set.
    """

    symbol: str  # without CONFIG_
    wanted: str
    got: str
    defined: str  # file:line
    unmet: tuple[str, ...]
    needs: tuple[RefusedOption, ...] = ()
    instead: str = ""

    @property
    def why(self) -> str:
        where = f" ({self.defined})" if self.defined else ""
        if "0" in self.unmet:
            return f"what it needs is not in this workspace: a module is missing{where}"
        if self.unmet:
            behind = (f"; CONFIG_{n.symbol}: {n.why}" for n in self.needs if n.unmet)
            return f"it depends on {' and '.join(self.unmet)}, which is n{where}{''.join(behind)}"
        return f"its range, a choice or a comparison that it depends on forbids that{where}"

    @property
    def fix(self) -> str:
        """For an option that is set in vain."""
        without = f"Meet what CONFIG_{self.symbol} depends on, or do without it."
        beside = f"too, beside CONFIG_{self.symbol}={self.wanted}"
        return _advice(self.steps(), beside) or without

    @property
    def fix_if_unset(self) -> str:
        """For an option that no configuration file sets."""
        return _advice(self.whole(), "in prj.conf")

    def whole(self) -> Iterator[str]:
        """``steps`` and the option itself."""
        yield from self.steps()
        if not (self.instead and self.unmet):  # what meets them gives it its default
            yield self.instead or f"CONFIG_{self.symbol}=y"

    def steps(self) -> Iterator[str]:
        """Assignments and sentences that its dependencies need, the deepest first."""
        needs = {need.symbol: need for need in self.needs}
        for term in self.unmet:
            if term == "0":
                yield (
                    f"Add the module that CONFIG_{self.symbol} belongs to ({self.defined}) to the "
                    "manifest (its project filter included) and `west update`, or name its folder "
                    "in EXTRA_ZEPHYR_MODULES."
                )
            elif re.fullmatch(r"![A-Z0-9_]+", term):
                yield f"CONFIG_{term[1:]}=n"
            elif not OPTION.fullmatch(term):
                yield f"Set the options of `{term}` so that it holds."
            elif term in needs:
                yield from needs[term].whole()
            else:
                yield f"CONFIG_{term}=y"


def _advice(steps: Iterable[str], where: str) -> str:
    """Sentences, then the assignments in one."""
    different = tuple(dict.fromkeys(steps))
    sentences = [step for step in different if not step.startswith("CONFIG_")]
    if assignments := [step for step in different if step.startswith("CONFIG_")]:
        sentences.append(f"Set {' and '.join(assignments)} {where}.")
    return " ".join(sentences)


OPTION = re.compile(r"[A-Z0-9_]+")
_REFUSED = re.compile(
    r"warning: (?P<symbol>\w+) \(defined at (?P<defined>[^,)]+)[^)]*\) was assigned the value "
    r"'(?P<asked>[^']*)' but got the value '(?P<got>[^']*)'\."
    r"(?: Check these unsatisfied dependencies: (?P<unmet>.+?)\.(?: See |$))?"
)


def refused_options(statements: Iterable[str]) -> tuple[RefusedOption, ...]:
    """The options that Kconfig warned about because they did not get their value."""
    options = []
    for text in statements:
        if "was assigned the value" in text and (m := _REFUSED.search(text)):
            unmet = tuple(re.findall(r"(?:^|, )(.+?) \(=\w\)", m["unmet"] or ""))
            options.append(RefusedOption(m["symbol"], m["asked"], m["got"], m["defined"], unmet))
    return tuple(options)


_MOST_FOLDERS = 20_000  # Zephyr 4.1.0 with all its modules has fewer
_ELSEWHERE = {".git", "boards", "doc", "dts", "include", "samples", "soc", "tests"}
_DEFINED = re.compile(r"^[ \t]*(?:menu)?config[ \t]+(?P<name>\w+)", re.MULTILINE)
_ALIKE, _MOST_SIMILAR = 0.8, 4


def similar_options(symbol: str, base: Path) -> tuple[str, ...]:
    """Options in the Kconfig files below ``base`` with a similar name, the most similar first:
    those with the same words and more or fewer, then those with a similar spelling. () if the
    option itself exists."""
    words = set(symbol.split("_"))
    others = {name: set(name.split("_")) for name in _names(base)}
    if symbol in others:
        return ()
    same = [n for n, o in others.items() if words <= o or (o <= words and len(o) > 1)]
    same.sort(key=lambda name: (len(words ^ others[name]), len(name)))
    alike = get_close_matches(symbol, others, _MOST_SIMILAR, _ALIKE)
    return tuple(dict.fromkeys([*same, *alike]))[:_MOST_SIMILAR]


def _names(base: Path) -> Iterator[str]:
    for number, (directory, folders, files) in enumerate(os.walk(base)):
        if number >= _MOST_FOLDERS:
            return
        folders[:] = sorted(f for f in folders if f not in _ELSEWHERE)
        for name in files:
            if name.startswith("Kconfig"):
                text = text_of(Path(directory, name))
                yield from (match["name"] for match in _DEFINED.finditer(text))


def definitions(kconfig: str, option: str) -> Iterator[tuple[int, tuple[str, ...], bool]]:
    """Line and dependencies of each definition of an option in a Kconfig file, and whether a
    configuration file may set it."""
    # Joined lines are followed by empty ones, so that the lines after them keep their numbers.
    joined = _CONTINUED.sub(
        lambda m: m[0].replace("\\\n", " ") + "\n" * m[0].count("\\\n"), kconfig
    )
    lines = joined.split("\n")
    for number, words, blocks in statements(lines):
        if words[0] in ("config", "menuconfig") and words[1:2] == [option]:
            body = list(_body(lines[number:]))
            depends = [text.split("on", 1)[1] for text in body if _DEPENDS.match(text)]
            yield number, (*blocks, *depends), any(map(_PROMPT.match, body))


def statements(lines: Sequence[str]) -> Iterator[tuple[int, list[str], tuple[str, ...]]]:
    """The number and words of each line of a Kconfig file except `if`, with the conditions of the
    blocks around it."""
    blocks: list[str] = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if words[:1] == ["if"] and not line[0].isspace():
            blocks.append(line.strip()[2:])
        elif words[:1] == ["endif"] and blocks:
            blocks.pop()
        elif words:
            yield number, words, tuple(blocks)


def _body(lines: Sequence[str]) -> Iterator[str]:
    """The lines of a definition, up to its help."""
    for line in lines:
        text = line.partition("#")[0].strip()
        if line[:1].strip() or text == "help":
            return
        yield text


def terms(expression: str) -> list[str]:
    """Split at each && that is not inside parentheses."""
    parts, depth = [""], 0
    for part in re.split(r"(&&|[()])", expression):
        depth += (part == "(") - (part == ")")
        if part == "&&" and depth == 0:
            parts.append("")
        else:
            parts[-1] += part
    return [term.strip() for term in parts if term.strip()]
