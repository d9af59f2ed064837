"""The process in which torch and ExecuTorch's Python run.

The harness never imports them: a model's file, torch, Vela and the TOSA reference model may print,
exit, crash, hang or fork, and must not take a verdict with them. ``ExportProcess`` starts
``harness.export.child.main`` when it is first needed, sends requests to a copy of that process, and
makes another copy after a failure. What the copy writes to its standard output and error is
collected for each request (``running.py``).
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harness.core.errors import ExportError, HarnessError, InfraError
from harness.export.failures import ExporterUnusable, ImportFailed
from harness.export.running import START_SECONDS, Running, Stopped, Walls, fork, start, value_of
from harness.system.settings import settings

if TYPE_CHECKING:
    from harness.export.checkout import CheckoutExporter

REQUEST_SECONDS = 1800.0  # the largest model tried takes 90 s on a busy machine


class ExportProcessFailed(ExportError):
    """The export process ended, or was ended, without an answer. ``status`` or ``signal``: how it
    ended, both None when the harness ended it; ``log``: the end of what it printed."""

    kind = "export_process"

    def __init__(self, task: str, why: str, returned: int | None, log: str, *, walls: bool) -> None:
        self.status = returned if returned is not None and returned >= 0 else None
        self.signal = -returned if returned is not None and returned < 0 else None
        self.log = log
        super().__init__(f"{task}: {_sentence(why, log)}", hint=_hint(self.signal, walls=walls))


class ExporterDied(InfraError):
    """The export process ended before it had imported torch and ExecuTorch. Attributes: as in
    ExportProcessFailed."""

    kind = "exporter_died"

    def __init__(self, why: str, returned: int | None, log: str) -> None:
        self.status = returned if returned is not None and returned >= 0 else None
        self.signal = -returned if returned is not None and returned < 0 else None
        self.log = log
        super().__init__(
            _sentence(f"{why} before it had imported torch and ExecuTorch", log),
            hint=_hint(self.signal, walls=False),
        )


def _sentence(why: str, log: str) -> str:
    last = log.strip().splitlines()[-1:]
    return f"the export process {why}" + (f": {last[0]}" if last else "")


def _hint(number: int | None, *, walls: bool) -> str:
    if walls:
        return (
            "with --isolate-export a model's file can read only its own folder and write only its "
            "result; without the option it runs with your rights"
        )
    if number == signal.SIGKILL:
        return "most often the kernel ends a process so for want of memory: run fewer jobs at once"
    return (
        "the model's file, or a library that it loads, may end the process; the log has its output"
    )


class _Template:
    """A process that has imported torch and ExecuTorch, started when it is first needed. It exports
    nothing, so that it has one thread and is as the imports left it: its copies export."""

    def __init__(self, exporter: CheckoutExporter | None, walls: Walls | None) -> None:
        self._exporter = exporter
        self._walls = walls
        self._running: Running | None = None
        self._broken: HarnessError | None = None

    def copy(self) -> Running:
        """Behind walls the process itself. Raises what ``ExportProcess.call`` does when torch and
        ExecuTorch cannot be imported; then every later call does so."""
        if self._broken is not None:
            raise self._broken
        if self._running is not None and self._running.has_ended():
            self.close()
        try:
            if self._running is None:
                environment = self._exporter.environment if self._exporter else None
                self._running = start(environment, self._walls)
                value_of(self._running.receive(START_SECONDS))
            return self._running if self._walls else fork(self._running)
        except Stopped as stopped:
            self._broken = ExporterDied(stopped.why, stopped.returned, self._log())
        except HarnessError as error:
            self._broken = error
            if isinstance(error, ImportFailed) and self._exporter is not None:
                self._broken = ExporterUnusable(self._exporter, error, self._log())
        self.close()
        raise self._broken

    def _log(self) -> str:
        if self._running is None:
            return ""
        self._running.collect_output()
        return self._running.output.tail()

    def close(self) -> None:
        if self._running is not None:
            self._running.close()
            self._running = None


class ExportProcess:
    """Not thread-safe. A ``with`` block ends what is still running."""

    def __init__(
        self, exporter: CheckoutExporter | None = None, walls: Walls | None = None
    ) -> None:
        """``exporter``: a checkout whose ``executorch`` is imported; None: the installed wheel."""
        self._walls = walls
        self._template = _Template(exporter, walls)
        self._running: Running | None = None
        self.log = ""  # what the last request printed

    @contextmanager
    def another(self) -> Iterator[ExportProcess]:
        """One more process, which no request of this one has changed. It takes milliseconds where
        torch and ExecuTorch were imported for this one. Without walls only."""
        other = ExportProcess()
        other._template = self._template
        try:
            yield other
        finally:
            other._end()

    def call(
        self,
        function: str,
        *arguments: object,
        task: str,
        on_stage: Callable[[str], None] = lambda _: None,
    ) -> Any:
        """The result of ``function`` ("module:name" below ``harness.export.child``) as plain data.

        ``task`` names the work in messages, such as "the export of ds_cnn".

        Raises the HarnessError or OSError that the function raised, ExportProcessFailed for a
        process that gave no answer, and ImportFailed, ExporterUnusable, NotTheCheckout or
        ExporterDied when torch and ExecuTorch cannot be imported; then every later call does so.
        """
        if self._running is not None and self._running.has_ended():
            self._end()
        if self._running is None:
            self._running = self._template.copy()
        running = self._running
        running.collect_output()  # what was printed while torch was imported
        running.output.clear()
        running.send(function, *arguments)
        try:
            message = self._result(running, on_stage)
            running.collect_output()
            self.log = running.output.text()
            return value_of(message)
        except Stopped as stopped:
            running.end()
            running.collect_output()
            self._end()
            self.log = running.output.text()
            raise ExportProcessFailed(
                task,
                stopped.why,
                stopped.returned,
                running.output.tail(),
                walls=self._walls is not None,
            ) from None
        except ExportError as error:
            error.log = running.output.tail()
            raise

    def _result(self, running: Running, on_stage: Callable[[str], None]) -> dict[str, Any]:
        seconds, since = REQUEST_SECONDS * settings().limit_factor, time.monotonic()
        while True:
            message = running.receive(seconds, since)
            if "forked" in message:
                raise Stopped("forked a copy of itself that went on exporting, and was ended")
            if "stage" not in message:
                return message
            on_stage(str(message["stage"]))

    def _end(self) -> None:
        if self._running is not None:
            self._running.close()
            self._running = None

    def close(self) -> None:
        self._end()
        self._template.close()

    def __enter__(self) -> ExportProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
