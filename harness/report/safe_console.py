"""The terminal: what others wrote reaches it without controls."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from harness.core.safe_text import plain, without_controls

_UNBOUNDED = 10_000  # columns
_NAME = 16  # columns that a name has in the narrowest table


class Terminal(Console):
    """A Console that shows control characters instead of obeying them; its own styles stay.

    A file or a pipe has no width: nothing in it is folded."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if not self.is_terminal and "width" not in options and "COLUMNS" not in os.environ:
            self.width = _UNBOUNDED

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control is None:
                yield segment._replace(text=without_controls(segment.text))
            else:
                yield segment


def say(console: Console, text: str | Text, style: str = "") -> None:
    """One line, whoever wrote it: nothing in it is markup, and it is not wrapped."""
    console.print(Text(plain(text), style) if isinstance(text, str) else text, soft_wrap=True)


def fitted(console: Console, heads: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> Table:
    """Return a table of ``columns`` that fits into the console's width.

    The first column is a name, which is cut at its left but never folded; then figures are left
    out, from the right, but never the second column."""
    cells = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    widths = [
        max([len(head.removeprefix(">")), *(row[n].cell_len for row in cells)])
        for n, head in enumerate(heads)
    ]
    gap = 2 if sum(widths) + 2 * len(widths) <= console.width else 1
    shown, least = len(heads), min(_NAME, widths[0])
    while shown > 2 and least + sum(widths[1:shown]) + gap * shown > console.width:
        shown -= 1
    room = max(least, console.width - sum(widths[1:shown]) - gap * shown)
    table = columns(*heads[:shown])
    table.collapse_padding = gap == 1
    for column in table.columns:
        column.no_wrap = True
    for name, *figures in cells:
        table.add_row(cut_left(name.plain, room), *figures[: shown - 1])
    return table


def cut_left(name: str, room: int) -> str:
    return name if len(name) <= room else f"\N{HORIZONTAL ELLIPSIS}{name[1 - room :]}"


def columns(*heads: str, style: str = "bold") -> Table:
    """Return a table without lines.

    Heads of numbers begin with ``>``; text is folded where it must be."""
    table = Table(box=None, pad_edge=False, header_style=style)
    for head in heads:
        if head.startswith(">"):
            table.add_column(head[1:], justify="right", no_wrap=True)
        else:
            table.add_column(head, overflow="fold")
    return table
