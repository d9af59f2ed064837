"""Models become Programs, once; afterwards they come from the cache.

Each model is exported in a process of its own (``process.py``): its file may change torch, or end
the process. Several are exported side by side.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from harness.core.errors import HarnessError
from harness.export import cache
from harness.export.failures import InputChanged
from harness.export.process import TEMPORARY, ExportProcess, ExportProcessFailed, Sandbox
from harness.export.program import Program, load_program
from harness.export.request import ExportRequest, content_key, exporter_versions
from harness.system.cancellation import cancelling
from harness.system.confine import NotConfined, what_lacks
from harness.system.files import MALFORMED
from harness.system.progress import Progress, silent
from harness.system.unexpected import as_harness_error

if TYPE_CHECKING:
    from harness.export.checkout import CheckoutExporter

EXPORT_BYTES = 3 << 30  # what the largest network of docs/networks.md takes
# A process imports torch for as long as two small networks take: four, of which the firmware is
# built meanwhile, are exported sooner by one process, and eight by two (1.5 times).
REQUESTS_EACH = 4


@dataclass(frozen=True)
class ExportResult:
    """Exactly one of ``program`` and ``error`` is set. ``cached``: nothing was exported here."""

    program: Program | None
    error: HarnessError | None
    cached: bool
    seconds: float

    def unwrap(self) -> Program:
        if self.error is not None:
            raise self.error
        assert self.program is not None
        return self.program


@dataclass(frozen=True)
class ExportOptions:
    """How to export.

    ``checkout``: whose Python exports; None: the installed wheel's. ``isolate``: each model in a
    sandbox, where a file can write nothing but its result. ``fresh``: cached programs are not used.
    """

    checkout: CheckoutExporter | None = None
    isolate: bool = False
    fresh: bool = False

    def versions(self, request: ExportRequest) -> dict[str, str]:
        own = {} if self.checkout is None else self.checkout.versions
        return {**exporter_versions(request.compile_target), **own}

    def key(self, request: ExportRequest) -> str:
        """Return the name in the cache of the result. Raises BadModel."""
        return content_key(request, self.versions(request))

    def named(self, program: Program | None) -> Program | None:
        """Add the checkout's facts: a program of equal content may be of another commit."""
        if program is None or self.checkout is None:
            return program
        return replace(program, exporter=self.checkout.facts)


WHEEL_OPTIONS = ExportOptions()


def export(
    requests: Sequence[ExportRequest],
    progress: Progress = silent,
    options: ExportOptions = WHEEL_OPTIONS,
    process: ExportProcess | None = None,
) -> list[ExportResult]:
    """One result per request, in order; a model that fails does not stop the others.

    ``process`` has the exporter of ``options`` and stays open; None: this call starts as many as
    ``side_by_side`` says, and ends them.

    Raises NotConfined where isolation cannot be had."""
    if options.isolate and (missing := what_lacks()):
        raise NotConfined(missing)
    count = 1 if process else side_by_side(len(requests), _available_memory())
    # The processes are ended before the threads that wait for them are.
    with ThreadPoolExecutor(count) as pool, cancelling(pool), ExitStack() as stack:
        own = () if process else range(count)
        processes = [stack.enter_context(ExportProcess(options.checkout)) for _ in own]
        batch = _Batch(options, progress, [process] if process else processes)
        return [*pool.map(batch.result, requests)]


