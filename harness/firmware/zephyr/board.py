"""Whether a workspace has a board: Zephyr's own folder of boards, and those of other projects.

Asked before anything is exported. Where a board is there and its variant is not, west says so.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.core.errors import UsageError

_FILE = "board.yml"  # of every board since Zephyr 3.7 (hardware model v2)
# A module's folders of boards (Zephyr, doc/develop/modules.rst: build settings).
_ROOT = re.compile(r"^\s*board_root:\s*(\S+)", re.MULTILINE)


class BoardUnknown(UsageError):
    """``board``: as a target names it. ``likely``: boards of similar names that there are."""

    def __init__(self, board: str, version: str, base: Path, likely: list[str]) -> None:
        self.board, self.version, self.likely = board, version, likely
        there = f" (there are {', '.join(likely)})" if likely else ""
        super().__init__(
            f"Zephyr {version} has no board {name_of(board)}{there}, and the target is built for "
            f"{board}",
            hint="take a Zephyr that has it: `hil zephyr init DIR --zephyr VERSION` makes a "
            "workspace; `west boards` lists what one has",
            path=base / "boards",
        )


def name_of(board: str) -> str:
    """Without qualifiers and revision: "mps3" of "mps3/corstone300/an547"."""
    return re.split("[/@]", board, maxsplit=1)[0]


def has_board(base: Path, board: str) -> bool:
    """In Zephyr itself."""
    return any(_boards(base, name_of(board)))


def is_in(projects: Iterable[Path], board: str) -> bool:
    """In one of these modules, which say in a file where their boards are."""
    return any(
        has_board(project / root, board)
        for project in projects
        for root in _ROOT.findall(_text(project / "zephyr" / "module.yml"))
    )


def likely(base: Path, board: str) -> list[str]:
    names = {file.parent.name for file in _boards(base, "*")}
    return difflib.get_close_matches(name_of(board), sorted(names), 3, 0.7)


def _boards(root: Path, name: str) -> Iterator[Path]:
    for vendors in ("", "*/"):
        yield from (root / "boards").glob(f"{vendors}{name}/{_FILE}")


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
