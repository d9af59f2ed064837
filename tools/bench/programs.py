"""``hil bench programs``: are programs the same bytes on every machine?

Each model is exported for each lowering in processes that stand for other machines: torch picks its
kernels by what ``ATEN_CPU_CAPABILITY`` allows, MKL by ``MKL_CBWR``. The names of both are those of
their documentation; ``default`` and ``COMPATIBLE`` are what runs on every x86-64.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.config.loading import load_target
from harness.config.models import find_model, small_models
from harness.core.errors import InfraError
from harness.core.verdict import ExitCode
from harness.export.batch import ExportResult, export
from harness.export.request import ExportRequest
from harness.run.subjects import request_of
from harness.system.files import sha256_of
from harness.system.progress import Progress

_OLDEST = {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE"}


def _threads(number: int) -> dict[str, str]:
    return {"OMP_NUM_THREADS": str(number), "MKL_NUM_THREADS": str(number)}


MACHINES: Mapping[str, Mapping[str, str]] = {
    "this CPU, 2 threads": _threads(2),
    "any x86-64, 1 thread": _OLDEST | _threads(1),
}
ALL_MACHINES: Mapping[str, Mapping[str, str]] = {
    "this CPU, 1 thread": _threads(1),
    **MACHINES,
    "any x86-64, 2 threads": _OLDEST | _threads(2),
}


# A target of each way to make a program. What else Cortex-M and NPU targets differ in is decided by
# what is compiled from the same quantised graph, in integers.
LOWERINGS = (
    "corstone-300-m55",
    "corstone-300-u55-128",
    "corstone-300-u65-256",
    "corstone-320-u85-256",
    "corstone-1000-u85-256",
    "corstone-1000-a320",
    "corstone-1000-a320@portable-fp32",
    "corstone-1000-a320@portable-int8",
    "corstone-1000-a320@xnnpack-fp32",
    "corstone-1000-a320@xnnpack-int8",
)


@dataclass(frozen=True)
class Export:
    """``sha256``: of the .pte, "" with an ``error``. ``data``: of the inputs and the expected
    outputs."""

    sha256: str
    data: str
    not_reproducible: str
    seconds: float
    error: str = ""


@dataclass(frozen=True)
class Row:
    """One model for one target, on every machine."""

    model: str
    target: str
    exports: tuple[Export, ...]

    @property
    def equal(self) -> bool:
        digests = {one.sha256 for one in self.exports}
        return len(digests) == 1 and "" not in digests

    @property
    def data_equal(self) -> bool:
        return len({one.data for one in self.exports}) == 1

    def text(self) -> str:
        seen = ", ".join(dict.fromkeys(one.sha256[:12] for one in self.exports))
        outputs = "" if self.data_equal else "; expected outputs differ"
        first = self.exports[0]
        why = "".join(f"; {text}" for text in (first.not_reproducible, first.error) if text)
        word = "equal" if self.equal else "DIFFERENT"
        return f"{self.model:18} {self.target:28} {word:10} {seen}{outputs}{why}"


@dataclass(frozen=True)
class Table:
    machines: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.PASSED if all(row.equal for row in self.rows) else ExitCode.FAILED

    def text(self) -> str:
        equal = sum(row.equal for row in self.rows)
        seconds = (sum(r.exports[n].seconds for r in self.rows) for n in range(len(self.machines)))
        return "\n".join(
            [
                *(row.text() for row in self.rows),
                *(f"{m}: {s:.0f} s" for m, s in zip(self.machines, seconds, strict=True)),
                f"{equal} of {len(self.rows)} programs are the same bytes",
            ]
        )

    def summary(self) -> dict[str, Any]:
        rows = [
            {"model": r.model, "target": r.target, "sha256": [e.sha256 for e in r.exports]}
            for r in self.rows
        ]
        return {"machines": list(self.machines), "rows": rows}


def all_exports() -> list[tuple[str, str]]:
    """Each model of the catalogue with a target of each lowering."""
    return [(model, target) for target in LOWERINGS for model in small_models()]


def measure_programs(
    progress: Progress,
    asked: Sequence[tuple[str, str]] | None = None,
    machines: Mapping[str, Mapping[str, str]] = ALL_MACHINES,
) -> Table:
    asked = all_exports() if asked is None else asked
    columns = []
    for number, (name, environment) in enumerate(machines.items(), 1):
        progress(f"exporting {len(asked)} programs as on {name} ({number} of {len(machines)})")
        columns.append(exports_as_on(environment, asked))
    rows = zip(asked, zip(*columns, strict=True), strict=True)
    return Table(tuple(machines), tuple(Row(*names, exports) for names, exports in rows))


def exports_as_on(environment: Mapping[str, str], asked: Sequence[tuple[str, str]]) -> list[Export]:
    """What a process with this environment exports, with an empty cache. Raises InfraError."""
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            [sys.executable, "-c", "from tools.bench.programs import child; child()"],
            input=json.dumps(asked).encode(),
            env={**os.environ, **environment, "HIL_HOME": scratch},
            capture_output=True,
            check=False,
        )
    if done.returncode != 0:
        tail = done.stderr.decode("utf-8", "replace").strip().splitlines()[-3:]
        raise InfraError(f"the exporting process ended with {done.returncode}: {' '.join(tail)}")
    return [Export(**fields) for fields in json.loads(done.stdout)]


def child() -> None:
    """Exports what standard input names; what became of it goes to standard output."""
    requests = [_request(*names) for names in json.load(sys.stdin)]
    json.dump([vars(_outcome(result)) for result in export(requests)], sys.stdout)


def _request(model: str, target: str) -> ExportRequest:
    found = find_model(model)
    return request_of(str(found.file or found.name), load_target(target))


def _outcome(result: ExportResult) -> Export:
    if result.error is not None:
        return Export("", "", "", result.seconds, str(result.error))
    program = result.unwrap()
    outputs = [sha256_of(program.directory / n) for s in program.sets for n in s.expected]
    return Export(
        program.pte_sha256,
        " ".join([*map(" ".join, program.input_digests()), *outputs]),
        program.not_reproducible,
        result.seconds,
    )
