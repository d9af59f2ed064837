"""Exports in the guests' sandbox: a model file is Python, and somebody may not trust it.

It has no network, sees the Python environment, the harness and the model's own folder, and can
write to the directory of its result only, which is looked at before it is believed. The program
that comes of it is the one that an ordinary export makes. It is made every time: nobody out here
sees what the file reads, and its own word would not be good enough to use a program again.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from harness.errors import ExportError, HarnessError
from harness.export import batch, cache
from harness.export.batch import ExportEvent, ExportResult, OnEvent, Origin
from harness.export.checkout.wire import Order, restored
from harness.export.inputs import NO_INPUTS, Inputs
from harness.export.isolate.child import ERROR, TEMPORARY
from harness.export.program import Program, load_program
from harness.export.request import ExportRequest
from harness.system.confine import ENVIRONMENT, NotConfined, confined, what_lacks
from harness.system.paths import import_root
from harness.system.quota import Account, Quota

_START = "import sys; sys.path[:] = {}; from harness.export.isolate.child import main; main()"
_QUOTA = Quota(file_bytes=2 << 30, total_bytes=4 << 30, files=20_000)
_PLACES = ("stdlib", "platstdlib", "purelib", "platlib")
_LOOK = 0.5  # seconds between two looks at what it has written
_LOG_LINES = 20


class IsolatedExportFailed(ExportError):
    """It ended without a program. ``status``: of its process; ``log``: what it printed last."""

    kind = "isolated_export"

    def __init__(self, request: ExportRequest, why: str, status: int, log: str) -> None:
        last = log.strip().splitlines()[-1:]
        super().__init__(
            f"the isolated export of {request.model.name} {why}" + (f": {last[0]}" if last else ""),
            hint="what a model file reads beside its own folder, or writes, is not there in "
            "isolation; without --isolate-export it runs with your rights",
        )
        self.status = status
        self.log = log


def export_isolated(
    requests: Sequence[ExportRequest], on_event: OnEvent = batch.ignore
) -> list[ExportResult]:
    """As ``batch.export``. Raises NotConfined where there is no whole confinement to be had."""
    if missing := what_lacks():
        raise NotConfined(missing)
    results, waiting = batch.look_up(requests, on_event, Origin())
    for index, key in waiting.items():
        results[index] = _one(requests[index], key, on_event)
    return [results[index] for index in range(len(requests))]


def _one(request: ExportRequest, key: str, on_event: OnEvent) -> ExportResult:
    started = time.monotonic()
    on_event(ExportEvent("started", request))
    inputs = NO_INPUTS if request.model.file is None else Inputs(unknown="exported in isolation")
    try:
        with cache.locked(key, wait=True):
            program = cache.store(key, lambda place: _made(request, place), inputs)
    except HarnessError as error:
        on_event(ExportEvent("failed", request, error=error))
        return batch.failed(request, error, started)
    seconds = time.monotonic() - started
    on_event(ExportEvent("done", request, seconds))
    return ExportResult(request, program, None, False, seconds)


def _made(request: ExportRequest, place: Path) -> Program:
    """In ``place``, which is empty, by somebody who can write nowhere else."""
    versions = Origin().all_versions(request)
    order = Order("", "", "", versions, (request,), 0).text()
    status, said = _run(request, order, place)
    if (place / ERROR).is_file() and not (place / ERROR).is_symlink():
        error = restored(json.loads((place / ERROR).read_bytes()[: 1 << 20]))
        if isinstance(error, ExportError):
            error.log = said
        raise error
    if status != 0:
        raise IsolatedExportFailed(request, f"ended with status {status}", status, said)
    shutil.rmtree(place / TEMPORARY, ignore_errors=True)
    program = _believed(place)
    if program is None:
        raise IsolatedExportFailed(request, "left no program that is whole", status, said)
    return replace(program, model=request.model.name, compile_target=request.compile_target,
                   versions=versions, exporter=None)  # fmt: skip


def _run(request: ExportRequest, order: str, place: Path) -> tuple[int, str]:
    """The status of its process, and the end of what it printed."""
    path = [str(import_root()), *filter(None, sys.path)]
    python = Path(sys.executable).resolve()  # links of a virtual environment lead out of the walls
    argv = [str(python), "-I", "-S", "-c", _START.format(path)]
    account = Account(place, _QUOTA)
    readable = list(_readable(request))
    with (
        tempfile.TemporaryFile() as log,
        confined(place, python, readable, file_bytes=_QUOTA.file_bytes) as walls,
    ):
        child = subprocess.Popen(
            [*walls.prefix, *argv], cwd=place, env=ENVIRONMENT, pass_fds=walls.descriptors,
            stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        try:
            assert child.stdin is not None
            with suppress(BrokenPipeError), child.stdin:
                child.stdin.write(order)
            while child.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(_LOOK)
                if excess := account.excess():
                    raise IsolatedExportFailed(request, f"wrote too much ({excess})", -1, "")
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        text = os.pread(log.fileno(), 1 << 20, max(0, os.fstat(log.fileno()).st_size - (1 << 20)))
    return child.returncode, "\n".join(text.decode(errors="replace").splitlines()[-_LOG_LINES:])


def _readable(request: ExportRequest) -> Iterator[Path]:
    yield from (import_root() / "harness", Path(sys.base_prefix) / "lib")
    yield from (Path(place) for place in (*sys.path, *map(sysconfig.get_path, _PLACES))
                if place.endswith(("-packages", "lib-dynload")) or "/python3" in place)  # fmt: skip
    if request.model.file is not None:
        yield request.model.file.absolute().parent


def _believed(place: Path) -> Program | None:
    """What it left, if that is one whole program of plain files and nothing else: the names in
    its description lead nowhere else."""
    there = set()
    for folder, folders, files in os.walk(place):
        for name in (*folders, *files):
            path = Path(folder) / name
            mode = path.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                return None
            there.add(str(path.relative_to(place)))
    try:
        program = load_program(place)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    if program is None:
        return None
    sets = [*program.sets, *(s for d in program.delegates for s in d.sets)]
    names = {program.pte, *(n for d in program.delegates for n in (d.blob, d.tosa)),
             *(n for s in sets for n in (*s.inputs, *s.expected, *s.by_design))}  # fmt: skip
    return program if names <= there else None
