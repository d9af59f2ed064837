"""``hil bench npu``: the functional Ethos-U model beside the TOSA reference model.

All run the graph that Vela compiled, with the same input, in one process that is kept on one
core. A time is processor time, that of the weights' decoder included, and the best of several,
so that other work on the machine changes it little. Run as a module it is that process.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.config.models import find_model
from harness.core.errors import InfraError
from harness.export.batch import export
from harness.export.program import Delegate, Program
from harness.export.request import ExportRequest
from harness.npu.model import Network
from harness.system.progress import Progress
from tools.clone import project_root

NPUS = ("ethos-u55-128", "ethos-u85-256")
MODELS = (
    *(f"tests/npu/{name}.py" for name in ("mobilenet_v2", "resnet18", "unet")),
    *("mobilenet_v1_025", "resnet8", "ds_cnn"),
)
_REPEATS = 9
_COLD_REPEATS = 3


@dataclass(frozen=True)
class Times:
    """Seconds of one core: reading the stream, that and one inference on weights that have to be
    decoded, and one more inference."""

    reading: float
    first: float
    warm: float
    strict: float

    @property
    def decoding(self) -> float:
        """Weights, and what is made ready with them."""
        return self.first - self.reading - self.warm


@dataclass(frozen=True)
class NpuTimes:
    """Of the model, and of the TOSA reference model, in seconds."""

    model: str
    npu: str
    times: Times
    tosa: float

    @property
    def ratio(self) -> float:
        """How many times as fast as the reference model."""
        return self.tosa / self.times.warm


@dataclass(frozen=True)
class NpuResults:
    rows: tuple[NpuTimes, ...]

    def text(self) -> str:
        heads = ("warm ms", "strict ms", "reading ms", "first ms", "decoding ms", "TOSA/warm")
        lines = [f"{'model':17} {'NPU':14}" + "".join(f"{h:>12}" for h in heads)]
        for row in self.rows:
            times = row.times
            seconds = times.warm, times.strict, times.reading, times.first, times.decoding
            cells = "".join(
                f"{value:>12.1f}" for value in (*(1000 * s for s in seconds), row.ratio)
            )
            lines.append(f"{row.model:17} {row.npu:14}{cells}")
        return "\n".join(lines)

    def summary(self) -> dict[str, Any]:
        return {"rows": [{**asdict(row), "ratio": row.ratio} for row in self.rows]}


def measure_npu(progress: Progress) -> NpuResults:
    rows = []
    for npu in NPUS:
        for name in MODELS:
            model = find_model(str(project_root() / name) if name.endswith(".py") else name)
            progress(f"exporting {model.name} for {npu}")
            (result,) = export([ExportRequest(model, npu)])
            progress(f"measuring {model.name} on {npu}")
            rows += _measured(result.unwrap())
    return NpuResults(tuple(rows))


def _measured(program: Program) -> list[NpuTimes]:
    """One row for each delegate."""
    found = []
    for number, delegate in enumerate(program.delegates):
        times = _in_a_process(program, delegate)
        name = program.model if len(program.delegates) == 1 else f"{program.model}/{number}"
        tosa = times["tosa"]["run"]
        found.append(NpuTimes(name, program.compile_target, Times(**times["npu"]), tosa))
    return found


def _in_a_process(program: Program, delegate: Delegate) -> dict[str, dict[str, float]]:
    names = [delegate.blob, delegate.tosa, *delegate.sets[0].inputs]
    shapes = json.dumps([(spec.dtype, spec.shape) for spec in delegate.inputs])
    argv = [sys.executable, "-m", "tools.bench.npu", shapes]
    argv += [str(program.directory / name) for name in names]
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        argv, env={**os.environ, **threads}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise InfraError(f"the NPU benchmark ended with {done.returncode}: {done.stderr[-500:]}")
    return times_among(done.stdout)


def times_among(said: str) -> dict[str, dict[str, float]]:
    """Of a child's output: what the reference model says in C comes before or after them, as that
    is buffered."""
    line = next(line for line in said.splitlines() if line.startswith("{"))
    times: dict[str, dict[str, float]] = json.loads(line)
    return times


def _child(
    shapes: str, blob: Path, tosa: Path, inputs: Sequence[Path]
) -> dict[str, dict[str, float]]:
    import numpy as np
    import tosa_reference_model  # type: ignore[import-untyped, unused-ignore]

    data, graph = blob.read_bytes(), tosa.read_bytes()
    raw = [path.read_bytes() for path in inputs]
    arrays = [
        np.frombuffer(content, dtype).reshape(shape)
        for content, (dtype, shape) in zip(raw, json.loads(shapes), strict=True)
    ]

    def reference() -> None:
        tosa_reference_model.run(graph, arrays, verbosity="NONE")

    return {
        "npu": _times(data, raw),
        "tosa": {"run": _best(reference, _COLD_REPEATS)},
    }


def _times(data: bytes, raw: Sequence[bytes]) -> dict[str, float]:
    def new() -> Network:
        return Network(data)

    network = new()
    return {
        "first": _best(lambda: new().run(raw, strict=False), _COLD_REPEATS),
        "reading": _best(new, _COLD_REPEATS),
        "warm": _best(lambda: network.run(raw, strict=False), _REPEATS),
        "strict": _best(lambda: network.run(raw), _REPEATS),
    }


def _best(action: Callable[[], object], repeats: int) -> float:
    found = []
    for _ in range(repeats):
        started = _processor_time()
        action()
        found.append(_processor_time() - started)
    return min(found)


def _processor_time() -> float:
    """Of this process and of the children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    _, shapes, *names = sys.argv
    blob, tosa, *inputs = map(Path, names)
    times = _child(shapes, blob, tosa, inputs)
    print(f"\n{json.dumps(times)}")
