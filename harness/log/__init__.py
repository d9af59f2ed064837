"""The log grammar of runners and simulators: console bytes in, typed events out.

``parse_console`` reads a whole console; ``LogParser`` is fed while a run goes on. The messages are
rows of ``patterns.yaml``. The parser survives bytes that are not UTF-8: an undefined-operator
message can carry garbage.
"""

from __future__ import annotations

from harness.log.events import ENDS, Event, Kind, Observation, Progress, Stage
from harness.log.parser import LogParser, parse_console

__all__ = [
    "ENDS",
    "Event",
    "Kind",
    "LogParser",
    "Observation",
    "Progress",
    "Stage",
    "parse_console",
]