def side_by_side(requests: int, available_bytes: int) -> int:
    """How many models are exported at a time."""
    processors = os.cpu_count() or 1
    return max(1, min(requests // REQUESTS_EACH, processors, available_bytes // EXPORT_BYTES))


def _available_memory() -> int:
    """In bytes; the kernel's estimate, which counts what caches would give up (proc(5))."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return int(fields["MemAvailable"].split()[0]) << 10


class _Batch:
    """Thread-safe. ``processes``: idle ones, each for one request at a time."""

    def __init__(
        self, options: ExportOptions, progress: Progress, processes: Sequence[ExportProcess]
    ) -> None:
        self._options = options
        self._progress = progress
        self._idle: SimpleQueue[ExportProcess] = SimpleQueue()
        for process in processes:
            self._idle.put(process)
        self._exported_keys: set[str] = set()  # keys that this batch exported

    def result(self, request: ExportRequest) -> ExportResult:
        """From the cache, or exported under the key's lock."""
        started = time.monotonic()
        program, cached, error = None, False, None
        try:
            program, cached = self._program(request)
        except Exception as failure:  # the boundary of a model: the others go on
            error = as_harness_error(failure)
        return ExportResult(program, error, cached, time.monotonic() - started)

    def _program(self, request: ExportRequest) -> tuple[Program, bool]:
        """And whether it was cached."""
        key = self._options.key(request)
        if (found := self._cached(request, key)) is not None:
            return found, True
        with cache.locked(
            key, lambda: self._report(request, "waiting for another process's export")
        ):
            if (found := self._cached(request, key)) is not None:
                return found, True
            return self._export(request, key), False

    def _report(self, request: ExportRequest, *texts: str) -> None:
        subject = f"{request.model.name} for {request.compile_target}"
        self._progress(f"{subject}: {'; '.join(texts)}")

    def _cached(self, request: ExportRequest, key: str) -> Program | None:
        if self._options.fresh and key not in self._exported_keys:
            return None
        home = "" if request.model.file is None else str(request.model.file.parent)
        return self._options.named(cache.load(key, home))

    def _export(self, request: ExportRequest, key: str) -> Program:
        invalid_reason = cache.invalid_reason(key)
        notes = (f"the cached program was not used, {invalid_reason}",) if invalid_reason else ()
        self._report(request, "exporting", *notes)
        program = cache.store(key, lambda folder: self._export_into(folder, request, key))
        self._report(request, "exported")
        self._exported_keys.add(key)
        program = replace(program, notes=(*notes, *program.notes))
        return self._options.named(program) or program

    def _export_into(
        self, folder: Path, request: ExportRequest, key: str
    ) -> tuple[Program, dict[str, str]]:
        """Export into the empty ``folder``; also return the files the program was made from."""
        versions, task = self._options.versions(request), f"the export of {request.model.name}"
        with ExitStack() as stack:
            process = self._idle.get()
            stack.callback(self._idle.put, process)
            if self._options.isolate:
                model = request.model.file
                readable = () if model is None else (model.absolute().parent,)
                process = stack.enter_context(ExportProcess(sandbox=Sandbox(folder, readable)))
            files = process.call(
                "worker:export",
                request,
                versions,
                str(folder),
                task=task,
                on_stage=lambda name: self._report(request, f"exporting, {name}"),
            )
            log = process.log
        shutil.rmtree(folder / TEMPORARY, ignore_errors=True)
        program = _load_if_complete(folder)
        if program is None:
            text = f"{task}: the export process left no program that is whole"
            raise ExportProcessFailed(text, None, log, sandbox=self._options.isolate)
        (folder / "export.log").write_text(log)
        if self._options.checkout is not None:
            self._options.checkout.confirm()
        if content_key(request, versions) != key:
            raise InputChanged(request.model.file or folder)
        program = replace(
            program,
            model=request.model.name,
            compile_target=request.compile_target,
            versions=versions,
            exporter=None,
        )
        return program, _inside_model_folder(files) if self._options.isolate else files


def _inside_model_folder(files: Any) -> dict[str, str]:
    """Leave out files outside the model's folder: an isolated model cannot read them."""
    named = files.items() if isinstance(files, dict) else ()
    return {
        name: str(digest)
        for name, digest in named
        if ".." not in Path(name).parts and not Path(name).is_absolute()
    }


def _load_if_complete(folder: Path) -> Program | None:
    """Return what an export left, if that is one complete program of plain files.

    Its description names no file outside of ``folder``, and no link leads out of it."""
    present = set()
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place) / name
            mode = path.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                return None
            present.add(str(path.relative_to(folder)))
    try:
        program = load_program(folder)
    except (OSError, *MALFORMED):
        return None
    return program if program is not None and program.file_names() <= present else None
