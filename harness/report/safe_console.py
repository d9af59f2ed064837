"""The terminal: what others wrote reaches it without controls."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from harness.core.safe_text import plain, without_controls


class Terminal(Console):
    """A Console that shows control characters instead of obeying them; its own styles stay."""

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


def columns(*heads: str, style: str = "bold") -> Table:
    """A table without lines. Heads of numbers begin with ``>``; text is folded where it must be."""
    table = Table(box=None, pad_edge=False, header_style=style)
    for head in heads:
        if head.startswith(">"):
            table.add_column(head[1:], justify="right", no_wrap=True)
        else:
            table.add_column(head, overflow="fold")
    return table
