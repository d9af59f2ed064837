"""Exports with a checkout, in a child whose Python has the checkout's ``executorch``.

This process keeps the installed wheel: what a checkout may do to Python ends with the child. The
programs come through the cache.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from harness.errors import HarnessError, InfraError
from harness.export import batch, cache
from harness.export.batch import ExportEvent, ExportResult, OnEvent, Origin
from harness.export.checkout.child import ImportFailed
from harness.export.checkout.exporter import CheckoutExporter
from harness.export.checkout.wire import Order, restored
from harness.export.program import Program
from harness.export.request import ExportRequest
from harness.system.paths import import_root

# Without the current directory in front, where anything may lie.
_START = "import sys; sys.path = [p for p in sys.path if p]; from {} import main; main()"
_LOG_LINES = 20
_OTHER_TIME = (
    "the revision is older or newer than what the harness can export with (ExecuTorch since pull "
    "request 21826, August 2026): export with --exporter wheel"
)


class ExporterUnusable(InfraError):
    """The checkout's ``executorch`` cannot be imported with what is installed here. ``cause`` and
    ``detail``: of the exception; ``place``: where it was raised; ``missing``: what the harness
    wanted of it, when it is that which is not there; ``log``: what was printed."""

    kind = "exporter_unusable"

    def __init__(self, exporter: CheckoutExporter, failed: ImportFailed, log: str) -> None:
        self.cause, self.detail, self.place = failed.cause, failed.detail, failed.place
        self.missing = failed.missing
        self.torch, self.pinned = metadata.version("torch"), exporter.pinned
        self.compiled = exporter.facts.compiled
        self.log = log
        pin = f", pinned to torch {self.pinned}" if self.pinned else ""
        super().__init__(
            f"the exporter of the checkout (version {exporter.facts.version}{pin}) cannot be "
            f"imported with torch {self.torch} and the compiled parts of the wheel "
            f"{self.compiled}: {failed.message}",
            hint=_OTHER_TIME
            if failed.missing
            else "if it is not an edit of yours: install the torch and the wheel of that time, or "
            "export with --exporter wheel",
            path=exporter.root,
        )


class ExporterDied(InfraError):
    """``status`` or ``signal``: how it ended; ``log``: the end of what it printed."""

    kind = "exporter_died"

    def __init__(self, returned: int, log: str) -> None:
        self.status = returned if returned >= 0 else None
        self.signal = -returned if returned < 0 else None
        self.log = log
        how = f"with status {returned}"
        if self.signal is not None:
            how = f"by signal {self.signal} ({signal.Signals(self.signal).name})"
        last = log.strip().splitlines()[-1:]
        super().__init__(
            f"the process that exports with the checkout ended {how}"
            + (f": {last[0]}" if last else ""),
            hint="signal 9 without a word is most often the kernel's, for want of memory: run it "
            "again with fewer jobs beside it",
        )


def export_with(
    exporter: CheckoutExporter | None,
    requests: Sequence[ExportRequest],
    on_event: OnEvent = batch.ignore,
) -> list[ExportResult]:
    """As ``batch.export``, by the installed wheel when there is no ``exporter``.

    A child that dies takes only the model with it that it was exporting.
    """
    if exporter is None:
        return batch.export(requests, on_event)
    origin = Origin(exporter.versions)
    results, missing = batch.look_up(requests, on_event, origin)
    waiting = _Waiting(requests, missing, results, on_event)
    while waiting.keys:
        on_event(ExportEvent("preparing", waiting.first()))
        _run_child(exporter, waiting)
    return [_by(exporter, results[index]) for index in range(len(requests))]


def _by(exporter: CheckoutExporter, result: ExportResult) -> ExportResult:
    """A program of equal content may have been made at another commit."""
    if result.program is None:
        return result
    return replace(result, program=replace(result.program, exporter=exporter.facts))


@dataclass
class _Waiting:
    """What has no result yet: ``keys`` by index of the request, and which key has begun."""

    requests: Sequence[ExportRequest]
    keys: dict[int, str]
    results: dict[int, ExportResult]
    on_event: OnEvent
    begun: str | None = None
    started: float = field(default_factory=time.monotonic)

    def first(self) -> ExportRequest:
        return self.requests[next(iter(self.keys))]

    def each_key(self) -> dict[str, ExportRequest]:
        """Two requests may be for one program."""
        return {key: self.requests[index] for index, key in self.keys.items()}

    def hear(self, key: str, event: Mapping[str, Any]) -> None:
        kind, seconds = str(event["event"]), float(event["seconds"])
        notes = tuple(map(str, event["notes"]))
        if kind in ("started", "waiting"):
            self.begun = key
            self.on_event(ExportEvent(kind, self.each_key()[key], notes=notes))
            return
        self.begun = None
        if event["error"] is not None:
            self.settle(key, restored(event["error"]), cached=False, seconds=seconds)
            return
        program = None
        with suppress(cache.NotAsStored):
            program = cache.at(Path(event["place"]))
        program = None if program is None else replace(program, notes=notes)
        self.settle(key, program, cached=kind == "cached", seconds=seconds)

    def settle(
        self, key: str, made: Program | HarnessError | None, *, cached: bool, seconds: float
    ) -> None:
        program = made if isinstance(made, Program) else None
        error = made if isinstance(made, HarnessError) else None
        if made is None:
            error = InfraError(f"the exported program {key} is not in the cache", path=key)
        kind = "failed" if error is not None else "cached" if cached else "done"
        for index in [i for i, k in self.keys.items() if k == key]:
            del self.keys[index]
            request = self.requests[index]
            self.results[index] = ExportResult(request, program, error, cached, seconds)
            self.on_event(ExportEvent(kind, request, seconds, error, program))

    def give_up(self, error: HarnessError) -> None:
        """What the child was at, or, if it had not begun, everything."""
        for key in [self.begun] if self.begun is not None else list(self.each_key()):
            self.settle(key, error, cached=False, seconds=time.monotonic() - self.started)
        self.begun = None


def _run_child(exporter: CheckoutExporter, waiting: _Waiting) -> None:
    """One child for all that waits; afterwards at least one has its result."""
    keys = list(waiting.each_key())
    before = len(waiting.keys)
    with tempfile.TemporaryFile() as log, _child(exporter, waiting.each_key(), log) as there:
        child, answers = there
        for text in answers:
            answer = _parsed(text)
            if "broken" in answer:
                error = restored(answer["broken"])
                if isinstance(error, ImportFailed):
                    error = ExporterUnusable(exporter, error, _tail(log))
                waiting.give_up(error)
            elif answer:
                waiting.hear(keys[answer["index"]], answer)
        returned = child.wait()
        if returned or len(waiting.keys) == before:
            waiting.give_up(ExporterDied(returned, _tail(log)))


def _parsed(text: str) -> dict[str, Any]:
    """Nothing for a line that a killed child did not end."""
    try:
        answer = json.loads(text)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


@contextmanager
def _child(
    exporter: CheckoutExporter, requests: Mapping[str, ExportRequest], log: IO[bytes]
) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """The process, and its answers. Nothing of it is left afterwards."""
    reading, writing = os.pipe()
    order = Order(
        environment=str(exporter.environment),
        root=str(exporter.root),
        sources=exporter.sources,
        versions=dict(exporter.versions),
        requests=tuple(requests.values()),
        channel=writing,
    )
    with os.fdopen(reading, encoding="utf-8", errors="replace") as answers:
        try:
            child = subprocess.Popen(
                [sys.executable, "-c", _START.format("harness.export.checkout.child")],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(writing,),
                env=_environment(exporter.environment),
                start_new_session=True,  # so that all of it can be ended
                text=True,
            )
        finally:
            os.close(writing)
        try:
            assert child.stdin is not None
            with suppress(BrokenPipeError), child.stdin:
                child.stdin.write(order.text())
            yield child, answers
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()


def _environment(environment: Path) -> dict[str, str]:
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = [str(environment), str(import_root()), *filter(None, inherited)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def _tail(log: IO[bytes]) -> str:
    size = os.fstat(log.fileno()).st_size
    text = os.pread(log.fileno(), size, 0).decode(errors="replace")
    return "\n".join(text.splitlines()[-_LOG_LINES:])
