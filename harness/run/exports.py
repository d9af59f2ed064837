"""The Programs of cases: exported, or from the cache, by the wheel or by a checkout's exporter.

And the one that a command names: ``program_of``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.config.budgets import calibration_of
from harness.config.case import Case
from harness.config.loading import Target, load_target
from harness.config.models import find_model
from harness.core.errors import HarnessError, UsageError
from harness.export import batch, cache
from harness.export.batch import WHEEL_OPTIONS, ExportEvent, ExportOptions
from harness.export.process import ExportProcess
from harness.export.program import Program
from harness.export.request import ExportRequest
from harness.system.files import sha256_of
from harness.system.progress import Progress, silent

_EXPORT_WORDS = {"started": "exporting", "waiting": "waiting for another process's export"}


def export_cases(
    cases: Sequence[Case],
    targets: Mapping[str, Target],
    progress: Progress = silent,
    options: ExportOptions = WHEEL_OPTIONS,
    process: ExportProcess | None = None,
) -> list[Program | HarnessError]:
    """The Program of each case, or the error that prevented it, in order. ``targets`` by name;
    ``process`` as of ``batch.export``. Raises NotConfined."""

    def report(event: ExportEvent) -> None:
        if event.kind == "stage":
            progress(f"{event.request.model.name}: exporting ({event.notes[0]})")
        elif event.kind in _EXPORT_WORDS:
            text = "; ".join((_EXPORT_WORDS[event.kind], *event.notes))
            progress(f"{event.request.model.name}: {text}")

    requests = [request_of(case.model, targets[case.target]) for case in cases]
    results = batch.export(requests, report, options, process)
    return [result.error or result.unwrap() for result in results]


def cached_cases(
    cases: Sequence[Case], targets: Mapping[str, Target]
) -> list[Program | HarnessError] | None:
    """What ``export_cases`` would give by the wheel, where nothing is left to export; else None."""
    requests = [request_of(case.model, targets[case.target]) for case in cases]
    results = batch.all_cached(requests)
    return None if results is None else [result.error or result.unwrap() for result in results]


def program_of(subject: Path, target: str | None, command: str, progress: Progress) -> Program:
    """An exported ``.pte``, or a model that is exported for ``target``.

    Raises UsageError, which names ``command``, for a ``.pte`` whose TOSA graphs are not known, and
    without a target for a model.
    """
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
            f"{subject} is no .pte, and a model is exported for a target",
            hint="--target TARGET; `hil targets` lists them",
        )
    case = Case(target, str(subject))
    find_model(case.model)  # says at once when there is none
    (result,) = export_cases([case], {target: load_target(target)}, progress)
    if isinstance(result, HarnessError):
        raise result
    return result


def request_of(model: str, target: Target) -> ExportRequest:
    """What is exported of a model for a target. Raises Unknown, and TargetError for the model's
    settings."""
    source, calibration = find_model(model), calibration_of(model)
    if target.npu is None:
        return ExportRequest(source, target.compile_target, calibration=calibration)
    return ExportRequest(
        source,
        target.compile_target,
        calibration=calibration,
        system_config=target.npu.system_config,
        memory_mode=target.npu.memory_mode,
        direct_drive=target.direct_drive,
    )
