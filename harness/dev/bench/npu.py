"""``hil bench npu``: the functional Ethos-U model beside the TOSA reference model.

Both run the graph that Vela compiled, with the same input, in one process that is kept on one
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

from harness.case.models import find_model
from harness.errors import InfraError
from harness.export.batch import export
from harness.export.program import Delegate, Program
from harness.export.request import ExportRequest
from harness.system.paths import project_root
from harness.system.progress import Progress

NPUS = ("ethos-u55-128", "ethos-u85-256")
MODELS = ("tests/ethosu/mobilenet_v2.py", "mobilenet_v1_025", "resnet8", "ds_cnn")
_REPEATS = 9
_COLD_REPEATS = 3


@dataclass(frozen=True)
class NpuTimes:
    """Seconds of one core. ``first`` reads the stream and decodes the weights besides running."""

    model: str
    npu: str
    first: float
    warm: float
    strict: float
    tosa: float

    @property
    def decoding(self) -> float:
        return self.first - self.warm

    @property
    def times_faster(self) -> float:
        return self.tosa / self.warm


@dataclass(frozen=True)
class NpuResults:
    rows: tuple[NpuTimes, ...]

    def text(self) -> str:
        heads = ("warm ms", "strict ms", "decoding ms", "TOSA ms", "times as fast")
        lines = [f"{'model':18} {'NPU':14}" + "".join(f"{h:>15}" for h in heads)]
        for row in self.rows:
            figures = (row.warm, row.strict, row.decoding, row.tosa)
            cells = "".join(f"{1000 * value:>15.1f}" for value in figures)
            lines.append(f"{row.model:18} {row.npu:14}{cells}{row.times_faster:>15.1f}")
        return "\n".join(lines)

    def summary(self) -> dict[str, Any]:
        rows = [
            {**asdict(row), "decoding": row.decoding, "times_faster": row.times_faster}
            for row in self.rows
        ]
        return {"rows": rows}


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
        found.append(NpuTimes(name, program.compile_target, **times))
    return found


def _in_a_process(program: Program, delegate: Delegate) -> dict[str, float]:
    names = [delegate.blob, delegate.tosa, *delegate.sets[0].inputs]
    shapes = json.dumps([(spec.dtype, spec.shape) for spec in delegate.inputs])
    argv = [sys.executable, "-m", "harness.dev.bench.npu", shapes]
    argv += [str(program.directory / name) for name in names]
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        argv, env={**os.environ, **threads}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise InfraError(f"the NPU benchmark ended with {done.returncode}: {done.stderr[-500:]}")
    times: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return times


def _child(shapes: str, blob: Path, tosa: Path, inputs: Sequence[Path]) -> dict[str, float]:
    import numpy as np
    import tosa_reference_model  # type: ignore[import-untyped, unused-ignore]

    from harness.ethosu.model import Network

    data, graph = blob.read_bytes(), tosa.read_bytes()
    raw = [path.read_bytes() for path in inputs]
    arrays = [
        np.frombuffer(content, dtype).reshape(shape)
        for content, (dtype, shape) in zip(raw, json.loads(shapes), strict=True)
    ]
    network = Network(data)

    def reference() -> None:
        tosa_reference_model.run(graph, arrays, verbosity="NONE")

    return {
        "first": _best(lambda: Network(data).run(raw, strict=False), _COLD_REPEATS),
        "warm": _best(lambda: network.run(raw, strict=False), _REPEATS),
        "strict": _best(lambda: network.run(raw), _REPEATS),
        "tosa": _best(reference, _COLD_REPEATS),
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
    print(f"\n{json.dumps(times)}")  # after whatever the reference model says
