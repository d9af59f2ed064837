"""Models become Programs, once; afterwards they come from the cache.

Importing this imports no torch, and neither does a request that the cache can answer. While a
model is lowered, standard output and standard error are captured into the Program's
``export.log``; progress is reported outside that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.case.models import source_files
from harness.errors import ExportError, HarnessError, InfraError
from harness.export import cache, quiet
from harness.export.program import Program
from harness.export.request import ExportRequest, content_key, exporter_versions
from harness.system.boundary import told

if TYPE_CHECKING:
    from harness.export.exported import Exported
    from harness.export.kindred import Made


@dataclass(frozen=True)
class ExportEvent:
    """``kind``: preparing (another Python, which takes seconds to start), cached, waiting (another
    process exports it), started (with ``notes`` on why again), done, failed (with ``error``).
    ``program``: of cached and done."""

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
class Origin:
    """Who exports, if it is not simply the installed wheel: ``versions`` replace or add to the
    wheel's, and ``confirm`` raises unless they still hold when a program was made."""

    versions: Mapping[str, str] = field(default_factory=dict)
    confirm: Callable[[], None] = lambda: None

    def all_versions(self, request: ExportRequest) -> dict[str, str]:
        return {**exporter_versions(request.compile_target), **self.versions}


def export(
    requests: Sequence[ExportRequest],
    on_event: OnEvent = ignore,
    origin: Origin = Origin(),  # frozen, and empty
) -> list[ExportResult]:
    """One result per request, in order; a model that fails does not stop the others.

    What another process is exporting at the moment is left for last and then awaited.
    """
    results, missing = look_up(requests, on_event, origin)
    batch = _Batch(requests, missing, results, on_event, origin)
    for index in [i for i in missing if not batch.attempt(i, wait=False)]:
        on_event(ExportEvent("waiting", requests[index]))
        batch.attempt(index, wait=True)
    return [results[index] for index in range(len(requests))]


def look_up(
    requests: Sequence[ExportRequest], on_event: OnEvent, origin: Origin
) -> tuple[dict[int, ExportResult], dict[int, str]]:
    """What needs no export, and the keys of what does; by index of the request."""
    results: dict[int, ExportResult] = {}
    missing: dict[int, str] = {}
    for index, request in enumerate(requests):
        started = time.monotonic()
        try:
            key = key_of(request, origin)
            program = cache.load(key, home_of(request))
        except Exception as error:  # the boundary of a model: the others go on
            results[index] = failed(request, told(error), started)
            on_event(ExportEvent("failed", request, error=told(error)))
            continue
        if program is None:
            missing[index] = key
        else:
            results[index] = _found(request, program, started)
            on_event(ExportEvent("cached", request, program=program))
    return results, missing


def key_of(request: ExportRequest, origin: Origin) -> str:
    """The name in the cache of what an export gives. Raises what is wrong with the model."""
    return content_key(request, origin.all_versions(request))


@dataclass(frozen=True)
class _Batch:
    requests: Sequence[ExportRequest]
    keys: Mapping[int, str]
    results: dict[int, ExportResult]
    on_event: OnEvent
    origin: Origin

    def attempt(self, index: int, *, wait: bool) -> bool:
        """Fill in one result under the key's lock; False when another process holds it."""
        request, key, started = self.requests[index], self.keys[index], time.monotonic()
        try:
            with cache.locked(key, wait=wait) as mine:
                if not mine:
                    return False
                program = cache.load(key, home_of(request))
                if program is not None:
                    result = _found(request, program, started)
                else:
                    why = cache.spoiled(key)
                    notes = (f"the cached program was not used, {why}",) if why else ()
                    self.on_event(ExportEvent("started", request, notes=notes))
                    program = self._export_and_store(request, key)
                    program = replace(program, notes=(*notes, *program.notes))
                    elapsed = time.monotonic() - started
                    result = ExportResult(request, program, None, False, elapsed)
        except Exception as error:  # the boundary of a model: the others go on
            result = failed(request, told(error), started)
        self.results[index] = result
        kind = "failed" if result.error else "cached" if result.cached else "done"
        self.on_event(ExportEvent(kind, request, result.seconds, result.error, result.program))
        return True

    def _export_and_store(self, request: ExportRequest, key: str) -> Program:
        versions = self.origin.all_versions(request)
        from harness.export.watch import Watch  # what a warm run does not import

        watch = Watch(request.model.file)
        with quiet.captured() as log:
            try:
                export_one = _load_worker()
                exported: Exported | Made | None = self._of_kindred(request)
                if exported is None:
                    with watch.listening():
                        exported = export_one(request, versions)
            except ExportError as error:
                error.log = log.tail()
                raise
            text = log.text()
        self.origin.confirm()
        inputs = watch.inputs(
            () if request.model.file is None else source_files(request.model.file)
        )
        if content_key(request, versions) != key:
            inputs = replace(inputs, unknown="the model's source changed while it was exported")

        def write(directory: Path) -> Program:
            (directory / "export.log").write_text(text)
            return exported.write(directory)

        stored = cache.store(key, write, inputs)
        note = f"exported every time, for it cannot be known what decides it: {inputs.unknown}"
        return replace(stored, notes=(note,)) if inputs.unknown else stored

    def _of_kindred(self, request: ExportRequest) -> Made | None:
        """What needs no export, for a program that differs in nothing of the exporter's is there.
        A checkout's exporter, or another wheel's, may see that otherwise."""
        if self.origin.versions:
            return None
        from harness.export import kindred

        versions = exporter_versions(request.compile_target)
        if versions["executorch"] != kindred.EXECUTORCH:
            return None
        return kindred.make(request, _load_kindred)


def _load_kindred(request: ExportRequest) -> Program | None:
    """One that read nothing besides its sources: then nothing else can make another of it."""
    key = content_key(request, exporter_versions(request.compile_target))
    program = cache.load(key, home_of(request))
    return program if program is not None and program.directory.name == key else None


def home_of(request: ExportRequest) -> str:
    """The folder that the paths in a user's file may depend on."""
    return "" if request.model.file is None else str(request.model.file.parent)


def _load_worker() -> Callable[[ExportRequest, dict[str, str]], Exported]:
    """The import of torch and ExecuTorch: seconds, and only ever here."""
    try:
        from harness.export.worker import export_one
    except ImportError as error:
        raise InfraError(
            f"torch or ExecuTorch is installed but cannot be imported: {error}",
            hint="reinstall them: delete .venv and run ./hil",
        ) from error
    return export_one


def _found(request: ExportRequest, program: Program, started: float) -> ExportResult:
    return ExportResult(request, program, None, True, time.monotonic() - started)


def failed(request: ExportRequest, error: HarnessError, started: float) -> ExportResult:
    return ExportResult(request, None, error, False, time.monotonic() - started)
