"""Exports one model from start to end, by one route per kind of target."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np
import torch
from executorch.exir import EdgeProgramManager

from harness.core.errors import HarnessError
from harness.export.child import lower, lower_cpu, lower_ethosu, oracle
from harness.export.child.agreement import Rival, agreements, check_operators
from harness.export.child.by_design import Kernels, run_with
from harness.export.child.exported import Description, Exported, RawDelegate, describe
from harness.export.child.lower import Quantised
from harness.export.child.lower_ethosu import Lowered
from harness.export.child.oracle import Answer
from harness.export.child.samples import Sample, draw, in_layout_of, observed_ranges, shipped_ranges
from harness.export.child.sensitivity import randomise_weights, require_sensitivity, try_out
from harness.export.child.source import LoadedModel, input_files, load_model
from harness.export.failures import FileRaised, NothingDelegated, StageFailed
from harness.export.program import NamedDifference, RawSet, TensorSpec
from harness.export.request import LOWERINGS, ExportRequest, NpuOptions, is_ethos_u
from harness.firmware.source import Arithmetic

CALIBRATION_SAMPLES = 16
INPUT_SETS = 3

OnStage = Callable[[str], None]

_LOAD, _RUN = "load", "run as it is"
_BEFORE_EXPORT = (_LOAD, _RUN)  # a user's model alone, in PyTorch


def export(
    on_stage: OnStage, request: ExportRequest, versions: dict[str, str], directory: str
) -> dict[str, str]:
    """Writes the program into ``directory``. The files that the model was made of besides its own,
    with their sha256, by name relative to the model's folder.

    Raises ExportError (StageFailed for all that torch and the user's file raise), UsageError.
    """
    started = time.time_ns()
    model, exported = export_model(request, versions, on_stage)
    exported.write(Path(directory)).save()
    if request.model.file is None:
        return {}
    return input_files(request.model.file, model.input_files, started)


def export_model(
    request: ExportRequest, versions: dict[str, str], on_stage: OnStage = lambda _: None
) -> tuple[LoadedModel, Exported]:
    """The model and what an export makes of it, in memory."""
    stage = _Stages(request, on_stage)
    lower_model = _route(request)
    with _reproducible(request.seed):
        with stage(_LOAD):
            model = load_model(request.model)
        with stage("prepare inputs"):
            calibration, sets = _prepare(request, model)
        constant: tuple[int, ...] = ()
        if request.model.is_user_file:
            with stage(_RUN):
                constant = try_out(request.model.name, model.module, sets)
        with _suspecting(constant):
            made = lower_model(_Work(request, versions, model.module, calibration, sets, stage))
            with stage("serialise"):
                program = lower.to_program(made.edge)
                names = tuple(made.edge.exported_program().graph_signature.user_inputs)
                description = describe(program, names).with_steps(made.steps)
                differing = made.by_python or [()] * len(sets)
                raw = tuple(map(_raw_set, repeat(description), sets, made.outputs, differing))
                pte = bytes(program.buffer)
    require_sensitivity(request.model.name, raw)
    with stage("compare the oracles"):
        opinions = agreements(description.outputs, made.outputs, made.rivals)
    return model, Exported(
        request,
        versions,
        pte,
        description,
        made.oracle,
        raw,
        made.npu,
        opinions,
        made.delegates,
        made.by_design,
        made.not_reproducible,
    )


class _Stages:
    """Announces each stage, and gives whatever torch, ExecuTorch or the user's file raises in it a
    name and a place."""

    def __init__(self, request: ExportRequest, on_stage: OnStage) -> None:
        self._request = request
        self._on_stage = on_stage

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self._on_stage(name)
        try:
            yield
        except HarnessError:
            raise
        except (Exception, SystemExit) as error:  # foreign code: any exception is possible
            own = name in _BEFORE_EXPORT and self._request.model.is_user_file
            raise (FileRaised if own else StageFailed)(self._request, name, error) from error


@contextmanager
def _suspecting(constant: tuple[int, ...]) -> Iterator[None]:
    try:
        yield
    except StageFailed as error:
        error.suspect(constant)
        raise


@dataclass(frozen=True)
class _Work:
    """What a route lowers."""

    request: ExportRequest
    versions: dict[str, str]
    module: torch.nn.Module
    calibration: Sequence[Sample]
    sets: list[Sample]
    stage: _Stages

    def in_example_layout(self) -> tuple[list[Sample], list[Sample]]:
        """Calibration samples and input sets in the memory layout of the first set."""
        example = self.sets[0]
        return (
            [in_layout_of(example, sample) for sample in self.calibration],
            [in_layout_of(example, sample) for sample in self.sets],
        )


def _prepare(request: ExportRequest, model: LoadedModel) -> tuple[tuple[Sample, ...], list[Sample]]:
    """Calibration samples and input sets; a shipped model gets its live weights here."""
    generator = np.random.default_rng(request.seed)
    if not request.model.is_user_file:
        ranges = shipped_ranges(model.examples)
        randomise_weights(model.module, ranges, generator)
        calibration = tuple(
            draw(ranges, generator, full=n == 0) for n in range(CALIBRATION_SAMPLES)
        )
        return calibration, [draw(ranges, generator, full=n == 0) for n in range(INPUT_SETS)]
    ranges = observed_ranges([model.examples, *model.calibration])
    calibration = model.calibration or (
        model.examples,
        *(draw(ranges, generator) for _ in range(CALIBRATION_SAMPLES - 1)),
    )
    return calibration, [
        model.examples,
        *(draw(ranges, generator) for _ in range(INPUT_SETS - 1)),
    ]


def _raw_set(described: Description, inputs: Sample, outputs: Sample, by_python: Sample) -> RawSet:
    """``by_python``: the outputs again where Python's definitions differ, or nothing."""

    def raw(sample: Sample, specs: Sequence[TensorSpec]) -> tuple[bytes, ...]:
        return tuple(oracle.method_bytes(t, s) for t, s in zip(sample, specs, strict=True))

    return RawSet(
        raw(inputs, described.inputs),
        raw(outputs, described.outputs),
        raw(by_python, described.outputs) if by_python else (),
    )


@dataclass(frozen=True)
class _Made:
    edge: EdgeProgramManager
    oracle: str
    outputs: list[Sample]
    npu: NpuOptions | None = None
    rivals: tuple[Rival, ...] = ()
    delegates: tuple[RawDelegate, ...] = ()
    by_design: tuple[NamedDifference, ...] = ()
    by_python: Sequence[Sample] = ()  # the outputs by Python's definitions, when these differ
    steps: Sequence[float | None] = ()  # one LSB of outputs that the program does not dequantise
    not_reproducible: str = ""


_Route = Callable[[_Work], _Made]


def _route(request: ExportRequest) -> _Route:
    """Raises UsageError for a target that there is no compiler for, before any work."""
    if is_ethos_u(request.compile_target):
        _ = request.npu
        return _ethos_u
    if request.compile_target in LOWERINGS:
        return _cpu
    lower.target_config(request.compile_target)
    return _cortex_m


def _cortex_m(work: _Work) -> _Made:
    request, sets, stage = work.request, work.sets, work.stage
    config = lower.target_config(request.compile_target)
    with stage("capture"):
        captured = lower.capture(work.module, sets[0])
    with stage("quantise"):
        quantised = lower.quantise(captured, work.calibration, request.calibration)
    with stage("lower"):
        edge = lower.to_cortex_m(quantised.module, sets[0], config)
    with stage("compute the expected outputs"):
        kernels, python = _both(request)
        expected = run_with(kernels, edge, sets)
        return _Made(
            edge,
            oracle.cortex_m_name(work.versions),
            expected,
            by_design=kernels.met,
            by_python=run_with(python, edge, sets) if kernels.met else (),
            not_reproducible=quantised.not_reproducible,
        )


def _cpu(work: _Work) -> _Made:
    request, stage = work.request, work.stage
    lowering = LOWERINGS[request.compile_target]
    calibration, sets = work.in_example_layout()
    with stage("capture"):
        captured = lower.capture_as_written(work.module, sets[0])
        real = oracle.run_eagerly(captured, sets)
    quantised = Quantised(captured, "")
    rivals: tuple[Rival, ...] = ()
    if lowering.quantised:
        with stage("quantise"):
            quantised = lower_cpu.quantise(captured, calibration, request.calibration)
            rivals = (Rival("float model", real),)
    with stage("lower"):
        edge = lower_cpu.to_cpu(quantised.module, sets[0], lowering)
    if lowering.xnnpack and not oracle.delegates(edge):
        raise NothingDelegated(request.model.name, request.compile_target)
    with stage("compute the expected outputs"):
        expected = oracle.run_eagerly(quantised.module, sets) if lowering.quantised else real
        return _Made(
            edge,
            oracle.pytorch_name(work.versions, quantised=lowering.quantised),
            expected,
            rivals=rivals,
            steps=lower_cpu.steps(quantised.module, expected),
            not_reproducible=quantised.not_reproducible,
        )


def _both(request: ExportRequest) -> tuple[Kernels, Kernels]:
    """ExecuTorch's C++ kernels, and its Python definitions."""
    of = request.compile_target
    return Kernels(of, Arithmetic.CMSIS_NN), Kernels(of, Arithmetic.PYTHON)


def _ethos_u(work: _Work) -> _Made:
    request, stage = work.request, work.stage
    options = request.npu
    spec = lower_ethosu.compile_spec(options)
    calibration, sets = work.in_example_layout()
    with stage("capture"):
        captured = lower.capture_as_written(work.module, sets[0])
        real = oracle.run_eagerly(captured, sets)
    with stage("quantise"):
        quantised = lower_ethosu.quantise(captured, calibration, spec, request.calibration)
    with stage("lower"):
        lowered = lower_ethosu.to_ethos_u(
            quantised.module, sets[0], spec, direct_drive=options.direct_drive
        )
    with stage("compute the expected outputs"):
        kernels, python = _both(request)
        answers = oracle.run_tosa(lowered.edge, lowered.graphs, sets, kernels)
        by_python = (
            oracle.run_tosa(lowered.edge, lowered.graphs, sets, python, answers)
            if kernels.met
            else []
        )
        eager = oracle.run_eagerly(quantised.module, sets)
        delegates = tuple(_delegates(lowered, answers))
    if not delegates:
        raise NothingDelegated(request.model.name, request.compile_target)
    return _Made(
        lowered.edge,
        oracle.tosa_name(work.versions),
        [answer.outputs for answer in answers],
        options,
        (Rival("quantised eager model", eager), Rival("float model", real)),
        delegates,
        kernels.met,
        [answer.outputs for answer in by_python],
        not_reproducible=quantised.not_reproducible,
    )


def _delegates(lowered: Lowered, answers: Sequence[Answer]) -> Iterator[RawDelegate]:
    for number, module in enumerate(oracle.delegates(lowered.edge)):
        blob = bytes(module.processed_bytes)
        tosa = lowered.graphs[blob]
        calls = tuple(answer.calls[number] for answer in answers)
        operators = check_operators(module, tosa, calls)
        yield RawDelegate(module.backend_id, blob, tosa, calls, operators)


@contextmanager
def _reproducible(seed: int) -> Iterator[None]:
    """Seeds, one thread and torch's own kernels. The garbage collector is paused: tracing makes
    millions of objects that live to the end, and collecting takes a tenth of the time."""
    gc.disable()
    torch.set_num_threads(1)
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    try:
        with torch.backends.mkldnn.flags(enabled=False):
            yield
    finally:
        gc.enable()
        gc.collect()
