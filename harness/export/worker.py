"""Exports one model from start to end; everything that needs torch is reached from here."""

from __future__ import annotations

import gc
import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from harness.ethosu.blob import find_blobs
from harness.export import lower
from harness.export.agreement import agreements
from harness.export.describe import Description, describe
from harness.export.life import RawSet, require_life
from harness.export.live import make_live
from harness.export.npu_options import NpuOptions
from harness.export.oracle import method_bytes
from harness.export.program import Delegate, InputSet, OracleAgreement, Program, TensorSpec
from harness.export.request import ExportRequest
from harness.export.routes import RawDelegate, route
from harness.export.samples import draw, observed_ranges, shipped_ranges
from harness.export.source import LoadedModel, Sample, load_model
from harness.export.stage import stage
from harness.export.tosa_graph import Tensor, read_graph

CALIBRATION_SAMPLES = 16
INPUT_SETS = 3


@dataclass(frozen=True)
class Exported:
    """A finished export in memory; ``write`` is the only step that touches the disk."""

    request: ExportRequest
    versions: dict[str, str]
    pte: bytes
    description: Description
    oracle: str
    sets: tuple[RawSet, ...]
    npu: NpuOptions | None
    oracles: tuple[OracleAgreement, ...]
    delegates: tuple[RawDelegate, ...]

    def write(self, directory: Path) -> Program:
        (directory / "program.pte").write_bytes(self.pte)
        described, streams = self.description, find_blobs(self.pte)
        return Program(
            directory=directory,
            model=self.request.model.name,
            compile_target=self.request.compile_target,
            pte="program.pte",
            pte_sha256=hashlib.sha256(self.pte).hexdigest(),
            oracle=self.oracle,
            inputs=described.inputs,
            outputs=described.outputs,
            sets=tuple(
                _write_set(directory, f"set{i}", s.inputs, s.expected)
                for i, s in enumerate(self.sets)
            ),
            operators=described.operators,
            planned_buffers=described.planned_buffers,
            versions=self.versions,
            seed=self.request.seed,
            system_config=self.npu.system_config if self.npu else "",
            memory_mode=self.npu.memory_mode if self.npu else "",
            oracles=self.oracles,
            delegates=tuple(
                _write_delegate(directory, i, d, streams.index(d.blob))
                for i, d in enumerate(self.delegates)
            ),
        )


def _write_set(
    directory: Path, name: str, inputs: tuple[bytes, ...], expected: tuple[bytes, ...]
) -> InputSet:
    (directory / name).mkdir()

    def put(stem: str, contents: tuple[bytes, ...]) -> tuple[str, ...]:
        names = tuple(f"{name}/{stem}{n}.bin" for n in range(len(contents)))
        for place, content in zip(names, contents, strict=True):
            (directory / place).write_bytes(content)
        return names

    return InputSet(put("i", inputs), put("expected", expected))


def _write_delegate(directory: Path, index: int, delegate: RawDelegate, position: int) -> Delegate:
    name = f"delegate{index}"
    (directory / name).mkdir()
    (directory / name / "vela.bin").write_bytes(delegate.blob)
    (directory / name / "graph.tosa").write_bytes(delegate.tosa)
    graph = read_graph(delegate.tosa)
    return Delegate(
        backend=delegate.backend,
        position=position,
        blob=f"{name}/vela.bin",
        tosa=f"{name}/graph.tosa",
        inputs=tuple(map(_tosa_spec, graph.inputs)),
        outputs=tuple(map(_tosa_spec, graph.outputs)),
        operators=delegate.operators,
        sets=tuple(
            _write_set(
                directory,
                f"{name}/set{number}",
                tuple(value.tobytes() for value in call.inputs),
                tuple(value.tobytes() for value in call.outputs),
            )
            for number, call in enumerate(delegate.calls)
        ),
    )


def _tosa_spec(tensor: Tensor) -> TensorSpec:
    order = tuple(range(len(tensor.shape)))
    return TensorSpec(tensor.name, tensor.dtype, tensor.shape, order)


def export_one(request: ExportRequest, versions: dict[str, str]) -> Exported:
    """Raises ExportError (``facts``: model, stage, cause, and the user's line) or UsageError."""
    make = route(request)
    with _reproducible(request.seed):
        with stage(request, "load"):
            model = load_model(request.model)
        with stage(request, "prepare inputs"):
            calibration, sets = _prepare(request, model)
        made = make(request, versions, model.module, calibration, sets)
        with stage(request, "serialise"):
            program = lower.to_program(made.edge)
            names = tuple(made.edge.exported_program().graph_signature.user_inputs)
            described = describe(program, names)
            raw = tuple(_raw_set(described, i, o) for i, o in zip(sets, made.outputs, strict=True))
            pte = bytes(program.buffer)
    require_life(request.model.name, raw)
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


def _raw_set(described: Description, inputs: Sample, outputs: Sample) -> RawSet:
    return RawSet(
        tuple(method_bytes(t, s) for t, s in zip(inputs, described.inputs, strict=True)),
        tuple(method_bytes(t, s) for t, s in zip(outputs, described.outputs, strict=True)),
    )


@contextmanager
def _reproducible(seed: int) -> Iterator[None]:
    """Seeds, one thread and torch's own kernels; the caller's state comes back afterwards.

    The garbage collector is paused: tracing makes millions of objects that live to the end,
    and looking through them again and again takes a tenth of the time.
    """
    python_state, numpy_state = random.getstate(), np.random.get_state()
    threads, collecting = torch.get_num_threads(), gc.isenabled()
    gc.disable()
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
