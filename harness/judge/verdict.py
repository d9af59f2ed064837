"""What judging takes and gives: how a run ended, what it wrote, what it had to be, the verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harness.judge.compare import TensorDiff
from harness.judge.reference import Reference


@dataclass(frozen=True)
class Cause:
    """Why a verdict is not PASS. ``line`` counts transcript lines from 1."""

    kind: str
    text: str
    line: int | None = None
    facts: dict[str, Any] | None = None


@dataclass(frozen=True)
class Verdict:
    name: str
    cause: Cause | None = None
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.name == "PASS"


@dataclass(frozen=True)
class Ending:
    """How the simulator's process ended.

    ``stop`` is "exited" when it ended by itself, else what made us end it: "deadline", "stall",
    "output_limit", "fault" (a line after which nothing is worth waiting for). ``exit_status`` is
    None when a signal ended it. ``native``: the process was the runner itself, no simulator.
    ``where``: what the CPU was doing when a limit ended the run.
    """

    stop: str
    exit_status: int | None
    signal: int | None
    seconds: float
    native: bool = False
    where: dict[str, Any] | None = None


@dataclass(frozen=True)
class Outputs:
    """What the run wrote, against what was expected.

    ``missing`` names files that do not exist, ``misshapen`` files of the wrong size. ``sha256``
    of every output by input set; ``diffs`` for those that could be compared.
    """

    diffs: tuple[TensorDiff, ...]
    missing: tuple[str, ...] = ()
    misshapen: tuple[str, ...] = ()
    sha256: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Expectation:
    """What the run had to be: which firmware, which program, how close, how large.

    ``limits`` are hard limits in bytes on figures of the run; nobody can accept more.
    """

    build_id: str | None
    pte_unchanged: bool
    pte_sha256: str
    toolchain: str
    tolerance_lsb: float
    reference: Reference | None
    limits: dict[str, int] = field(default_factory=dict)


Finding = tuple[str, Cause] | None  # a verdict that is not PASS, and why; None: nothing is wrong
