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
from torchao.quantization.pt2e.quantizer import Quantizer

from harness.config.models import Layout, Quantization
from harness.core.errors import HarnessError
from harness.export.child import lower
from harness.export.child.accuracy import agreements, measured
from harness.export.child.by_design import Kernels
from harness.export.child.expected_outputs import (
    ProgramRun,
    delegates,
    run_eagerly,
    run_program,
    run_with_runtime,
)
from harness.export.child.exported import (
    LoweredModel,
    RawDelegate,
    raw_sets,
    serialise,
    write_program,
)
from harness.export.child.partition import CallSites, ReportingPartitioner, culprit_of, origins_of
from harness.export.child.prepared import require_capture, require_preparation
from harness.export.child.samples import (
    Sample,
    channels_last,
    draw,
    equal,
    in_layout_of,
    observed_ranges,
    shipped_ranges,
    spanning,
)
from harness.export.child.sensitivity import randomise_weights, require_sensitivity, try_out
from harness.export.child.source import LoadedModel, input_files, load_model
from harness.export.child.tosa_graph import nearest, read_graph
from harness.export.child.witness import require_witness
from harness.export.estimates import Estimate
from harness.export.failures import DeadModelError, FileRaised, NothingDelegated, StageFailed
from harness.export.graph_values import Row
from harness.export.request import LOWERINGS, CpuLowering, ExportRequest, is_ethos_u
from harness.firmware.source import Arithmetic
from harness.system.files import DiskError, disk_errors, disk_full

CALIBRATION_SAMPLES = 16
INPUT_SETS = 3
_IMAGE = 4  # dimensions
_SEED = 0  # of weights and inputs: equal requests give equal bytes

OnStage = Callable[[str], None]

_LOAD, _RUN = "load", "run as it is"
_BEFORE_EXPORT = (_LOAD, _RUN)  # a user's model alone, in PyTorch


def export(
    on_stage: OnStage, request: ExportRequest, versions: dict[str, str], directory: str
) -> dict[str, str]:
    """Write the program into ``directory``. Returns what ``input_files`` does.

    Raises ExportError (StageFailed for exceptions of torch and the user's file), UsageError."""
    started = time.time_ns()
    stage = _Stages(request, on_stage)
    lower_model = _route(request)
    with _reproducible():
        with stage(_LOAD):
            model = load_model(request.model)
        with stage("prepare inputs"):
            calibration, samples, own = _prepare(request, model)
        constant: tuple[int, ...] = ()
        tried: list[Sample] = []
        if request.model.is_user_file:
            with stage(_RUN):
                name, module = request.model.name, model.module
                constant, tried = try_out(name, module, samples, model.constant)
        work = _Work(request, versions, model.module, calibration, samples, own, stage, tried)
        try:
            lowered = lower_model(work)
            with stage("serialise"):
                pte, program = serialise(Path(directory), request, versions, lowered)
                sets = raw_sets(program, samples, lowered)
        except StageFailed as error:
            error.suspect(constant)
            raise
    with stage("compare the oracles"):
        oracles = agreements(program.outputs, lowered.outputs, lowered.others)
        bits = 16 if request.quantization is Quantization.A16W8 else 8
        accuracy = measured(program.outputs, bits, *lowered.evaluated)
    try:
        constant = require_sensitivity(request.model.name, sets, model.constant)
    except DeadModelError as error:
        if request.model.is_user_file:  # it was alive when it was tried out
            error.blame_quantisation([each.sqnr_db for each in accuracy])
        raise
    remarks = model.remarks(constant)
    program = replace(program, oracles=oracles, accuracy=accuracy, remarks=remarks)
    with disk_errors("writing the program"):
        write_program(program, pte, sets, lowered)
    if request.model.file is None:
        return {}
    return input_files(request.model.file, model, started, Path(directory))


class _Stages:
    """Announces each stage, and adds its name and place to exceptions.

    They are those of torch, ExecuTorch and the user's file."""

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
            if name in _BEFORE_EXPORT and self._request.model.is_user_file:
                raise FileRaised(self._request, name, error) from error
            culprit = culprit_of(self._request, error)
            raise StageFailed(self._request, name, error, culprit) from error


