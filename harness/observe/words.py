"""A cheap first question about a line: is any of these words in it?

The words are first looked for in the whole piece of the log that the line came with, so a
line is only compared with the words that are near it: usually none, sometimes one.
"""

from __future__ import annotations

from collections.abc import Iterable


class Words:
    """Some words, and those of them that the current piece of the log holds."""

    __slots__ = ("_all", "_here", "_piece")

    def __init__(self, words: Iterable[bytes]) -> None:
        self._all = tuple(words)
        self._piece = b""
        self._here: tuple[bytes, ...] | None = ()

    def look_at(self, piece: bytes) -> None:
        """The piece that the following lines are from."""
        self._piece, self._here = piece, None

    def are_in(self, line: bytes) -> bool:
        here = self._here
        if here is None:
            piece = self._piece
            here = self._here = tuple(word for word in self._all if word in piece)
        for word in here:  # noqa: SIM110 - half the time of any() with a generator
            if word in line:
                return True
        return False
