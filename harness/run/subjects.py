"""Programs and firmware: of cases, and those that a command names.

A program is exported or comes from the cache, by the wheel or by a checkout's exporter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.config.case import RUNNER, Case
from harness.config.case_budgets import settings_of
from harness.config.loading import load_target
from harness.config.models import find_model
from harness.config.target import Target
from harness.core.errors import HarnessError, NotThere, UsageError
from harness.export import batch, cache
from harness.export.batch import WHEEL_OPTIONS, ExportOptions
from harness.export.localise import NewestVela, SmallestPart, smallest_part
from harness.export.process import ExportProcess
from harness.export.program import Program
from harness.export.request import ExportRequest
from harness.firmware.choice import FirmwareChoice
from harness.firmware.source import BuildRequest, Firmware
from harness.sim.simulator import pick
from harness.system.files import sha256_of
from harness.system.progress import Progress, silent


def export_cases(
    cases: Sequence[Case],
    targets: Mapping[str, Target],
    progress: Progress = silent,
    options: ExportOptions = WHEEL_OPTIONS,
    process: ExportProcess | None = None,
) -> list[Program | HarnessError]:
    """Return the Program of each case, or the error that prevented it, in order.

    ``targets`` by name; ``process``: as in ``batch.export``. Raises NotConfined."""

    requests = [request_of(case.model, targets[case.target]) for case in cases]
    results = batch.export(requests, progress, options, process)
    return [result.error or result.unwrap() for result in results]


def program_of(subject: Path, target: str | None, command: str, progress: Progress) -> Program:
    """Return an exported ``.pte``, or a model that is exported for ``target``.

    Raises UsageError, which names ``command``, for a ``.pte`` whose TOSA graphs are not known, and
    without a target for a model."""
    if subject.suffix == ".pte":
        found = cache.by_pte(sha256_of(subject)) if subject.is_file() else None
        if found is None:
            raise UsageError(
                f"{subject} is not a program that hil exported here, and a .pte does not hold the "
                "graphs that its streams were compiled from",
                hint=f"name the model instead: {command} MODEL --target TARGET",
                path=subject,
            )
        return found
    if target is None:
        raise UsageError(
            f"{subject} is not a .pte, and a model is exported for a target",
            hint="--target TARGET; `hil targets` lists them",
        )
    case = Case(target, str(subject))
    find_model(case.model)  # says at once when there is none
    (result,) = export_cases([case], {target: load_target(target)}, progress)
    if isinstance(result, HarnessError):
        raise result
    return result


def request_of(model: str, target: Target) -> ExportRequest:
    """Return the export of a model for a target, as a request. Raises Unknown, TargetError."""
    said, source = settings_of(model), find_model(model)
    request = ExportRequest(
        source,
        target.compile_target,
        calibration=said.calibration,
        quantization=said.quantization,
        layout=said.layout or source.layout,
    )
    if target.npu is None:
        return request
    return replace(
        request,
        system_config=target.npu.system_config,
        memory_mode=target.npu.memory_mode,
        direct_drive=target.direct_drive,
    )


@dataclass(frozen=True)
class ReducedProgram:
    delegate: int
    input_set: int
    smallest: SmallestPart


def reduce_program(
    program: Program, base: Path, tries: int, newest: NewestVela | None = None
) -> ReducedProgram | None:
    """None when every delegate computes what TOSA means, or the graph, compiled anew, does.

    Writes BASE.tosa, its inputs and Vela's stream of it.
    """
    from harness.judge.blame import first_disagreement  # numpy, which few runs need

    if not program.delegates:
        raise UsageError(f"nothing of {program.model} runs on an Ethos-U")
    wrong = first_disagreement(program)
    if wrong is None:
        return None
    with ExportProcess() as process:
        smallest = smallest_part(
            process, program, wrong.delegate, wrong.set, tries=tries, base=base, newest=newest
        )
    return None if smallest is None else ReducedProgram(wrong.delegate, wrong.set, smallest)


def firmware_of(path: Path, choice: FirmwareChoice, progress: Progress) -> tuple[Firmware, ...]:
    """Each firmware that is wanted when the path is ``TARGET/runner``; none when it is a file.

    Raises UsageError when it is neither, and for a target that does not exist; what the build
    does.
    """
    target = _target(path)
    if target is None:
        return ()
    request = _build_request(target, choice)
    return tuple(source.build(request, progress) for source in choice.sources)


def tree_of(path: Path, choice: FirmwareChoice) -> Path:
    """Where the firmware is built when the path is ``TARGET/runner``; else the path itself.

    Raises UsageError when there is no such tree: our own is kept only while a build fails.
    """
    target = _target(path)
    if target is None:
        return path
    if len(choice.sources) > 1:
        raise UsageError("one link is looked at, so --firmware both makes no sense here")
    (source,) = choice.sources
    tree = source.tree(_build_request(target, choice))
    if not tree.is_dir():
        raise UsageError(
            f"there is no build of {path} with firmware {source}",
            hint="`hil run` and `hil size` build it; the tree of the bundled runner is kept only "
            "when its build fails",
            path=tree,
        )
    return tree


def _build_request(target: str, choice: FirmwareChoice) -> BuildRequest:
    checkout = choice.checkout()
    chosen = pick(load_target(target))
    return BuildRequest(chosen.target, chosen.name, checkout)


def _target(path: Path) -> str | None:
    if path.exists():
        return None
    if path.name == RUNNER and len(path.parts) == 2:
        return path.parts[0]
    raise NotThere(path, hint="or TARGET/runner, for a target's firmware")
