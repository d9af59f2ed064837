"""Models become Programs, once; afterwards they come from the cache.

Each model is exported in a process of its own (``process.py``): its file may change torch, or end
the process.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.core.errors import HarnessError
from harness.export import cache
from harness.export.cache import NO_INPUTS, Inputs
from harness.export.failures import InputChanged
from harness.export.fork_server import TEMPORARY, Walls
from harness.export.process import ExportProcess, ExportProcessFailed
from harness.export.program import Program, load_program
from harness.export.request import ExportRequest, content_key, exporter_versions
from harness.system.boundary import as_harness_error
from harness.system.confine import NotConfined, what_lacks
from harness.system.files import MALFORMED

if TYPE_CHECKING:
    from harness.export.checkout import CheckoutExporter


@dataclass(frozen=True)
class ExportEvent:
    """``kind``: cached, waiting (another process exports it), started (with ``notes`` on why
    again), stage (``notes`` has its name), done, failed (with ``error``). ``program``: of cached
    and done."""

    kind: str
    request: ExportRequest
    seconds: float = 0.0
    error: HarnessError | None = None
    program: Program | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExportResult:
    """Exactly one of ``program`` and ``error`` is set. ``cached``: nothing was exported here."""

    request: ExportRequest
    program: Program | None
    error: HarnessError | None
    cached: bool
    seconds: float

    def unwrap(self) -> Program:
        if self.error is not None:
            raise self.error
        assert self.program is not None
        return self.program


OnEvent = Callable[[ExportEvent], None]


def ignore(_: ExportEvent) -> None:
    pass


@dataclass(frozen=True)
class ExportOptions:
    """``checkout``: whose Python exports; None: the installed wheel's. ``isolate``: each model
    behind walls, where a file can write nothing but its result. ``fresh``: cached programs are
    not used."""

    checkout: CheckoutExporter | None = None
    isolate: bool = False
    fresh: bool = False

    def versions(self, request: ExportRequest) -> dict[str, str]:
        own = {} if self.checkout is None else self.checkout.versions
        return {**exporter_versions(request.compile_target), **own}

    def key(self, request: ExportRequest) -> str:
        """The name in the cache of what an export gives. Raises what is wrong with the model."""
        return content_key(request, self.versions(request))

    def cached(self, request: ExportRequest) -> Program | None:
        """The cached program, whether or not it may be used. Raises as ``key``."""
        return self.named(cache.load(self.key(request), home_of(request)))

    def named(self, program: Program | None) -> Program | None:
        """With the checkout's facts: a program of equal content may be of another commit."""
        if program is None or self.checkout is None:
            return program
        return replace(program, exporter=self.checkout.facts)


WHEEL_OPTIONS = ExportOptions()


def export(
    requests: Sequence[ExportRequest],
    on_event: OnEvent = ignore,
    options: ExportOptions = WHEEL_OPTIONS,
    process: ExportProcess | None = None,
) -> list[ExportResult]:
    """One result per request, in order; a model that fails does not stop the others. ``process``
    has the exporter of ``options`` and stays open; None: one that this call starts and ends.

    Raises NotConfined where isolation cannot be had.
    """
    if options.isolate and (missing := what_lacks()):
        raise NotConfined(missing)
    with ExitStack() as stack:
        shared = process or stack.enter_context(ExportProcess(options.checkout))
        batch = _Batch(options, on_event, shared)
        return [batch.result(request) for request in requests]


class _Batch:
    """``shared``: the process that exports the models of the wheel."""

    def __init__(self, options: ExportOptions, on_event: OnEvent, shared: ExportProcess) -> None:
        self._options = options
        self._on_event = on_event
        self._shared = shared
        self._made: set[str] = set()  # keys that this batch exported

    def result(self, request: ExportRequest) -> ExportResult:
        """From the cache, or exported under the key's lock."""
        started = time.monotonic()
        try:
            key = self._options.key(request)
            result = self._cached(request, key, started)
            if result is None:
                with cache.locked(key, lambda: self._on_event(ExportEvent("waiting", request))):
                    result = self._cached(request, key, started)
                    if result is None:
                        result = self._export(request, key, started)
        except Exception as error:  # the boundary of a model: the others go on
            result = _failed(request, as_harness_error(error), started)
        kind = "failed" if result.error else "cached" if result.cached else "done"
        self._on_event(ExportEvent(kind, request, result.seconds, result.error, result.program))
        return result

    def _cached(self, request: ExportRequest, key: str, started: float) -> ExportResult | None:
        if self._options.fresh and key not in self._made:
            return None
        program = self._options.named(cache.load(key, home_of(request)))
        return None if program is None else _found(request, program, started)

    def _export(self, request: ExportRequest, key: str, started: float) -> ExportResult:
        spoiled = cache.spoiled(key)
        notes = (f"the cached program was not used, {spoiled}",) if spoiled else ()
        self._on_event(ExportEvent("started", request, notes=notes))
        program = cache.store(key, lambda folder: self._made_in(folder, request, key))
        self._made.add(key)
        if self._options.isolate and request.model.file is not None:
            notes = (*notes, "exported every time: it was exported in isolation")
        program = replace(program, notes=(*notes, *program.notes))
        program = self._options.named(program) or program
        return ExportResult(request, program, None, False, time.monotonic() - started)

    def _made_in(self, folder: Path, request: ExportRequest, key: str) -> tuple[Program, Inputs]:
        """Exports into ``folder``, which is empty."""
        versions = self._options.versions(request)
        with ExitStack() as stack:
            process = self._shared
            if self._options.isolate:
                model = request.model.file
                readable = () if model is None else (model.absolute().parent,)
                process = stack.enter_context(ExportProcess(walls=Walls(folder, readable)))
            files = process.call(
                "worker:export",
                request,
                versions,
                str(folder),
                task=f"the export of {request.model.name}",
                on_stage=lambda name: self._on_event(ExportEvent("stage", request, notes=(name,))),
            )
        shutil.rmtree(folder / TEMPORARY, ignore_errors=True)
        program = _whole(folder)
        if program is None:
            raise ExportProcessFailed(
                f"the export of {request.model.name}",
                "left no program that is whole",
                None,
                process.log,
                walls=self._options.isolate,
            )
        (folder / "export.log").write_text(process.log)
        if self._options.checkout is not None:
            self._options.checkout.confirm()
        if content_key(request, versions) != key:
            raise InputChanged(request.model.file or folder)
        inputs = NO_INPUTS
        if request.model.file is not None:
            # An isolated file could name any files, so its program is not used again.
            inputs = Inputs({}, reusable=False) if self._options.isolate else Inputs(files)
        if program.not_reproducible:
            inputs = replace(inputs, cpu=cache.cpu_class())
        program = replace(
            program,
            model=request.model.name,
            compile_target=request.compile_target,
            versions=versions,
            exporter=None,
        )
        return program, inputs


def _whole(folder: Path) -> Program | None:
    """What an export left, if that is one complete program of plain files: its description names
    no file outside of ``folder``, and no link leads out of it."""
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


def home_of(request: ExportRequest) -> str:
    """The folder that the names of a user's input files are relative to."""
    return "" if request.model.file is None else str(request.model.file.parent)


def _found(request: ExportRequest, program: Program, started: float) -> ExportResult:
    return ExportResult(request, program, None, True, time.monotonic() - started)


def _failed(request: ExportRequest, error: HarnessError, started: float) -> ExportResult:
    return ExportResult(request, None, error, False, time.monotonic() - started)
