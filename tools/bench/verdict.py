"""``hil bench verdict``: the time from each way to end to its verdict.

Doubles of an FVP and, where the tools are there, planted firmware and Linux guests on QEMU are
run through the whole pipeline; the figure is the wall time of launching, running, observing and
judging. What has to pass before is a limit of ours; of a Linux guest, the time until its cause
is on the console, or until the last that came.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.config.case import Case
from harness.config.fvp import Fvp
from harness.config.loading import load_target, target_directories
from harness.config.target import Limits, Target
from harness.core.errors import Unknown
from harness.core.simulator_name import SimulatorName
from harness.core.verdict import ExitCode, Verdict
from harness.export.program import Program
from harness.run.pipeline import RunOptions, run_case
from harness.sim.simulator import pick
from harness.system import toolchain
from harness.system.process import Stop
from harness.system.progress import Progress
from tools import doubles, guest_doubles

TARGET = "corstone-300-m55"
_LIMITS = Limits(host=3.0, stall=1.0, model=60.0, simulated=60.0)
_MOST_FAULT = 1.0  # seconds, from launch to verdict
_BY_LIMIT: dict[str, float] = {Stop.DEADLINE: _LIMITS.host, Stop.STALL: _LIMITS.stall}


@dataclass(frozen=True)
class TimedEnding:
    """``limit``: the seconds that our own limit, or the guest, took before the run could end."""

    simulator: str
    name: str
    verdict: Verdict
    cause: str | None
    expected: bool
    seconds: float
    limit: float

    @property
    def in_time(self) -> bool:
        return self.seconds <= self.limit + _MOST_FAULT

    def text(self) -> str:
        after = f" (not before {self.limit:.1f} s)" if self.limit else ""
        problem = "" if self.expected else "  WRONG VERDICT"
        late = "" if self.in_time else "  LATE"
        shown = f"{self.verdict} {self.cause or ''}"
        return (
            f"{self.simulator:7}{self.name:26}{shown:34}{self.seconds:7.3f} s{after}{problem}{late}"
        )


@dataclass(frozen=True)
class TimedEndings:
    endings: tuple[TimedEnding, ...]

    @property
    def exit_code(self) -> ExitCode:
        """FAILED when a verdict was wrong. Lateness depends on the machine and is only shown."""
        return ExitCode.PASSED if all(e.expected for e in self.endings) else ExitCode.FAILED

    def text(self) -> str:
        late = sum(not e.in_time for e in self.endings)
        wrong = sum(not e.expected for e in self.endings)
        slowest = max((e.seconds - e.limit for e in self.endings), default=0.0)
        return "\n".join(
            [
                *(e.text() for e in self.endings),
                f"{len(self.endings)} endings, {wrong} with a wrong verdict, {late} later than "
                f"{_MOST_FAULT:.0f} s after their limit; the slowest took {slowest:.3f} s",
            ]
        )

    def summary(self) -> dict[str, Any]:
        return {"endings": [{**vars(e), "in_time": e.in_time} for e in self.endings]}


def measure_verdicts(progress: Progress, only: Sequence[str] = ()) -> TimedEndings:
    """All endings, or those that are named. Raises Unknown for one that there is not."""
    of_doubles, planted = doubles.endings(), doubles.planted_endings()
    of_guests = guest_doubles.guest_endings()
    known = [*of_doubles, *planted, *of_guests]
    for name in only:
        if name not in known:
            raise Unknown(f"there is no ending {name!r}", name, known)
    with tempfile.TemporaryDirectory(prefix="hil-bench-") as scratch:
        return TimedEndings(
            (
                *_doubles(Path(scratch), progress, _chosen(of_doubles, only)),
                *_planted(Path(scratch), progress, _chosen(planted, only)),
                *_guests(Path(scratch), progress, _chosen(of_guests, only)),
            )
        )


_Table = dict[str, tuple[str, str | None]]


def _chosen(table: _Table, only: Sequence[str]) -> _Table:
    return {name: row for name, row in table.items() if not only or name in only}


def _doubles(scratch: Path, progress: Progress, table: _Table) -> Iterator[TimedEnding]:
    board = load_target(TARGET, target_directories({}))
    settings = board.simulators.fvp
    assert settings is not None
    program = doubles.double_program(scratch / "program")
    firmware = doubles.double_firmware(scratch)
    for name, expected in table.items():
        progress(f"double: {name}")
        folder = scratch / f"double-{name}"
        double = doubles.install_double(folder, settings.executable, name, _known(settings))
        # an absolute name is found as it is, whatever FVPs are installed
        target = _bounded(board, replace(settings, executable=str(double)))
        yield _timed(target, SimulatorName.FVP, name, expected, program, firmware)


def _planted(scratch: Path, progress: Progress, table: _Table) -> Iterator[TimedEnding]:
    if not all(toolchain.find(name) for name in ("arm-none-eabi-gcc", "qemu-system-arm")):
        return
    target = _bounded(load_target(TARGET, target_directories({})), None)
    program = doubles.double_program(scratch / "planted-program")
    for name, expected in table.items():
        progress(f"planted: {name}")
        firmware = doubles.planted_firmware(scratch, name)
        yield _timed(target, SimulatorName.QEMU, name, expected, program, firmware)


def _guests(scratch: Path, progress: Progress, table: _Table) -> Iterator[TimedEnding]:
    needed = ("aarch64-linux-gnu-g++", "qemu-system-aarch64")
    if not table or not all(toolchain.find(name) for name in needed):
        return
    firmware = guest_doubles.ends_badly(scratch)
    for name, expected in table.items():
        progress(f"guest: {name}")
        given = guest_doubles.guest_ending(scratch / f"guest-{name}", name)
        yield _timed(
            given.target, SimulatorName.QEMU, name, expected, given.program, firmware, "guest"
        )


def _timed(
    target: Target,
    simulator: SimulatorName,
    name: str,
    expected: tuple[str, str | None],
    program: Program,
    firmware: Any,
    shown: str = "",
) -> TimedEnding:
    # Budgets and references are looked up by name: this is a model that has neither.
    model = program.directory / "double.py"
    model.touch()
    case = Case(target.name, str(model))
    started = time.monotonic()
    chosen = pick(target, simulator)
    record = run_case(case, chosen, program, firmware, RunOptions(simulator, limit_factor=1.0))
    seconds = time.monotonic() - started
    if record.run_dir is not None:
        shutil.rmtree(record.run_dir, ignore_errors=True)
    cause = record.cause
    kind = None if cause is None else cause.kind
    limit = _BY_LIMIT.get(kind or "", 0.0)
    if target.linux is not None:
        stall = target.limits.stall if kind == Stop.STALL else 0.0
        limit = record.seconds.get("cause", 0.0) + stall
    return TimedEnding(
        shown or ("double" if simulator is SimulatorName.FVP else simulator),
        name,
        record.verdict,
        kind,
        (record.verdict, kind) == expected,
        seconds,
        limit,
    )


def _bounded(target: Target, fvp: Fvp | None) -> Target:
    settings = target.simulators
    if fvp is not None:
        settings = replace(settings, fvp=fvp)
    return replace(target, limits=_LIMITS, simulators=settings)


def _known(settings: Fvp) -> list[str]:
    semihosting = settings.semihosting
    own = (
        []
        if semihosting is None
        else [semihosting.enable, semihosting.cwd, semihosting.command_line]
    )
    return [*settings.parameters, *own]