@dataclass(frozen=True)
class _Work:
    """The input of a route. ``tried``: the outputs of a user's model for the input sets."""

    request: ExportRequest
    versions: dict[str, str]
    module: torch.nn.Module
    calibration: Sequence[Sample]
    sets: list[Sample]
    evaluation: Sequence[Sample]
    stage: _Stages
    tried: Sequence[Sample] = ()

    def in_layout(self, change: Callable[[Sample], Sample]) -> _Work:
        """Return a copy with its samples and input sets in another memory format."""
        return replace(
            self,
            calibration=[*map(change, self.calibration)],
            sets=[*map(change, self.sets)],
            evaluation=[*map(change, self.evaluation)],
        )

    @property
    def all_samples(self) -> list[Sample]:
        """The input sets, then what only the accuracy is measured with."""
        return [*self.sets, *self.evaluation]


def _prepare(
    request: ExportRequest, model: LoadedModel
) -> tuple[tuple[Sample, ...], list[Sample], tuple[Sample, ...]]:
    """Calibration samples, input sets, and the user's other samples, for the accuracy.

    A shipped model gets its live weights here."""
    generator = np.random.default_rng(_SEED)
    if not request.model.is_user_file:
        ranges = shipped_ranges(model.examples)
        randomise_weights(model.module, ranges, generator)
        drawn = [draw(ranges, generator, whole_range=n == 0) for n in range(CALIBRATION_SAMPLES)]
        calibration = spanning(drawn, ranges)
        sets = [draw(ranges, generator, whole_range=n == 0) for n in range(INPUT_SETS)]
        return calibration, sets, ()
    own = model.evaluation or model.calibration
    ranges = observed_ranges([model.examples, *model.calibration])
    calibration = model.calibration or (
        model.examples,
        *spanning([draw(ranges, generator) for _ in range(CALIBRATION_SAMPLES - 1)], ranges),
    )
    others = [sample for sample in own if not equal(sample, model.examples)]
    sets = [model.examples, *others[: INPUT_SETS - 2]]
    rest = tuple(others[len(sets) - 1 :])
    sets += [draw(ranges, generator) for _ in range(INPUT_SETS - len(sets))]
    return calibration, sets, rest


_Route = Callable[[_Work], LoweredModel]


def _route(request: ExportRequest) -> _Route:
    """Raise UsageError for a target without a compiler, before any work."""
    if is_ethos_u(request.compile_target):
        _ = request.npu
        return _ethos_u
    if request.compile_target in LOWERINGS:
        return _cpu
    lower.target_config(request.compile_target)
    return _cortex_m


def _cortex_m(work: _Work) -> LoweredModel:
    request, stage = work.request, work.stage
    lowered = _lower_cortex_m(work, request.layout)
    with stage("compute the expected outputs"):
        runs, python_outputs, by_design = _both_ways(request, lowered, {})
    with stage("compare with the quantised model"):
        config = lower.target_config(request.compile_target)
        other = partial(_explicitly, work) if request.layout is Layout.CHANNELS_LAST else None
        sets = lowered.work.sets
        agreement = require_witness(
            request,
            lowered.quantised,
            sets,
            runs,
            partial(lower.cortex_m_stages, lowered.quantised, sets[0], config, request.layout),
            other,
        )
    return LoweredModel(
        lowered.edge,
        f"cortex_m operators (executorch {work.versions['executorch']})",
        [run.outputs for run in runs],
        lowered.by_other_oracles(),
        by_design=by_design,
        python_outputs=python_outputs,
        not_reproducible=lowered.why,
        intermediates=_values(runs),
        witness=agreement.witnessed,
        evaluated=_evaluated(lowered, runs, {}),
        origins=origins_of(lowered.edge, lowered.quantised, request, {}),
    )


@dataclass(frozen=True)
class _Quantised:
    """A model on its way: quantised, and lowered.

    ``real``: the float model's outputs for all samples of ``work``; ``why``: the program is not
    reproducible."""

    work: _Work
    quantised: torch.fx.GraphModule
    edge: EdgeProgramManager
    real: Sequence[Sample]
    why: str

    def by_other_oracles(self) -> dict[str, Sequence[Sample]]:
        eager = run_eagerly(self.quantised, self.work.sets)
        real = self.real[: len(self.work.sets)]
        return {"quantised eager model": eager, "float model": real}


