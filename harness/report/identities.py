"""What a result rests on, as people call it; an input that changed before what follows from it."""

from __future__ import annotations

from collections.abc import Iterable

from harness.nightly.history.model import Difference

# In the order in which they are told.
_NAMES = {
    "target": "target file",
    "exporter": "exporter",
    "sources": "firmware sources",
    "toolchain": "toolchain",
    "simulator": "simulator",
    "reference": "reference and budgets",
    "program": "program (.pte)",
    "firmware": "firmware (ELF)",
    "harness": "harness",
    "host": "host",
}
_ORDER = tuple(_NAMES)


def name_of(one: Difference) -> str:
    return _NAMES[one.what]


def in_order(several: Iterable[Difference]) -> list[Difference]:
    return sorted(several, key=lambda one: _ORDER.index(one.what))
