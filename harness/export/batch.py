"""Models become Programs, once; afterwards they come from the cache.

Importing this imports no torch, and neither does a request that the cache can answer. While a
model is lowered, standard output and standard error are captured into the Program's
``export.log``; progress is reported outside that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import ExportError, HarnessError, InfraError
from harness.export import cache, quiet
from harness.export.program import Program
from harness.export.request import ExportRequest, content_key, exporter_versions

if TYPE_CHECKING:
    from harness.export.exported import Exported


@dataclass(frozen=True)
class ExportEvent:
    """``kind``: cached, waiting (another process exports it), started, done, failed."""

    kind: str
    request: ExportRequest
    seconds: float = 0.0


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


def _ignore(_: ExportEvent) -> None:
    pass


def export(requests: Sequence[ExportRequest], on_event: OnEvent = _ignore) -> list[ExportResult]:
    """One result per request, in order; a model that fails does not stop the others.

    What another process is exporting at the moment is left for last and then awaited.
    """
    results: dict[int, ExportResult] = {}
    missing: dict[int, str] = {}
    for index, request in enumerate(requests):
        started = time.monotonic()
        try:
            key = content_key(request, exporter_versions(request.compile_target))
            program = cache.load(key)
        except HarnessError as error:
            results[index] = _failed(request, error, started)
            on_event(ExportEvent("failed", request))
            continue
        if program is None:
            missing[index] = key
        else:
            results[index] = _found(request, program, started)
            on_event(ExportEvent("cached", request))
    busy = [i for i in missing if not _attempt(requests, missing, i, results, on_event, False)]
    for index in busy:
        on_event(ExportEvent("waiting", requests[index]))
        _attempt(requests, missing, index, results, on_event, True)
    return [results[index] for index in range(len(requests))]


def _attempt(
    requests: Sequence[ExportRequest],
    keys: dict[int, str],
    index: int,
    results: dict[int, ExportResult],
    on_event: OnEvent,
    wait: bool,
) -> bool:
    """Fill in one result under the key's lock; False when another process holds it."""
    request, key, started = requests[index], keys[index], time.monotonic()
    try:
        with cache.locked(key, wait=wait) as mine:
            if not mine:
                return False
            program = cache.load(key)
            if program is not None:
                results[index] = _found(request, program, started)
            else:
                on_event(ExportEvent("started", request))
                program = _export_and_store(request, key)
                elapsed = time.monotonic() - started
                results[index] = ExportResult(request, program, None, False, elapsed)
    except HarnessError as error:
        results[index] = _failed(request, error, started)
    result = results[index]
    kind = "failed" if result.error else "cached" if result.cached else "done"
    on_event(ExportEvent(kind, request, result.seconds))
    return True


def _export_and_store(request: ExportRequest, key: str) -> Program:
    versions = exporter_versions(request.compile_target)
    with quiet.captured() as log:
        try:
            export_one = _load_worker()
            exported = export_one(request, versions)
        except ExportError as error:
            error.log = log.tail()
            raise
        text = log.text()

    def write(directory: Path) -> Program:
        (directory / "export.log").write_text(text)
        return exported.write(directory)

    return cache.store(key, write)


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


def _failed(request: ExportRequest, error: HarnessError, started: float) -> ExportResult:
    return ExportResult(request, None, error, False, time.monotonic() - started)
