"""Requires that a lowered program computes what the quantised model does, and explains it if not.

The explanation is tested: the stages of the lowering are run one after the other to name the first
whose result differs, and a setting is advised if the model lowered with it agrees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from executorch.exir import EdgeProgramManager

from harness.export.child.by_design import Kernels
from harness.export.child.expected_outputs import ProgramRun, run_program
from harness.export.child.partition import layer_of, place
from harness.export.child.samples import Sample
from harness.export.child.witness import Agreement, Differs, require_agreement
from harness.export.failures import LoweringDiffers
from harness.export.request import ExportRequest
from harness.firmware.source import Arithmetic

# For the nodes of an operator in the quantised model: the name of each stage that the operator goes
# through, and its program where that can be run.
Stages = Callable[[frozenset[str]], Iterator[tuple[str, EdgeProgramManager | None]]]
# The model lowered with another setting, and the setting's text.
Other = Callable[[], tuple[str, torch.fx.GraphModule, EdgeProgramManager, Sequence[Sample]]]


def require_witness(
    request: ExportRequest,
    quantised: torch.fx.GraphModule,
    sets: Sequence[Sample],
    runs: Sequence[ProgramRun],
    stages: Stages,
    other: Other | None = None,
) -> Agreement:
    """Compare the lowered program with the quantised model. Raises LoweringDiffers.

    ``runs``: of the lowered program."""
    try:
        return _compared(quantised, sets, runs)
    except Differs as differs:
        main = differs.regions[0].main
        raise LoweringDiffers(
            request,
            [" and ".join(region.titles) for region in differs.regions],
            layer_of(main),
            place(main, request.home),
            (differs.lsb, differs.within, differs.element, differs.input_set),
            _made_by(quantised, sets, stages(differs.regions[0].node_names)),
            _what_helps(other),
        ) from differs


def _compared(
    quantised: torch.fx.GraphModule, sets: Sequence[Sample], runs: Sequence[ProgramRun]
) -> Agreement:
    return require_agreement(
        quantised, sets, [run.computed for run in runs], [run.outputs for run in runs]
    )


def _agrees(
    quantised: torch.fx.GraphModule, edge: EdgeProgramManager, sets: Sequence[Sample]
) -> bool:
    kernels = Kernels("", Arithmetic.PYTHON)
    try:
        _compared(quantised, sets, run_program(edge, sets, kernels, {}, quantised))
    except Differs:
        return False
    return True


def _made_by(
    quantised: torch.fx.GraphModule,
    sets: Sequence[Sample],
    stages: Iterator[tuple[str, EdgeProgramManager | None]],
) -> str:
    """Return the first stage whose program differs, or the last, whose cannot be run."""
    names = []
    for name, edge in stages:
        names.append(name)
        if edge is not None and not _agrees(quantised, edge, sets):
            break
    return names[-1]


def _what_helps(other: Other | None) -> str:
    if other is None:
        return ""
    try:
        setting, quantised, edge, sets = other()
        return setting if _agrees(quantised, edge, sets) else ""
    except Exception:  # foreign code: any exception is possible, and then it does not help
        return ""
