"""``hil bench plugin``: what our pytest plugin costs a suite that is none of its business.

Sessions with and without it (``-p no:hil``) take turns, and the differences within the pairs are
what is told, so that other work of the machine meets both. First 2,000 tests with markers and
fixtures of their own have to end the same way.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from harness.core.verdict import ExitCode
from harness.system.progress import Progress

PAIRS = 25
TESTS = 2000
MOST_SECONDS = 0.020
_FILES = 20
_WITHOUT = ("-p", "no:hil")
_TIMES = re.compile(r" in [\d.]+s( \([\d:]+\))?")
_CONFTEST = """
import pytest
for name in ("run", "case", "target", "program"):
    exec(f"@pytest.fixture\\ndef {name}(): return '{name}'")
def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes long")
"""
_TEST = """
@pytest.mark.{mark}
def test_{number}(run, case, target, program):
    assert (run, case, target, program) == ("run", "case", "target", "program")
    assert {number} % 100 != 7
"""


@dataclass(frozen=True)
class Session:
    """``cpu``, ``wall``: seconds. ``output``: without times."""

    status: int
    output: str
    cpu: float
    wall: float


@dataclass(frozen=True)
class PluginCost:
    """Pairs of sessions of one test, with the plugin and without; ``same``: how the large suite
    ended was the same."""

    pairs: tuple[tuple[Session, Session], ...]
    same: bool

    @property
    def cpu(self) -> float:
        """Seconds more with the plugin, the median of the pairs."""
        return median(ours.cpu - without.cpu for ours, without in self.pairs)

    @property
    def wall(self) -> float:
        return median(ours.wall - without.wall for ours, without in self.pairs)

    @property
    def exit_code(self) -> ExitCode:
        held = self.same and self.cpu < MOST_SECONDS
        return ExitCode.PASSED if held else ExitCode.FAILED

    def text(self) -> str:
        same = "the same results" if self.same else "OTHER RESULTS"
        late = "" if self.cpu < MOST_SECONDS else "  TOO MUCH"
        whole = median(session.wall for _, session in self.pairs)
        cpu, wall, whole, most = (1000 * s for s in (self.cpu, self.wall, whole, MOST_SECONDS))
        return (
            f"{TESTS} unrelated tests: {same} with the plugin and without\n"
            f"start-up: {cpu:+.1f} ms of processor, {wall:+.1f} ms of time, of {whole:.0f} ms; "
            f"{len(self.pairs)} pairs, at most {most:.0f} ms{late}"
        )

    def summary(self) -> dict[str, Any]:
        return {
            "same_results": self.same,
            "cpu_seconds": self.cpu,
            "wall_seconds": self.wall,
            "pairs": len(self.pairs),
        }


def measure_plugin(progress: Progress, pairs: int = PAIRS, tests: int = TESTS) -> PluginCost:
    with tempfile.TemporaryDirectory() as named:
        folder = Path(named)
        progress(f"{tests} tests, with the plugin and without")
        suite(folder / "large", tests)
        same = alike(folder / "large")
        suite(folder / "small", 1)
        times = []
        for number in range(pairs):
            progress(f"start-up, pair {number + 1} of {pairs}")
            first, second = ((), _WITHOUT) if number % 2 else (_WITHOUT, ())
            one, other = session(folder / "small", first), session(folder / "small", second)
            times.append((one, other) if number % 2 else (other, one))
    return PluginCost(tuple(times), same)


def alike(folder: Path) -> bool:
    ours, without = session(folder), session(folder, _WITHOUT)
    return (ours.status, ours.output) == (without.status, without.output)


def suite(folder: Path, tests: int) -> None:
    """Of every hundred tests one fails, and some are left out by ``-m``."""
    folder.mkdir()
    (folder / "conftest.py").write_text(textwrap.dedent(_CONFTEST))
    (folder / "pytest.ini").write_text(
        "[pytest]\naddopts = -m 'not slow' -rA -p no:cacheprovider\n"
    )
    each = -(-tests // _FILES)
    for start in range(0, tests, each):
        bodies = [
            _TEST.format(number=number, mark="slow" if number % 10 == 3 else "filterwarnings")
            for number in range(start, min(start + each, tests))
        ]
        (folder / f"test_{start}.py").write_text("import pytest\n" + "".join(bodies))


def session(folder: Path, plugins: Sequence[str] = ()) -> Session:
    argv = [sys.executable, "-m", "pytest", "-q", *plugins]
    # compiled once, as for a user
    others = ("PYTEST_", "PYTHONDONTWRITEBYTECODE")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    before, started = os.times(), time.perf_counter()
    done = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True)
    wall, after = time.perf_counter() - started, os.times()
    cpu = sum(after[2:4]) - sum(before[2:4])
    return Session(done.returncode, _TIMES.sub("", done.stdout), cpu, wall)
