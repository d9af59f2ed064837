"""Exports one model from start to end; everything that needs torch is reached from here."""

from __future__ import annotations

import gc
import hashlib
import random
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from harness.errors import ExportError, HarnessError
from harness.export import lower
from harness.export.describe import Description, describe
from harness.export.life import RawSet, require_life
from harness.export.live import make_live
from harness.export.oracle import method_bytes, oracle_name, run_oracle
from harness.export.request import ExportRequest
from harness.export.samples import draw, observed_ranges, shipped_ranges
from harness.export.source import LoadedModel, Sample, load_model
from harness.program import InputSet, Program

CALIBRATION_SAMPLES = 16
INPUT_SETS = 3


@dataclass(frozen=True)
class Exported:
    """A finished export in memory; ``write`` is the only step that touches the disk."""

    request: ExportRequest
    versions: dict[str, str]
    pte: bytes
    description: Description
    sets: tuple[RawSet, ...]

    def write(self, directory: Path) -> Program:
        (directory / "program.pte").write_bytes(self.pte)
        described = self.description
        return Program(
            directory=directory,
            model=self.request.model.name,
            compile_target=self.request.compile_target,
            pte="program.pte",
            pte_sha256=hashlib.sha256(self.pte).hexdigest(),
            oracle=oracle_name(self.versions),
            inputs=described.inputs,
            outputs=described.outputs,
            sets=tuple(_write_set(directory, i, s) for i, s in enumerate(self.sets)),
            operators=described.operators,
            planned_buffers=described.planned_buffers,
            versions=self.versions,
            seed=self.request.seed,
        )


def _write_set(directory: Path, index: int, data: RawSet) -> InputSet:
    (directory / f"set{index}").mkdir()

    def put(stem: str, contents: tuple[bytes, ...]) -> tuple[str, ...]:
        names = tuple(f"set{index}/{stem}{n}.bin" for n in range(len(contents)))
        for name, content in zip(names, contents, strict=True):
            (directory / name).write_bytes(content)
        return names

    return InputSet(put("i", data.inputs), put("expected", data.expected))


def export_one(request: ExportRequest, versions: dict[str, str]) -> Exported:
    """Raises ExportError (``facts``: model, stage, cause, and the user's line) or UsageError."""
    config = lower.target_config(request.compile_target)
    with _reproducible(request.seed):
        with _stage(request, "load"):
            model = load_model(request.model)
        with _stage(request, "prepare inputs"):
            calibration, sets = _prepare(request, model)
        with _stage(request, "capture"):
            captured = lower.capture(model.module, sets[0])
        with _stage(request, "quantise"):
            quantised = lower.quantise(captured, calibration)
        with _stage(request, "lower"):
            edge = lower.to_cortex_m(quantised, sets[0], config)
        with _stage(request, "oracle"):
            outputs = run_oracle(edge, sets)
            names = tuple(edge.exported_program().graph_signature.user_inputs)
        with _stage(request, "serialise"):
            program = lower.to_program(edge)
            pte = bytes(program.buffer)
            described = describe(program, names)
            raw = tuple(_raw_set(described, i, o) for i, o in zip(sets, outputs, strict=True))
    require_life(request.model.name, raw)
    return Exported(request, versions, pte, described, raw)


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


@contextmanager
def _stage(request: ExportRequest, stage: str) -> Iterator[None]:
    """Give whatever torch, ExecuTorch or the user's file raises a name and a place."""
    try:
        yield
    except HarnessError:
        raise
    except (Exception, SystemExit) as error:  # foreign code: any exception is possible
        file, line = _user_frame(request, error)
        where = f" at {file}:{line}" if file else ""
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "no message"
        raise ExportError(
            f"model '{request.model.name}' failed to {stage}{where}: "
            f"{type(error).__name__}: {reason}",
            model=request.model.name,
            compile_target=request.compile_target,
            stage=stage,
            cause=type(error).__name__,
            detail=str(error),
            file=file,
            line=line,
        ) from error


def _user_frame(request: ExportRequest, error: BaseException) -> tuple[str | None, int | None]:
    """The innermost line of the user's own file in the traceback of an error or its causes."""
    source = request.model.file
    cause: BaseException | None = error
    while source is not None and cause is not None:
        for frame in reversed(traceback.extract_tb(cause.__traceback__)):
            if Path(frame.filename).is_relative_to(source.parent):
                return Path(frame.filename).name, frame.lineno
        cause = cause.__cause__ or cause.__context__
    return None, None
