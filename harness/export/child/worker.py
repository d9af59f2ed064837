"""Exports one model from start to end; each kind of target has its own route."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from executorch.exir import EdgeProgramManager

from harness.config.models import Layout
from harness.core.errors import HarnessError
from harness.export.child import lower
from harness.export.child.agreement import CrossCheck, agreements, check_operators
from harness.export.child.by_design import Kernels
from harness.export.child.expected_outputs import ProgramRun, delegates, run_eagerly, run_program
from harness.export.child.exported import LoweredModel, RawDelegate, serialise, write_program
from harness.export.child.samples import (
    Sample,
    channels_last,
    draw,
    in_layout_of,
    observed_ranges,
    shipped_ranges,
)
from harness.export.child.sensitivity import randomise_weights, require_sensitivity, try_out
from harness.export.child.source import LoadedModel, input_files, load_model
from harness.export.failures import FileRaised, NothingDelegated, StageFailed
from harness.export.graph_values import Row
from harness.export.request import LOWERINGS, ExportRequest, is_ethos_u
from harness.firmware.source import Arithmetic
from harness.system.files import DiskError, disk_errors, disk_full

CALIBRATION_SAMPLES = 16
INPUT_SETS = 3
_SEED = 0  # of weights and inputs: equal requests give equal bytes

OnStage = Callable[[str], None]

_LOAD, _RUN = "load", "run as it is"
_BEFORE_EXPORT = (_LOAD, _RUN)  # a user's model alone, in PyTorch


def export(
    on_stage: OnStage, request: ExportRequest, versions: dict[str, str], directory: str
) -> dict[str, str]:
    """Writes the program into ``directory``. Returns what ``input_files`` does.

    Raises ExportError (StageFailed for exceptions of torch and the user's file), UsageError.
    """
    started = time.time_ns()
    stage = _Stages(request, on_stage)
    lower_model = _route(request)
    with _reproducible():
        with stage(_LOAD):
            model = load_model(request.model)
        with stage("prepare inputs"):
            calibration, samples = _prepare(request, model)
        constant: tuple[int, ...] = ()
        if request.model.is_user_file:
            with stage(_RUN):
                constant = try_out(request.model.name, model.module, samples, model.constant)
        with _suspecting(constant):
            work = _Work(request, versions, model.module, calibration, samples, stage)
            lowered = lower_model(work)
            with stage("serialise"):
                serialised = serialise(lowered)
                sets = serialised.raw_sets(samples, lowered)
    constant = require_sensitivity(request.model.name, sets, model.constant)
    remarks = model.remarks(constant)
    with stage("compare the oracles"):
        oracles = agreements(serialised.outputs, lowered.outputs, lowered.cross_checks)
    with disk_errors("writing the program"):
        write_program(
            Path(directory), request, versions, lowered, serialised, sets, oracles, remarks
        )
    if request.model.file is None:
        return {}
    return input_files(request.model.file, model, started, Path(directory))


class _Stages:
    """Announces each stage, and adds its name and place to the exceptions of torch, ExecuTorch and
    the user's file."""

    def __init__(self, request: ExportRequest, on_stage: OnStage) -> None:
        self._request = request
        self.announce = on_stage

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self.announce(name)
        try:
            yield
        except HarnessError:
            raise
        except (Exception, SystemExit) as error:  # foreign code: any exception is possible
            if full := disk_full(error):
                raise DiskError(f"exporting {self._request.model.name} ({name})", full) from error
            users = name in _BEFORE_EXPORT and self._request.model.is_user_file
            raise (FileRaised if users else StageFailed)(self._request, name, error) from error


@contextmanager
def _suspecting(constant: tuple[int, ...]) -> Iterator[None]:
    try:
        yield
    except StageFailed as error:
        error.suspect(constant)
        raise


@dataclass(frozen=True)
class _Work:
    """The input of a route."""

    request: ExportRequest
    versions: dict[str, str]
    module: torch.nn.Module
    calibration: Sequence[Sample]
    sets: list[Sample]
    stage: _Stages

    def in_layout(self, change: Callable[[Sample], Sample]) -> tuple[list[Sample], list[Sample]]:
        """CalibrationType samples and input sets."""
        return [*map(change, self.calibration)], [*map(change, self.sets)]


def _prepare(request: ExportRequest, model: LoadedModel) -> tuple[tuple[Sample, ...], list[Sample]]:
    """CalibrationType samples and input sets; a shipped model gets its live weights here."""
    generator = np.random.default_rng(_SEED)
    if not request.model.is_user_file:
        ranges = shipped_ranges(model.examples)
        randomise_weights(model.module, ranges, generator)
        calibration = tuple(
            draw(ranges, generator, whole_range=n == 0) for n in range(CALIBRATION_SAMPLES)
        )
        return calibration, [draw(ranges, generator, whole_range=n == 0) for n in range(INPUT_SETS)]
    ranges = observed_ranges([model.examples, *model.calibration])
    calibration = model.calibration or (
        model.examples,
        *(draw(ranges, generator) for _ in range(CALIBRATION_SAMPLES - 1)),
    )
    return calibration, [
        model.examples,
        *(draw(ranges, generator) for _ in range(INPUT_SETS - 1)),
    ]


_Route = Callable[[_Work], LoweredModel]


def _route(request: ExportRequest) -> _Route:
    """Raises UsageError for a target without a compiler, before any work."""
    if is_ethos_u(request.compile_target):
        _ = request.npu
        return _ethos_u
    if request.compile_target in LOWERINGS:
        return _cpu
    lower.target_config(request.compile_target)
    return _cortex_m


def _cortex_m(work: _Work) -> LoweredModel:
    request, stage = work.request, work.stage
    module = work.module
    change: Callable[[Sample], Sample] = partial(in_layout_of, work.sets[0])
    if request.layout is Layout.CHANNELS_LAST:
        module, change = module.to(memory_format=torch.channels_last), channels_last
    calibration, sets = work.in_layout(change)
    with stage("capture"):
        captured = lower.capture(module, sets[0])
    with stage("quantise"):
        quantizer = lower.cortex_m_quantizer(request.quantization, request.layout)
        quantised, why = lower.quantise(captured, quantizer, calibration, request.calibration)
    with stage("lower"):
        config = lower.target_config(request.compile_target)
        edge = lower.to_cortex_m(quantised, sets[0], config, request.layout)
    with stage("compute the expected outputs"):
        runs, python_outputs, by_design = _both_ways(request, edge, sets, {})
        return LoweredModel(
            edge,
            f"cortex_m operators (executorch {work.versions['executorch']})",
            [run.outputs for run in runs],
            by_design=by_design,
            python_outputs=python_outputs,
            not_reproducible=why,
            intermediates=_values(runs),
        )


def _values(runs: Sequence[ProgramRun]) -> frozenset[Row]:
    return frozenset(row for run in runs for row in run.values)


def _both_ways(
    request: ExportRequest,
    edge: EdgeProgramManager,
    sets: Sequence[Sample],
    graphs: Mapping[bytes, bytes],
) -> tuple[list[ProgramRun], list[Sample], tuple[str, ...]]:
    """Runs the program with ExecuTorch's C++ kernels on the CPU. If its Python definitions differ,
    also returns the outputs by these, and the differences."""
    kernels = Kernels(request.compile_target, Arithmetic.CMSIS_NN)
    runs = run_program(edge, sets, kernels, graphs)
    if not kernels.met:
        return runs, [], ()
    python = Kernels(request.compile_target, Arithmetic.PYTHON)
    python_outputs = run_program(edge, sets, python, graphs)
    values = _values([*runs, *python_outputs])
    runs = [replace(run, values=values) for run in runs]
    return runs, [run.outputs for run in python_outputs], kernels.met


def _cpu(work: _Work) -> LoweredModel:
    request, stage = work.request, work.stage
    lowering = LOWERINGS[request.compile_target]
    calibration, sets = work.in_layout(partial(in_layout_of, work.sets[0]))
    with stage("capture"):
        captured = lower.capture(work.module, sets[0])
        real = run_eagerly(captured, sets)
    quantised, why = captured, ""
    cross_checks: tuple[CrossCheck, ...] = ()
    if lowering.quantised:
        with stage("quantise"):
            quantizer = lower.cpu_quantizer()
            quantised, why = lower.quantise(captured, quantizer, calibration, request.calibration)
            cross_checks = (CrossCheck("float model", real),)
    with stage("lower"):
        edge = lower.to_cpu(quantised, sets[0], lowering)
    if lowering.xnnpack and not delegates(edge):
        raise NothingDelegated(request.model.name, request.compile_target)
    with stage("compute the expected outputs"):
        expected = run_eagerly(quantised, sets) if lowering.quantised else real
        model = "the quantised model" if lowering.quantised else "the model"
        return LoweredModel(
            edge,
            f"{model} in PyTorch (torch {work.versions['torch']})",
            expected,
            cross_checks=cross_checks,
            output_scales=lower.output_steps(quantised, expected),
            not_reproducible=why,
        )


def _ethos_u(work: _Work) -> LoweredModel:
    request, stage, options = work.request, work.stage, work.request.npu
    spec = lower.compile_spec(options)
    calibration, sets = work.in_layout(partial(in_layout_of, work.sets[0]))
    with stage("capture"):
        captured = lower.capture(work.module, sets[0])
        real = run_eagerly(captured, sets)
    with stage("quantise"):
        quantizer = lower.ethos_u_quantizer(spec, request.quantization)
        quantised, why = lower.quantise(captured, quantizer, calibration, request.calibration)
    with stage("lower"):
        edge, graphs = lower.to_ethos_u(
            quantised,
            sets[0],
            spec,
            partial(stage.announce, "Vela"),
            direct_drive=options.direct_drive,
        )
    with stage("compute the expected outputs"):
        runs, python_outputs, by_design = _both_ways(request, edge, sets, graphs)
        eager = run_eagerly(quantised, sets)
        work_of_npu = tuple(_raw_delegates(edge, graphs, runs))
    if not work_of_npu:
        raise NothingDelegated(request.model.name, request.compile_target)
    return LoweredModel(
        edge,
        f"TOSA reference model (tosa-tools {work.versions['tosa-tools']})",
        [run.outputs for run in runs],
        (CrossCheck("quantised eager model", eager), CrossCheck("float model", real)),
        work_of_npu,
        by_design,
        python_outputs,
        not_reproducible=why,
        intermediates=_values(runs),
    )


def _raw_delegates(
    edge: EdgeProgramManager, graphs: Mapping[bytes, bytes], runs: Sequence[ProgramRun]
) -> Iterator[RawDelegate]:
    for number, module in enumerate(delegates(edge)):
        blob = bytes(module.processed_bytes)
        tosa = graphs[blob]
        calls = tuple(run.calls[number] for run in runs)
        check_operators(module, tosa, calls)
        yield RawDelegate(blob, tosa, calls)


@contextmanager
def _reproducible() -> Iterator[None]:
    """Seeds, one thread and torch's own kernels. The garbage collector is paused: tracing makes
    millions of objects that live to the end, and collecting takes a tenth of the time."""
    gc.disable()
    torch.set_num_threads(1)
    random.seed(_SEED)
    np.random.seed(_SEED)
    torch.manual_seed(_SEED)
    try:
        with torch.backends.mkldnn.flags(enabled=False):
            yield
    finally:
        gc.enable()
        gc.collect()
