"""What torch and torchao do slowly while a model is exported, done sooner with the same result.

Seen in profiles of torch 2.13 and torchao 0.18: half of the time in which a small model is exported
goes into work that is repeated, or that is done one by one where it could be done at once. Each
shortcut leaves every result as it is, to the bit; where a function is not there, or its source is
not the one that was looked at, it is not taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from harness.shortcuts import code, decompositions, guards, histories, ranges
from harness.shortcuts.patch import Patch, put


def available() -> Iterable[Patch]:
    """Those that fit what is installed. Imports torch."""
    for kind in (decompositions, guards, code, histories, ranges):
        yield from kind.patches()


@contextmanager
def shortcuts() -> Iterator[None]:
    """Torch takes them within. One at a time in a process: torch is one, too."""
    with ExitStack() as open_ones:
        for patch in available():
            open_ones.enter_context(put(patch))
        yield
