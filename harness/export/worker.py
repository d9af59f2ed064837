"""Exports one model from start to end, by one route per kind of target.

Everything that needs torch is reached from here.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import torch
from executorch.exir import EdgeProgramManager

from harness.build.arithmetic import Arithmetic
from harness.errors import HarnessError
from harness.export import lower, lower_cpu, lower_ethosu, oracle
from harness.export.agreement import Rival, agreements, check_operators
from harness.export.by_design import Kernels, run_with
from harness.export.exported import Description, Exported, RawDelegate, RawSet, describe
from harness.export.failures import FileRaised, NothingDelegated, StageFailed
from harness.export.live import make_live, require_life
from harness.export.lower_ethosu import Lowered
from harness.export.lowering import LOWERINGS
from harness.export.npu_options import NpuOptions, is_ethos_u
from harness.export.oracle import Answer
from harness.export.program import NamedDifference, TensorSpec
from harness.export.request import ExportRequest
from harness.export.samples import Sample, draw, in_layout_of, observed_ranges, shipped_ranges
from harness.export.source import LoadedModel, load_model
from harness.export.trial import try_out
from harness.shortcuts import shortcuts

CALIBRATION_SAMPLES = 16
INPUT_SETS = 3

_LOAD, _RUN = "load", "run as it is"
_BEFORE_EXPORT = (_LOAD, _RUN)  # a user's model alone, in PyTorch


def export_one(request: ExportRequest, versions: dict[str, str]) -> Exported:
    """Raises ExportError (StageFailed for all that torch and the user's file raise), UsageError."""
    make = _route(request)
    with shortcuts(), _reproducible(request.seed):
        with _stage(request, _LOAD):
            model = load_model(request.model)
        with _stage(request, "prepare inputs"):
            calibration, sets = _prepare(request, model)
        constant: tuple[int, ...] = ()
        if request.model.is_user_file:
            with _stage(request, _RUN):
                constant = try_out(request.model.name, model.module, sets)
        with _suspecting(constant):
            made = make(request, versions, model.module, calibration, sets)
            with _stage(request, "serialise"):
                program = lower.to_program(made.edge)
                names = tuple(made.edge.exported_program().graph_signature.user_inputs)
                described = describe(program, names).with_steps(made.steps)
                differing = made.by_python or [()] * len(sets)
                raw = tuple(map(_raw_set, repeat(described), sets, made.outputs, differing))
                pte = bytes(program.buffer)
    require_life(request.model.name, raw)
    with _stage(request, "compare the oracles"):
        opinions = agreements(described.outputs, made.outputs, made.rivals)
    return Exported(
        request,
        versions,
        pte,
        described,
        made.oracle,
        raw,
        made.npu,
        opinions,
        made.delegates,
        made.by_design,
    )


def _prepare(request: ExportRequest, model: LoadedModel) -> tuple[tuple[Sample, ...], list[Sample]]:
    """Calibration samples and input sets; a shipped model gets its live weights here."""
    generator = np.random.default_rng(request.seed)
    if not request.model.is_user_file:
        ranges = shipped_ranges(model.examples)
        make_live(model.module, ranges, generator)
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
    steps: Sequence[float | None] = ()  # of outputs that no quantiser of the program tells


_Route = Callable[
    [ExportRequest, dict[str, str], torch.nn.Module, Sequence[Sample], list[Sample]], _Made
]


def _route(request: ExportRequest) -> _Route:
    """Raises UsageError for a target that there is no compiler for, before any work."""
    if is_ethos_u(request.compile_target):
        _ = request.npu
        return _ethos_u
    if request.compile_target in LOWERINGS:
        return _cpu
    lower.target_config(request.compile_target)
    return _cortex_m


def _cortex_m(
    request: ExportRequest,
    versions: dict[str, str],
    module: torch.nn.Module,
    calibration: Sequence[Sample],
    sets: list[Sample],
) -> _Made:
    config = lower.target_config(request.compile_target)
    with _stage(request, "capture"):
        captured = lower.capture(module, sets[0])
    with _stage(request, "quantise"):
        quantised = lower.quantise(captured, calibration)
    with _stage(request, "lower"):
        edge = lower.to_cortex_m(quantised, sets[0], config)
    with _stage(request, "compute the expected outputs"):
        kernels, python = _both(request)
        expected = run_with(kernels, edge, sets)
        return _Made(
            edge,
            oracle.cortex_m_name(versions),
            expected,
            by_design=kernels.met,
            by_python=run_with(python, edge, sets) if kernels.met else (),
        )


def _cpu(
    request: ExportRequest,
    versions: dict[str, str],
    module: torch.nn.Module,
    calibration: Sequence[Sample],
    sets: list[Sample],
) -> _Made:
    lowering = LOWERINGS[request.compile_target]
    calibration = [in_layout_of(sets[0], sample) for sample in calibration]
    sets = [in_layout_of(sets[0], sample) for sample in sets]
    with _stage(request, "capture"):
        captured = lower.capture_as_written(module, sets[0])
        real = oracle.run_eagerly(captured, sets)
    what = captured
    rivals: tuple[Rival, ...] = ()
    if lowering.quantised:
        with _stage(request, "quantise"):
            what = lower_cpu.quantise(captured, calibration)
            rivals = (Rival("float model", real),)
    with _stage(request, "lower"):
        edge = lower_cpu.to_cpu(what, sets[0], lowering)
    if lowering.xnnpack and not oracle.delegates(edge):
        raise NothingDelegated(request.model.name, request.compile_target)
    with _stage(request, "compute the expected outputs"):
        expected = oracle.run_eagerly(what, sets) if lowering.quantised else real
        return _Made(
            edge,
            oracle.pytorch_name(versions, quantised=lowering.quantised),
            expected,
            rivals=rivals,
            steps=lower_cpu.steps(what, expected),
        )


def _both(request: ExportRequest) -> tuple[Kernels, Kernels]:
    """ExecuTorch's C++ kernels, and its Python definitions."""
    of = request.compile_target
    return Kernels(of, Arithmetic.CMSIS_NN), Kernels(of, Arithmetic.PYTHON)


def _ethos_u(
    request: ExportRequest,
    versions: dict[str, str],
    module: torch.nn.Module,
    calibration: Sequence[Sample],
    sets: list[Sample],
) -> _Made:
    options = request.npu
    spec = lower_ethosu.compile_spec(options)
    calibration = [in_layout_of(sets[0], sample) for sample in calibration]
    sets = [in_layout_of(sets[0], sample) for sample in sets]
    with _stage(request, "capture"):
        captured = lower.capture_as_written(module, sets[0])
        real = oracle.run_eagerly(captured, sets)
    with _stage(request, "quantise"):
        quantised = lower_ethosu.quantise(captured, calibration, spec)
    with _stage(request, "lower"):
        lowered = lower_ethosu.to_ethos_u(
            quantised, sets[0], spec, direct_drive=options.direct_drive
        )
    with _stage(request, "compute the expected outputs"):
        kernels, python = _both(request)
        answers = oracle.run_tosa(lowered.edge, lowered.graphs, sets, kernels)
        by_python = (
            oracle.run_tosa(lowered.edge, lowered.graphs, sets, python, answers)
            if kernels.met
            else []
        )
        eager = oracle.run_eagerly(quantised, sets)
        delegates = tuple(_delegates(lowered, answers))
    if not delegates:
        raise NothingDelegated(request.model.name, request.compile_target)
    return _Made(
        lowered.edge,
        oracle.tosa_name(versions),
        [answer.outputs for answer in answers],
        options,
        (Rival("quantised eager model", eager), Rival("float model", real)),
        delegates,
        kernels.met,
        [answer.outputs for answer in by_python],
    )


def _delegates(lowered: Lowered, answers: Sequence[Answer]) -> Iterator[RawDelegate]:
    for number, module in enumerate(oracle.delegates(lowered.edge)):
        blob = bytes(module.processed_bytes)
        tosa = lowered.graphs[blob]
        calls = tuple(answer.calls[number] for answer in answers)
        operators = check_operators(module, tosa, calls)
        yield RawDelegate(module.backend_id, blob, tosa, calls, operators)


@contextmanager
def _stage(request: ExportRequest, name: str) -> Iterator[None]:
    """Give whatever torch, ExecuTorch or the user's file raises a name and a place."""
    try:
        yield
    except HarnessError:
        raise
    except (Exception, SystemExit) as error:  # foreign code: any exception is possible
        own = name in _BEFORE_EXPORT and request.model.is_user_file
        raise (FileRaised if own else StageFailed)(request, name, error) from error


@contextmanager
def _suspecting(constant: tuple[int, ...]) -> Iterator[None]:
    try:
        yield
    except StageFailed as error:
        error.suspect(constant)
        raise


@contextmanager
def _reproducible(seed: int) -> Iterator[None]:
    """Seeds, one thread and torch's own kernels; the caller's state comes back afterwards.

    The garbage collector is paused: tracing makes millions of objects that live to the end,
    and looking through them again and again takes a tenth of the time. Afterwards it looks through
    those alone, and not through all of torch.
    """
    python_state, numpy_state = random.getstate(), np.random.get_state()
    threads, collecting = torch.get_num_threads(), gc.isenabled()
    gc.disable()
    gc.freeze()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]), torch.backends.mkldnn.flags(enabled=False):
            random.seed(seed)
            np.random.seed(seed % 2**32)
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)
        np.random.set_state(numpy_state)
        random.setstate(python_state)
        if collecting:
            gc.enable()
            gc.collect()
        gc.unfreeze()