def _lower_cortex_m(work: _Work, layout: Layout) -> _Quantised:
    request, stage = work.request, work.stage
    module = work.module
    change: Callable[[Sample], Sample] = partial(in_layout_of, work.sets[0])
    if layout is Layout.CHANNELS_LAST:
        change = channels_last
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.dim() == _IMAGE:  # a Conv3d's weight has no such format
                # not contiguous(), which leaves the strides of a weight of 1x1 as they are
                tensor.data = tensor.data.to(memory_format=torch.channels_last)
    work = work.in_layout(change)
    with stage("capture"):
        captured, real = _capture(work)
    with stage("quantise"):
        quantizer = lower.cortex_m_quantizer(request.quantization, layout)
        quantised, why = _quantise(work, captured, quantizer, real)
    with stage("lower"):
        config = lower.target_config(request.compile_target)
        edge = lower.to_cortex_m(quantised, work.sets[0], config, layout)
    return _Quantised(work, quantised, edge, real, why)


def _capture(work: _Work) -> tuple[torch.fx.GraphModule, list[Sample]]:
    """Return the model as a graph, and its outputs for all samples. Raises CaptureDiffers."""
    captured = lower.capture(work.module, work.sets[0])
    real = run_eagerly(captured, work.all_samples)
    require_capture(work.request, work.module, captured, work.sets, work.tried, real)
    return captured, real


def _quantise(
    work: _Work, captured: torch.fx.GraphModule, quantizer: Quantizer, real: Sequence[Sample]
) -> tuple[torch.fx.GraphModule, str]:
    """``real``: the captured model's outputs. Returns what ``lower.quantise`` does."""
    request, sets = work.request, work.sets
    again = partial(lower.capture, work.module, sets[0])
    check = partial(require_preparation, request, again, quantizer, sets, real)
    return lower.quantise(captured, quantizer, work.calibration, request.calibration, check)


def _explicitly(work: _Work) -> tuple[str, torch.fx.GraphModule, EdgeProgramManager, list[Sample]]:
    other = _lower_cortex_m(work, Layout.EXPLICIT)
    return "`layout: explicit`", other.quantised, other.edge, other.work.sets


def _evaluated(
    lowered: _Quantised, runs: Sequence[ProgramRun], graphs: Mapping[bytes, bytes]
) -> tuple[Sequence[Sample], Sequence[Sample]]:
    """Return the outputs of the float model and of the program, for all samples."""
    work = lowered.work
    kernels = Kernels(work.request.compile_target, Arithmetic.CMSIS_NN)
    more = run_program(lowered.edge, work.evaluation, kernels, graphs) if work.evaluation else []
    return lowered.real, [run.outputs for run in (*runs, *more)]


def _values(runs: Sequence[ProgramRun]) -> frozenset[Row]:
    return frozenset(row for run in runs for row in run.values)


def _both_ways(
    request: ExportRequest, lowered: _Quantised, graphs: Mapping[bytes, bytes]
) -> tuple[list[ProgramRun], list[Sample], tuple[str, ...]]:
    """Run the program with ExecuTorch's C++ kernels on the CPU.

    If its Python definitions differ, also return the outputs by these, and the differences."""
    edge, sets = lowered.edge, lowered.work.sets
    kernels = Kernels(request.compile_target, Arithmetic.CMSIS_NN)
    runs = run_program(edge, sets, kernels, graphs, lowered.quantised)
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
    work = work.in_layout(partial(in_layout_of, work.sets[0]))
    with stage("capture"):
        captured, real = _capture(work)
    quantised, why = captured, ""
    if lowering.quantised:
        with stage("quantise"):
            quantised, why = _quantise(work, captured, lower.cpu_quantizer(), real)
    with stage("lower"):
        edge = lower.to_cpu(quantised, work.sets[0], lowering)
        program = lower.to_program(edge)
    if lowering.xnnpack and not delegates(edge):
        raise NothingDelegated(request.model.name, request.compile_target)
    lowered = _Quantised(work, quantised, edge, real, why)
    with stage("compute the expected outputs"):
        computed = run_with_runtime(bytes(program.buffer), work.all_samples)
        runs = [ProgramRun(outputs, ()) for outputs in computed[: len(work.sets)]]
        if not lowering.xnnpack:
            values = run_program(edge, work.sets, Kernels("", Arithmetic.PYTHON), {}, quantised)
            runs = [replace(r, computed=v.computed) for r, v in zip(runs, values, strict=True)]
    with stage("compare with the quantised model"):
        stages = partial(_cpu_stages, quantised, work.sets[0], lowering)
        agreement = require_witness(request, quantised, work.sets, runs, stages)
    return LoweredModel(
        edge,
        f"ExecuTorch's runtime on this machine (executorch {work.versions['executorch']})",
        [run.outputs for run in runs],
        lowered.by_other_oracles() if lowering.quantised else {"float model": real[: len(runs)]},
        output_scales=lower.output_steps(quantised, computed),
        not_reproducible=why,
        program=program,
        witness=agreement.witnessed,
        evaluated=(real, computed) if lowering.quantised else ((), ()),
        origins=origins_of(edge, quantised, request, {}),
    )


