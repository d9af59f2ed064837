"""``hil bench``: how fast it is, as ratios measured inside one run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.config.case import Case
from harness.core.errors import InfraError
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord
from harness.system.progress import Progress

TARGET = "corstone-300-m55"
MODELS = ("ds_cnn", "resnet8", "mobilenet_v1_025", "deep_autoencoder")
EIGHT = (*MODELS, "tcn", "transformer_layer", "audio_autoencoder", "kws_gru")
EXPORT_TURNS = 3
WARM = ("ds_cnn", "add")
REPEATS = 9

# Instructions per inference of ExecuTorch's own runner with CMSIS-NN (gcc 12.2, MVE, the models
# as shipped), measured on QEMU 7.2 mps3-an547 under -icount.
CMSIS_NN = {
    "ds_cnn": 1_809_888,
    "resnet8": 4_809_504,
    "mobilenet_v1_025": 6_516_622,
    "deep_autoencoder": 153_780,
    "add": 1_594,
    "linear": 2_137,
    "softmax": 4_193,
}


@dataclass(frozen=True)
class Row:
    """One comparison: ``ours`` against ``theirs``, and their ratio."""

    what: str
    ours: float
    theirs: float
    unit: str

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs

    def text(self) -> str:
        digits = ",.0f" if self.unit == "instructions" else ".3f"
        return (
            f"{self.what:44} {self.ours:>12{digits}} against {self.theirs:>12{digits}} "
            f"{self.unit}, ratio {self.ratio:.2f}"
        )


@dataclass(frozen=True)
class Results:
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        return "\n".join([*(row.text() for row in self.rows), *self.notes])

    def summary(self) -> dict[str, Any]:
        rows = [{**vars(row), "ratio": row.ratio} for row in self.rows]
        return {"rows": rows, "notes": list(self.notes)}


def measure_all(what: str, progress: Progress) -> Results:
    """``what`` is one of "instructions", "warm", "export", or "all" of them."""
    parts: dict[str, Callable[[Progress], Results]] = {
        "instructions": instructions,
        "warm": warm,
        "export": export_speed,
    }
    chosen = parts.values() if what == "all" else [parts[what]]
    results = [part(progress) for part in chosen]
    return Results(
        tuple(row for r in results for row in r.rows), tuple(n for r in results for n in r.notes)
    )


def instructions(progress: Progress) -> Results:
    """Instructions per inference beside CMSIS-NN's, for every model there is a figure for."""
    records = run_cases([Case(TARGET, m) for m in CMSIS_NN], RunOptions("qemu"), progress)
    rows = [
        Row(f"instructions, {r.case.name}", _ticks(r), CMSIS_NN[r.case.name], "instructions")
        for r in records
    ]
    four = [row for row, model in zip(rows, CMSIS_NN, strict=True) if model in MODELS]
    total = Row(
        "instructions, the four MLPerf Tiny models",
        sum(r.ours for r in four),
        sum(r.theirs for r in four),
        "instructions",
    )
    return Results((*rows, total))


def _ticks(record: RunRecord) -> int:
    if "ticks_set0" not in record.metrics:
        cause = record.cause
        raise InfraError(f"{record.case.id} gave no tick count: {cause.text if cause else '?'}")
    return record.metrics["ticks_set0"]


def warm(progress: Progress) -> Results:
    """Whole warm runs, each against the bare QEMU process that it contains, in turns."""
    rows = [_warm(model, progress) for model in WARM]
    notes = [f"{row.what}: {row.ours - row.theirs:.3f} s over the raw QEMU process" for row in rows]
    return Results(tuple(rows), tuple(notes))


def _warm(model: str, progress: Progress) -> Row:
    """The best of some: whatever else the machine does only adds. As a user has it, modules are
    not compiled each time, whatever this process was told."""
    (record,) = run_cases([Case(TARGET, model)], RunOptions("qemu"), progress)
    assert record.simulator is not None
    assert record.run_dir is not None
    argv = list(record.simulator.argv)
    start = next(i for i, a in enumerate(argv) if Path(a).name.startswith("qemu-system"))
    hil = [sys.executable, "-m", "harness", "run", TARGET, model, "--simulator", "qemu"]
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch) / "work"
        shutil.copytree(Path(record.run_dir) / "work", work)
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": f"{scratch}/modules"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        _seconds(hil, Path.cwd(), environment)
        ours, raw = [], []
        for turn in range(REPEATS):
            progress(f"warm run of {model} {turn + 1} of {REPEATS}")
            ours.append(_seconds(hil, Path.cwd(), environment))
            raw.append(_seconds(argv[start:], work))
    return Row(f"warm `hil run` of {model}, whole process", min(ours), min(raw), "s")


def export_speed(progress: Progress) -> Results:
    """Four exports in one process against four of ExecuTorch's own compiler processes; and eight,
    side by side, against eight in one process."""
    progress("exporting the four models in one process")
    with tempfile.TemporaryDirectory() as scratch:
        ours = _exported(MODELS, 1)
        theirs = 0.0
        for model in MODELS:
            progress(f"exporting {model} with aot_arm_compiler")
            theirs += _seconds(
                [
                    sys.executable,
                    "-m",
                    "executorch.backends.arm.scripts.aot_arm_compiler",
                    "-m",
                    model,
                    "--target=cortex-m55",
                    "--quantize",
                ],
                Path(scratch),
            )
    return Results((Row("exporting the four models", ours, theirs, "s"), _side_by_side(progress)))


def _side_by_side(progress: Progress) -> Row:
    """Eight networks on two processors. In turns, since other work on the machine counts for both;
    each with its best time."""
    alone, beside = [], []
    for turn in range(1, EXPORT_TURNS + 1):
        progress(f"exporting eight models in one process and in two {turn}/{EXPORT_TURNS}")
        alone.append(_exported(EIGHT, 1))
        beside.append(_exported(EIGHT, 2))
    return Row("exporting eight models in two processes", min(beside), min(alone), "s")


def _exported(models: Sequence[str], processes: int) -> float:
    """Seconds that the exports of these models take from nothing, by so many processes."""
    code = (
        "from harness.export import batch\n"
        "from harness.export.request import ExportRequest\n"
        "from harness.config.models import find_model\n"
        f"batch.side_by_side = lambda *_: {processes}\n"
        f"for r in batch.export([ExportRequest(find_model(m)) for m in {models}]): r.unwrap()"
    )
    with tempfile.TemporaryDirectory() as home:
        return _seconds([sys.executable, "-c", code], Path.cwd(), {**os.environ, "HIL_HOME": home})


def _seconds(argv: Sequence[str], cwd: Path, environment: dict[str, str] | None = None) -> float:
    """Wall time of a command. Raises InfraError when it fails."""
    started = time.monotonic()
    done = subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, check=False)
    if done.returncode != 0:
        tail = done.stderr.decode("utf-8", "replace").strip().splitlines()[-3:]
        raise InfraError(f"{' '.join(argv[:4])} ended with {done.returncode}: {' '.join(tail)}")
    return time.monotonic() - started
