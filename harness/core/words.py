"""Numbers as words."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """ "1 model", "2 models"; for words whose plural has an s."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