def _cpu_stages(
    quantised: torch.fx.GraphModule, example: Sample, lowering: CpuLowering, _origins: object
) -> Iterator[tuple[str, EdgeProgramManager | None]]:
    plain = replace(lowering, xnnpack=False)
    yield "ExecuTorch's to_edge", lower.to_cpu(quantised, example, plain)
    yield "XNNPACK" if lowering.xnnpack else "ExecuTorch's runtime", None


def _ethos_u(work: _Work) -> LoweredModel:
    request, stage, options = work.request, work.stage, work.request.npu
    spec = lower.compile_spec(options)
    work = work.in_layout(partial(in_layout_of, work.sets[0]))
    sets = work.sets
    with stage("capture"):
        captured, real = _capture(work)
        lines = CallSites.of(captured.graph, request.home)
    with stage("quantise"):
        quantizer = lower.ethos_u_quantizer(spec, request.quantization)
        quantised, why = _quantise(work, captured, quantizer, real)
    with stage("lower"):
        partitioner = ReportingPartitioner(spec, quantised.graph, lines)
        edge, graphs, estimates = lower.to_ethos_u(
            quantised, sets[0], partitioner, options, partial(stage.announce, "Vela")
        )
    if not delegates(edge):
        left = partitioner.refused()
        raise NothingDelegated(request.model.name, request.compile_target, left)
    lowered = _Quantised(work, quantised, edge, real, why)
    with stage("compute the expected outputs"):
        runs, python_outputs, by_design = _both_ways(request, lowered, graphs)
    with stage("compare with the quantised model"):
        stages = partial(_ethos_u_stages, quantised, sets[0])
        agreement = require_witness(request, quantised, sets, runs, stages)
    return LoweredModel(
        edge,
        f"TOSA reference model (tosa-tools {work.versions['tosa-tools']})",
        [run.outputs for run in runs],
        lowered.by_other_oracles(),
        tuple(_raw_delegates(edge, graphs, runs, estimates, agreement.layers)),
        by_design,
        python_outputs,
        not_reproducible=why,
        intermediates=_values(runs),
        witness=agreement.witnessed,
        evaluated=_evaluated(lowered, runs, graphs),
        delegation=partitioner.delegation,
        origins=origins_of(edge, quantised, request, partitioner.rules),
    )


def _ethos_u_stages(
    quantised: torch.fx.GraphModule, example: Sample, _origins: object
) -> Iterator[tuple[str, EdgeProgramManager | None]]:
    yield "ExecuTorch's to_edge", lower.to_cpu(quantised, example, LOWERINGS["portable-int8"])
    yield "ExecuTorch's passes to TOSA", None


def _raw_delegates(
    edge: EdgeProgramManager,
    graphs: Mapping[bytes, bytes],
    runs: Sequence[ProgramRun],
    estimates: Mapping[bytes, Estimate | None],
    layers: Mapping[str, str],
) -> Iterator[RawDelegate]:
    """``layers``: see Agreement."""
    for number, module in enumerate(delegates(edge)):
        blob = bytes(module.processed_bytes)
        parts = {name.partition(":"): layer for name, layer in layers.items()}
        own = {name: layer for (n, _, name), layer in parts.items() if n == str(number)}
        estimate = estimates[blob]
        if estimate is not None:
            estimate = estimate.with_layers(partial(nearest, read_graph(graphs[blob]), own))
        calls = tuple(run.calls[number] for run in runs)
        yield RawDelegate(blob, graphs[blob], calls, estimate)


@contextmanager
def _reproducible() -> Iterator[None]:
    """Seeds, one thread and torch's own kernels.

    The garbage collector is paused: tracing makes millions of objects that live to the end, and
    collecting takes a tenth of the time."""
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
