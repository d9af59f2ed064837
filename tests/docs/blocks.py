"""The commands of README.md and of the pages: a small reader of fenced blocks.

A block says what it is. ``sh`` has commands, which a test runs in order. ``console`` has commands
after ``$`` and what they print; ``...`` in a line stands for anything in it, as a line for any
lines. ``<!-- not run: WHY -->`` above a block gives the reason why no test runs it here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.clone import project_root

_FENCE = re.compile(
    r"^(?:<!-- not run: (?P<why>[^\n]+) -->\n)?```(?P<kind>[a-z]*)\n(?P<body>.*?)^```$", re.M | re.S
)
_VERB = re.compile(r"^(?:\./)?hil (?!init my-models &&)")


COMMANDS = ("sh", "console")
GENERATED = ("docs/networks.md", "docs/executorch-ci.md", "docs/zoo.md")


class Block(NamedTuple):
    page: str
    line: int
    kind: str
    body: str
    why_not: str | None

    @property
    def id(self) -> str:
        return f"{self.page}:{self.line}"


class Line(NamedTuple):
    """A line of an ``sh`` block."""

    command: str
    fails: bool  # its comment says so

    @classmethod
    def of(cls, block: Block) -> list[Line]:
        """The lines of ``block``, continued ones joined."""
        joined = block.body.replace("\\\n", "").splitlines()
        return [
            cls(line, bool(re.search(r"# (fails\b|.*exits with [1-9])", line))) for line in joined
        ]


class Shown(NamedTuple):
    """A command, and what it is said to print."""

    command: str
    prints: str


def pages() -> list[Path]:
    root = project_root()
    return [
        root / "README.md",
        root / "CONTRIBUTING.md",
        root / "examples" / "README.md",
        *sorted(p for p in (root / "docs").rglob("*.md") if p.parent.name != "reference"),
    ]


def blocks() -> Iterator[Block]:
    for page in pages():
        text = page.read_text("utf-8")
        for found in _FENCE.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            name = page.relative_to(project_root()).as_posix()
            yield Block(name, line, found["kind"], found["body"], found["why"])


def shown(block: Block) -> Iterator[Shown]:
    for part in re.split(r"^\$ ", block.body, flags=re.M)[1:]:
        command, _, prints = part.partition("\n")
        yield Shown(command, prints)


def verbs(block: Block) -> Iterator[list[str]]:
    """The words of each call of `hil` in it, without its comment."""
    for line in block.body.splitlines() if block.kind in COMMANDS else ():
        command = line.removeprefix("$ ")
        if _VERB.match(command):
            words = shlex.split(command, comments=True)
            words = [
                words[0],
                *(w for w in words[1:] if not re.match(r"\+(vela-)?\d", w)),
            ]  # a release
            yield words[1 : next((n for n, w in enumerate(words) if w in ("&&", "|")), len(words))]


def fits(said: str, printed: str) -> bool:
    """Whether ``printed`` is what ``said`` promises."""
    lines = said.rstrip("\n").splitlines()
    any_lines = any(line.strip() == "..." for line in lines)
    wanted = "\n".join(".*" if line.strip() == "..." else _line(line) for line in lines)
    return bool(re.fullmatch(wanted, printed.rstrip("\n"), re.S if any_lines else 0))


def _line(line: str) -> str:
    return "[^\n]*".join(re.escape(piece) for piece in line.rstrip().split("...")) + "[ ]*"
