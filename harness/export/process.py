"""The process in which torch and ExecuTorch's Python run.

The harness never imports them: a model's file, torch, Vela and the TOSA reference model may print,
exit, crash, hang or fork, and must not take a verdict with them. ``ExportProcess`` starts a fork
server when it is first needed, and another one when that has ended; each request is answered by
a fork. What the fork writes to its standard output and error is collected.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.core.errors import ExportError, HarnessError, InfraError
from harness.export.failures import ExporterUnusable, ImportFailed
from harness.export.fork_server import ForkServer, Sandbox, Stopped
from harness.system.settings import settings

if TYPE_CHECKING:
    from harness.export.checkout import CheckoutExporter

REQUEST_SECONDS = 1800.0  # the largest model tried takes 90 s on a busy machine


class _Ended(HarnessError):
    """The export process ended, or was ended, without an answer. ``status`` or ``signal``: how it
    ended, both None when the harness ended it; ``log``: the end of what it printed."""

    def __init__(self, text: str, returned: int | None, log: str, *, sandbox: bool = False) -> None:
        self.status = returned if returned is not None and returned >= 0 else None
        self.signal = -returned if returned is not None and returned < 0 else None
        self.log: str | None = log
        last = "".join(f": {line[-400:]}" for line in log.strip().splitlines()[-1:])
        super().__init__(f"{text}{last}", hint=_hint(self.signal, sandbox=sandbox))


class ExportProcessFailed(_Ended, ExportError):
    """While it did what was asked."""

    kind = "export_process"


class ExporterDied(_Ended, InfraError):
    """Before it had imported torch and ExecuTorch."""

    kind = "exporter_died"


def _hint(number: int | None, *, sandbox: bool) -> str:
    if sandbox:
        return (
            "with --isolate-export a model's file can read only its own folder and write only its "
            "result; without the option it runs with your rights"
        )
    if number == signal.SIGKILL:
        return "most often the kernel ends a process so for want of memory: run fewer jobs at once"
    return (
        "the model's file, or a library that it loads, may end the process; the log has its output"
    )


class ExportProcess:
    """Not thread-safe. A ``with`` block ends what is still running."""

    def __init__(
        self, exporter: CheckoutExporter | None = None, sandbox: Sandbox | None = None
    ) -> None:
        """``exporter``: a checkout whose ``executorch`` is imported; None: the installed wheel."""
        self._exporter = exporter
        self._sandbox = sandbox
        self._server: ForkServer | None = None
        self._broken: HarnessError | None = None
        self.log = ""  # what the last request printed

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
        process that gave no answer, and ImportFailed, ExporterUnusable, InfraError or
        ExporterDied when torch and ExecuTorch cannot be imported; then every later call does so.
        """
        server = self._ready()
        seconds = REQUEST_SECONDS * settings().limit_factor
        try:
            return server.call((function, *arguments), seconds, on_stage)
        except Stopped as stopped:
            text, sandbox = f"{task}: the export process {stopped.why}", self._sandbox is not None
            log = server.output.tail()
            raise ExportProcessFailed(text, stopped.returned, log, sandbox=sandbox) from None
        except ExportError as error:
            error.log = server.output.tail()
            raise
        finally:
            self.log = server.output.text()
            if server.busy:
                self.close()

    def _ready(self) -> ForkServer:
        if self._broken is not None:
            raise self._broken
        if self._server is not None and self._server.has_ended():
            self.close()
        if self._server is None:
            environment = self._exporter.environment if self._exporter else None
            self._server = ForkServer(environment, self._sandbox)
            try:
                self._server.wait_ready()
            except (Stopped, HarnessError) as error:
                self._broken = self._why_broken(error, self._server.output.tail())
                self.close()
                raise self._broken from None
        return self._server

    def _why_broken(self, error: Stopped | HarnessError, log: str) -> HarnessError:
        if isinstance(error, Stopped):
            text = f"the export process {error.why} before it had imported torch and ExecuTorch"
            return ExporterDied(text, error.returned, log)
        if isinstance(error, ImportFailed) and self._exporter is not None:
            return ExporterUnusable(self._exporter, error, log)
        return error

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def __enter__(self) -> ExportProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
