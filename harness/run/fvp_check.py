"""Tries the installed FVPs, and keeps what they said in one file: `hil fvp check`.

The file holds versions, parameter names, consoles, exit states and times, and of the machine
nothing: paths are replaced. Whoever has it can judge each run again (``replay``).
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from harness.config.case import Case
from harness.config.loading import load_targets
from harness.config.schema import Data, checked
from harness.config.target import Target
from harness.core.errors import ToolMissing, Unknown
from harness.core.judgement import Reason
from harness.core.simulator_name import SimulatorName
from harness.core.verdict import Verdict
from harness.judge.ending import execution_cause
from harness.log.parser import parse_console
from harness.run.directory import kept_expectations
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord
from harness.sim.fvp import python_library
from harness.sim.fvp_parameters import describe
from harness.sim.run_files import CONSOLE
from harness.sim.simulator import simulator
from harness.sim.transcript import Ending
from harness.system import paths
from harness.system.files import read_regular, sha256_of
from harness.system.progress import Progress
from harness.system.toolchain import Tool

FORMAT: Final = 1
MODELS: Final = ("add", "ds_cnn", "resnet8")  # the runner's hello, and two networks


@dataclass(frozen=True, kw_only=True)
class FvpRun(Data):
    """One run.

    ``console``: its bytes as Latin-1. ``ending``: None if no model was started. ``outputs``,
    ``expected``: the sha256 of each, by input set."""

    target: str
    model: str
    verdict: Verdict
    cause: str | None
    text: str | None
    argv: tuple[str, ...] = ()
    build_id: str | None = None
    console: str = ""
    ending: Ending | None = None
    outputs: tuple[tuple[str, ...], ...] = ()
    expected: tuple[tuple[str, ...], ...] = ()

    def replay(self) -> tuple[Verdict, str | None]:
        """Return the verdict and the kind of its cause, from what the file holds."""
        if self.ending is None:
            return self.verdict, self.cause
        observation = parse_console(self.console.encode("latin-1"))
        if found := execution_cause(observation, self.ending, self.build_id):
            return found[0], str(found[1].kind)
        if self.outputs != self.expected:
            return Verdict.MISMATCH, Reason.OUTPUTS_DIFFER
        return Verdict.PASS, None


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
    fvps = [asdict(_check(chosen[name], tool, progress)) for name, tool in tools.items()]
    text = _without_places(json.dumps(fvps), tools.values())
    return checked(FvpFile, {"format": FORMAT, "fvps": json.loads(text)})


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
        runs=tuple(map(_run_of, records)),
    )


def _run_of(record: RunRecord) -> FvpRun:
    cause, case = record.cause, record.case
    kind, text = (None, None) if cause is None else (str(cause.kind), cause.text)
    judged = FvpRun(
        target=case.target, model=case.model, verdict=record.verdict, cause=kind, text=text
    )
    if record.run_dir is None or record.simulator is None or record.ending is None:
        return judged
    run_dir = Path(record.run_dir)
    program = kept_expectations(run_dir)
    assert program is not None, "a run keeps what was expected of it"
    return replace(
        judged,
        argv=record.simulator.argv,
        build_id=None if record.expectation is None else record.expectation.build_id,
        console=read_regular(run_dir / CONSOLE).decode("latin-1"),
        ending=record.ending,
        outputs=record.output_sha256,
        expected=tuple(
            tuple(sha256_of(program.directory / name) for name in each.expected)
            for each in program.sets
        ),
    )


def _without_places(text: str, tools: Iterable[Tool]) -> str:
    """Without what would tell of the machine."""
    folders = {path.parent: "/fvp" for tool in tools for path in (tool.path, tool.path.resolve())}
    folders |= {paths.state_dir(): "/hil", paths.state_dir().resolve(): "/hil"}
    folders |= {paths.data_root(): "/project", Path.home(): "/home"}
    places = {str(folder): word for folder, word in folders.items()} | {platform.node(): "host"}
    for place in sorted((place for place in places if len(place) > 2), key=len, reverse=True):
        text = text.replace(place, places[place])
    return text
