"""Tries what may help a program that the harness's own runner has no kernels for.

An advice that was tried says so, and what was not is called untried. Nothing is advised that
ExecuTorch's own libraries lack, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.config.case import Case
from harness.config.models import Layout
from harness.config.target import Target
from harness.core.errors import HarnessError
from harness.export import batch
from harness.export.batch import ExportOptions
from harness.export.program import Program
from harness.export.request import ExportRequest
from harness.firmware import operators
from harness.firmware.operators import RunnerLacks
from harness.firmware.source import FirmwareSource
from harness.run.subjects import request_of
from harness.system.paths import executorch_package, hil_command
from harness.system.progress import Progress

_LISTS = ("kernels/portable/functions.yaml", "kernels/quantized/quantized.yaml")
_LISTED = re.compile(r"^- (?:op|func): ([\w:.]+)", re.MULTILINE)


def require_possible(
    case: Case,
    target: Target,
    source: FirmwareSource,
    program: Program,
    options: ExportOptions,
    progress: Progress,
) -> None:
    """Raise as the function of ``firmware.operators``; a RunnerLacks has a hint of what helps."""
    try:
        operators.require_possible(source, target, program.pte_path, program.origins)
    except RunnerLacks as error:
        if program.exporter is None:  # only the wheel's exporter is tried
            progress(f"{case.id}: trying what helps a runner without {', '.join(error.operators)}")
            helps = [*_tried(case, target, source, options, progress)]
            error.hint = "; ".join(helps or [_untried(error.operators)])
        raise


def _untried(lacking: Sequence[str]) -> str:
    theirs = _of_executorch()
    if nowhere := [name for name in lacking if name not in theirs]:
        return (
            f"ExecuTorch's own kernel libraries have no {', '.join(nowhere)} either: write the "
            "layer in another way"
        )
    return (
        "untried: ExecuTorch's portable library has a kernel, which its own runner may be "
        "built with: --firmware executorch --executorch DIR"
    )


def _of_executorch() -> frozenset[str]:
    texts = ((executorch_package() / name).read_text("utf-8") for name in _LISTS)
    names = [name for text in texts for name in _LISTED.findall(text)]
    return frozenset(name if "::" in name else f"aten::{name}" for name in names)


def _tried(
    case: Case,
    target: Target,
    source: FirmwareSource,
    options: ExportOptions,
    progress: Progress,
) -> Iterator[str]:
    request = request_of(case.model, target)

    def exports(other: ExportRequest) -> tuple[str, ...] | None:
        """Return the operators of another program of the model; None: it cannot be exported."""
        (result,) = batch.export([other], progress, options)
        return None if result.error else result.unwrap().operators

    if target.compile_target.startswith("cortex-m") and request.layout is not Layout.EXPLICIT:
        found = exports(replace(request, layout=Layout.EXPLICIT))
        if found is not None and not source.without_kernel(found, target):
            yield (
                "`layout: explicit` in the model's YAML file (tried: the runner has every operator "
                "of that program)"
            )
    for name in ("portable-int8", "portable-fp32"):
        if name in target.lowerings:
            try:
                lowered = request_of(case.model, target.lowered(name))
            except HarnessError:  # a setting of the model's that this lowering does not have
                continue
            # An export for it runs the program with ExecuTorch's runtime on this machine.
            if exports(lowered) is not None:
                base = case.target.partition("@")[0]
                yield (
                    f"{hil_command()} run {base}@{name} {case.model} --firmware wheel (tried: "
                    "ExecuTorch's runtime runs that program here)"
                )
                return
