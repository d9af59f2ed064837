"""From a module to a lowered program and its expected outputs: one route per kind of target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from executorch.exir import EdgeProgramManager

from harness.errors import ExportError
from harness.export import lower, lower_ethosu, oracle, tosa_oracle
from harness.export.lower_ethosu import Lowered
from harness.export.npu_options import NpuOptions, is_ethos_u, resolve
from harness.export.operator_check import check_operators
from harness.export.program import OperatorAgreement
from harness.export.request import ExportRequest
from harness.export.samples import in_layout_of
from harness.export.source import Sample
from harness.export.stage import stage
from harness.export.tosa_oracle import Answer, DelegateCall


@dataclass(frozen=True)
class RawDelegate:
    """What an NPU is given, the graph it was compiled from, and its work on each input set."""

    backend: str
    blob: bytes
    tosa: bytes
    calls: tuple[DelegateCall, ...]
    operators: OperatorAgreement


@dataclass(frozen=True)
class Rival:
    """Another opinion on the outputs."""

    name: str
    outputs: list[Sample]


@dataclass(frozen=True)
class Made:
    edge: EdgeProgramManager
    oracle: str
    outputs: list[Sample]
    npu: NpuOptions | None = None
    rivals: tuple[Rival, ...] = ()
    delegates: tuple[RawDelegate, ...] = ()


Route = Callable[
    [ExportRequest, dict[str, str], torch.nn.Module, Sequence[Sample], list[Sample]], Made
]


def route(request: ExportRequest) -> Route:
    """Raises UsageError for a target that there is no compiler for, before any work."""
    if is_ethos_u(request.compile_target):
        resolve(request.compile_target, request.system_config, request.memory_mode)
        return _ethos_u
    lower.target_config(request.compile_target)
    return _cortex_m


def _cortex_m(
    request: ExportRequest,
    versions: dict[str, str],
    module: torch.nn.Module,
    calibration: Sequence[Sample],
    sets: list[Sample],
) -> Made:
    config = lower.target_config(request.compile_target)
    with stage(request, "capture"):
        captured = lower.capture(module, sets[0])
    with stage(request, "quantise"):
        quantised = lower.quantise(captured, calibration)
    with stage(request, "lower"):
        edge = lower.to_cortex_m(quantised, sets[0], config)
    with stage(request, "oracle"):
        return Made(edge, oracle.oracle_name(versions), oracle.run_oracle(edge, sets))


def _ethos_u(
    request: ExportRequest,
    versions: dict[str, str],
    module: torch.nn.Module,
    calibration: Sequence[Sample],
    sets: list[Sample],
) -> Made:
    options = resolve(request.compile_target, request.system_config, request.memory_mode)
    spec = lower_ethosu.compile_spec(options)
    calibration = [in_layout_of(sets[0], sample) for sample in calibration]
    sets = [in_layout_of(sets[0], sample) for sample in sets]
    with stage(request, "capture"):
        captured = lower_ethosu.capture(module, sets[0])
        real = tosa_oracle.run_eagerly(captured, sets)
    with stage(request, "quantise"):
        quantised = lower_ethosu.quantise(captured, calibration, spec)
    with stage(request, "lower"):
        lowered = lower_ethosu.to_ethos_u(quantised, sets[0], spec)
    with stage(request, "oracle"):
        answers = tosa_oracle.run_oracle(lowered.edge, lowered.graphs, sets)
        eager = tosa_oracle.run_eagerly(quantised, sets)
        delegates = tuple(_delegates(lowered, answers))
    if not delegates:
        raise ExportError(
            f"nothing of model '{request.model.name}' is left to the {request.compile_target}: "
            "ExecuTorch keeps all of its operators on the CPU",
            model=request.model.name,
            compile_target=request.compile_target,
        )
    return Made(
        lowered.edge,
        tosa_oracle.oracle_name(versions),
        [answer.outputs for answer in answers],
        options,
        (Rival("quantised eager model", eager), Rival("float model", real)),
        delegates,
    )


def _delegates(lowered: Lowered, answers: Sequence[Answer]) -> Iterator[RawDelegate]:
    for number, module in enumerate(tosa_oracle.delegates(lowered.edge)):
        blob = bytes(module.processed_bytes)
        tosa = lowered.graphs[blob]
        calls = tuple(answer.calls[number] for answer in answers)
        operators = check_operators(module, tosa, calls)
        yield RawDelegate(module.backend_id, blob, tosa, calls, operators)
