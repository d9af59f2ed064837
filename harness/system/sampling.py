"""Where a Python process spends its processor time: its stack, every few milliseconds of it.

A sample belongs to the first stage of a table that one of its frames belongs to. What other
processes do on its behalf is counted apart, once they have ended.
"""

from __future__ import annotations

import json
import resource
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

_EVERY = 0.005  # seconds of processor time
OTHER = "other"
# A stage, and what the path of a source file (or "function in file") has in it; in this order, for
# what is imported or compared inside of another stage is none of that.
STAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("imports", ("<frozen importlib",)),
    ("compare", ("_assert_outputs_equal", "/harness/judge/", "/harness/localise/")),
    ("Vela", ("/ethosu/vela/", "/ethosu/regor")),
    ("TOSA reference", ("tosa_reference_model", "run_tosa_graph")),
    ("NPU model", ("/harness/ethosu/",)),
    ("quantise", ("/torchao/", "/quantizer/", "quantize in ")),
    ("lower", ("/executorch/exir/", "/executorch/backends/arm/", "/executorch/backends/cortex_m/")),
    ("capture", ("/torch/export/", "/torch/_dynamo/", "/torch/_functorch/")),
    ("simulate", ("/harness/simulate/", "/harness/standin/", "run_corstone")),
    ("read and judge", ("/harness/observe/", "/harness/run/")),
    ("collect", ("/_pytest/", "/pluggy/", "/xdist/")),
)


@dataclass(frozen=True)
class Profile:
    """Seconds: ``stages`` of this process's processor time, ``children`` of that of processes it
    started and waited for, ``wall`` of time."""

    stages: dict[str, float]
    children: float
    wall: float

    @property
    def cpu(self) -> float:
        return sum(self.stages.values())

    @property
    def rest(self) -> float:
        """Of the time what is in neither: a simulator that was waited for, a machine that had other
        work. Not below 0, where several worked at once."""
        return max(0.0, self.wall - self.cpu - self.children)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def profile_from(fields: dict[str, Any]) -> Profile:
    """Raises TypeError for what is none."""
    return Profile(**fields)


def stage_of(frames: Sequence[tuple[str, str]]) -> str:
    """``frames``: file and function, of one stack."""
    for stage, marks in STAGES:
        for file, function in frames:
            if any(mark in file or mark in f"{function} in {file}" for mark in marks):
                return stage
    return OTHER


class Sampler:
    """From ``start`` to ``stop``, in the main thread; SIGPROF is its own."""

    def __init__(self) -> None:
        self._stacks: Counter[tuple[tuple[str, str], ...]] = Counter()
        self._began = (0.0, 0.0, 0.0)

    def start(self) -> None:
        self._began = _spent()
        signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, _EVERY, _EVERY)

    def stop(self) -> Profile:
        signal.setitimer(signal.ITIMER_PROF, 0)
        own, children, wall = (now - then for now, then in zip(_spent(), self._began, strict=True))
        found: Counter[str] = Counter()
        for stack, count in self._stacks.items():
            found[stage_of(stack)] += count
        total = sum(found.values()) or 1
        stages = {stage: round(own * n / total, 3) for stage, n in found.most_common()}
        return Profile(stages, round(children, 3), round(wall, 3))

    def _sample(self, _signal: int, frame: FrameType | None) -> None:
        stack = []
        while frame is not None:
            stack.append((frame.f_code.co_filename, frame.f_code.co_name))
            frame = frame.f_back
        self._stacks[tuple(stack)] += 1


def save(profile: Profile, path: Path) -> None:
    path.write_text(json.dumps(profile.as_json()))


def _spent() -> tuple[float, float, float]:
    """Processor time of this process, and of its children that have ended; and the time."""
    own, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    ours, theirs = (one.ru_utime + one.ru_stime for one in (own, children))
    return ours, theirs, time.monotonic()
