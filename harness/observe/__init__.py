"""Read a transcript: the log grammar of runners and simulators lives here and nowhere else.

Bytes in, typed events out. ``observe`` reads a whole console; ``Reader`` is fed while a run
goes on. A reader must survive bytes that are not UTF-8: an undefined-operator message can
carry garbage.
"""

from __future__ import annotations

from harness.observe.events import (
    Block,
    Event,
    Kind,
    Metric,
    ModelStop,
    Observation,
    OpTicks,
    Progress,
    Stage,
    Tensor,
)
from harness.observe.reader import Reader

__all__ = [
    "Block",
    "Event",
    "Kind",
    "Metric",
    "ModelStop",
    "Observation",
    "OpTicks",
    "Progress",
    "Stage",
    "Tensor",
    "observe",
]


def observe(console: bytes) -> Observation:
    """Everything a transcript says. Linear in its size; never raises on its content."""
    reader = Reader()
    reader.feed(console)
    return reader.finish()
