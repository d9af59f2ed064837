"""Random operator calls, weighted towards the edges of what the definitions allow: all families.

A family is a module ``kernel_cases_<name>.py`` with its ``MAKERS``; a new one is found by its name.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

from tests.kernels.kernel_draw import Draw, Makers
from tests.kernels.kernel_program import Case


def _families() -> list[str]:
    return sorted(path.stem for path in Path(__file__).parent.glob("kernel_cases_*.py"))


def _makers() -> Makers:
    found: Makers = {}
    for family in _families():
        makers: Makers = importlib.import_module(f"tests.kernels.{family}").MAKERS
        twice = found.keys() & makers.keys()
        assert not twice, f"{family}: another family has {twice}"
        found.update(makers)
    return found


MAKERS = _makers()


def cases(group: str, seed: int) -> Iterator[Case]:
    """The calls of one group; the same seed gives the same calls."""
    make, count = MAKERS[group]
    draw = Draw(seed)
    for draw.number in range(count):
        yield make(draw)
