"""Tries the installed FVPs, and keeps what they said in one file: `hil fvp check`.

The file holds versions, parameter names, consoles, exit states and times, and of the machine
nothing: paths are replaced. Whoever has it can judge each run again (``replay``).
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from harness.config.case import Case
from harness.config.loading import load_targets
from harness.config.schema import Data, checked
from harness.config.target import Target
from harness.core.errors import ToolMissing, Unknown, UsageError
from harness.core.simulator_name import SimulatorName
from harness.core.verdict import Verdict
from harness.judge.ending import execution_cause
from harness.log.parser import parse_console, parse_processes
from harness.run.directory import kept_expectations
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord
from harness.sim.fvp import python_library
from harness.sim.fvp_preflight import describe
from harness.sim.run_files import CONSOLE
from harness.sim.simulator import simulator
from harness.sim.transcript import Ending
from harness.system import paths
from harness.system.files import MALFORMED
from harness.system.progress import Progress
from harness.system.toolchain import Tool

FORMAT: Final = 1
MODELS: Final = ("add", "ds_cnn", "resnet8")  # the runner's hello, and two networks
_DIGEST = hashlib.sha256


@dataclass(frozen=True, kw_only=True)
class FvpRun(Data):
    """One run. ``console``: its bytes as Latin-1. ``ending`` is None when none was started.
    ``outputs``, ``expected``: the sha256 of each, by input set."""

    target: str
    model: str
    verdict: str
    cause: str | None
    text: str | None
    argv: tuple[str, ...] = ()
    build_id: str | None = None
    console: str = ""
    starts: tuple[int, ...] = (0,)
    ending: Ending | None = None
    outputs: tuple[tuple[str, ...], ...] = ()
    expected: tuple[tuple[str, ...], ...] = ()

    def replay(self) -> tuple[str, str | None]:
        """The verdict and the kind of its cause, from what the file holds."""
        if self.ending is None:
            return self.verdict, self.cause
        console = self.console.encode("latin-1")
        observation = (
            parse_console(console)
            if len(self.starts) == 1
            else parse_processes(console, self.starts)
        )
        if found := execution_cause(observation, self.ending, self.build_id):
            return str(found[0]), str(found[1].kind)
        return ("PASS", None) if self.outputs == self.expected else ("MISMATCH", "outputs_differ")


@dataclass(frozen=True, kw_only=True)
class CheckedFvp(Data):
    name: str
    stand_in: bool  # no Arm model
    version: str  # all that --version prints
    sha256: str
    parameters: tuple[str, ...]
    runs: tuple[FvpRun, ...]


@dataclass(frozen=True, kw_only=True)
class FvpFile(Data):
    format: int
    fvps: tuple[CheckedFvp, ...]


def read_fvp_file(path: Path) -> FvpFile:
    """Raises UsageError."""
    try:
        return checked(FvpFile, json.loads(path.read_text("utf-8")))
    except (OSError, *MALFORMED) as error:
        raise UsageError(f"{path} is not a file of `hil fvp check`: {error}", path=path) from error


def check_fvps(wanted: str | None, progress: Progress) -> FvpFile:
    """``wanted``: one FVP; None: all that are installed. Raises Unknown, ToolMissing."""
    chosen = _targets(wanted)
    found = {name: simulator(SimulatorName.FVP).find(first) for name, (first, *_) in chosen.items()}
    tools = {name: tool for name, tool in found.items() if tool is not None}
    if not tools:
        raise ToolMissing(
            f"no FVP is installed ({', '.join(chosen)})",
            hint="`hil doctor` says where to get each; `hil standin install DIR` makes stand-ins, "
            "which $HIL_FVP_DIR may name",
        )
    return FvpFile(
        format=FORMAT,
        fvps=tuple(_check(chosen[name], tool, progress) for name, tool in tools.items()),
    )


def _targets(wanted: str | None) -> dict[str, list[Target]]:
    """By the FVP's name: what runs on its CPU alone, and on an NPU of the usual size."""
    found: dict[str, list[Target]] = {}
    for target in load_targets():
        fvp, npu = target.simulators.fvp, target.npu
        if fvp is None or fvp.semihosting is None or target.zephyr is not None:
            continue
        if npu.has_default_macs if npu is not None else target.core is None:
            found.setdefault(fvp.executable, []).append(target)
    if wanted is not None and wanted not in found:
        raise Unknown(f"no target is for an FVP called {wanted!r}", wanted, found)
    return {name: targets for name, targets in found.items() if wanted in (None, name)}


def _check(targets: Sequence[Target], tool: Tool, progress: Progress) -> CheckedFvp:
    progress(f"{tool.name}: asking for its version and parameters")
    said = describe(tool.path.resolve(), python_library(tool.path.resolve()))
    cases = [Case(target.name, model) for target in targets for model in MODELS]
    records = run_cases(cases, RunOptions(SimulatorName.FVP, strict=False), progress)
    return CheckedFvp(
        name=tool.name,
        stand_in=said.version.startswith("Stand-in"),
        version=said.version,
        sha256=said.sha256,
        parameters=said.parameters,
        runs=tuple(_run_of(record, tool) for record in records),
    )


def _run_of(record: RunRecord, tool: Tool) -> FvpRun:
    cause, places = record.cause, _places(record, tool)
    judged = FvpRun(
        target=record.case.target,
        model=record.case.model,
        verdict=str(record.verdict),
        cause=None if cause is None else str(cause.kind),
        text=None if cause is None else _without(cause.text, places),
    )
    if record.run_dir is None or record.simulator is None or record.ending is None:
        return judged
    run_dir = Path(record.run_dir)
    program = kept_expectations(run_dir)
    assert program is not None, "a run keeps what was expected of it"
    return replace(
        judged,
        argv=tuple(_without(word, places) for word in record.simulator.argv),
        build_id=None if record.expectation is None else record.expectation.build_id,
        console=_without((run_dir / CONSOLE).read_bytes().decode("latin-1"), places),
        starts=record.starts,
        ending=record.ending,
        outputs=record.output_sha256,
        expected=tuple(
            tuple(_DIGEST((program.directory / n).read_bytes()).hexdigest() for n in s.expected)
            for s in program.sets
        ),
    )


def _places(record: RunRecord, tool: Tool) -> dict[str, str]:
    """What would tell of the machine, and what stands for it in the file."""
    places = {
        str(tool.path.resolve().parent): "/fvp",
        str(tool.path.parent): "/fvp",
        str(paths.state_dir().resolve()): "/hil",
        str(paths.state_dir()): "/hil",
        str(paths.data_root()): "/project",
        str(Path.home()): "/home",
        platform.node(): "host",
    }
    if record.run_dir is not None:
        places[str(Path(record.run_dir).absolute())] = "/run"
    return {place: word for place, word in places.items() if len(place) > 2}


def _without(text: str, places: Mapping[str, str]) -> str:
    for place in sorted(places, key=len, reverse=True):
        text = text.replace(place, places[place])
    return text


def verdicts(file: FvpFile) -> Sequence[Verdict]:
    return [Verdict[run.verdict] for fvp in file.fvps for run in fvp.runs]


def write_fvp_file(file: FvpFile) -> str:
    return json.dumps(asdict(file), indent=1) + "\n"
