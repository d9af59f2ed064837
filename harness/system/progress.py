"""How long work tells what it is doing: a function that takes one short sentence."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], None]


def silent(_message: str) -> None:
    """A Progress that says nothing."""
