"""The process in which torch and ExecuTorch's Python run.

The harness never imports them: a model's file, torch, Vela and the TOSA reference model may print,
exit, crash, hang or fork, and must not take a verdict with them. ``ExportProcess`` starts a fork
server when it is first needed, and another one when that has ended: it has imported torch, which
takes seconds, and answers each request by a fork of itself, which takes milliseconds. Whatever a
model's file does to its process, the next request gets a process as the imports left it.
``child/main.py`` is the other side.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.core.errors import ExportError, HarnessError, InfraError
from harness.export.failures import ExporterUnusable, ImportFailed
from harness.export.wire import Answers, Stopped, value_of
from harness.system.call import TiedProcess
from harness.system.cancellation import is_cancelled, raise_if_cancelled
from harness.system.confine import ENVIRONMENT, ResourceLimits, confined
from harness.system.paths import data_root, import_root
from harness.system.process import tree_processes
from harness.system.quota import Account, Quota
from harness.system.settings import settings

if TYPE_CHECKING:
    from harness.export.checkout import CheckoutExporter

REQUEST_SECONDS = 1800.0  # the largest model tried takes 90 s on a busy machine
TEMPORARY = "tmp"  # below the only folder that a confined process can write to
_START_SECONDS = 300.0
_HALF = 1 << 19  # bytes of what it prints are kept from the beginning, and from the end
_LOG_LINES = 20
_TICK_SECONDS = 0.5
_END_SECONDS = 5.0
_QUOTA = Quota(file_bytes=2 << 30, total_bytes=4 << 30, files=20_000)
_START = (
    "import sys; sys.path[:] = {path!r}; "
    "from harness.export.child.main import main; main(*{argv!r})"
)
_LIBRARIES = ("stdlib", "platstdlib", "purelib", "platlib")


@dataclass(frozen=True)
class Sandbox:
    """A sandbox without network: reads Python and ``readable``, writes to ``writable``."""

    writable: Path
    readable: tuple[Path, ...] = ()


class _Output:
    """The output of the process since ``clear``, bounded."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._kept, self._dropped = bytearray(), 0

    def collect(self, descriptor: int) -> None:
        """Read what is in the pipe now, a flood in portions, so that time limits hold."""
        for _ in range(64):
            try:
                data = os.read(descriptor, 1 << 16)
            except BlockingIOError:
                return
            if not data:
                return
            self._kept += data
            if (excess := len(self._kept) - 2 * _HALF) > 0:
                del self._kept[_HALF : _HALF + excess]
                self._dropped += excess

    def text(self) -> str:
        cut = f"\n[{self._dropped} bytes left out]\n".encode() if self._dropped else b""
        return (self._kept[:_HALF] + cut + self._kept[_HALF:]).decode(errors="replace")

    def tail(self) -> str:
        return "\n".join(self.text().splitlines()[-_LOG_LINES:])


class _ForkServer:
    """The process, and what it and its forks print (``output``).

    Over ``_control`` each request goes as one byte with the fork's socket, and the fork's status
    comes back. Its end of file tells the process to end the fork, and itself.
    """

    def __init__(self, environment: Path | None, sandbox: Sandbox | None) -> None:
        """``environment``: where ``executorch`` is imported from; None: the installed wheel."""
        self.output = _Output()
        self.busy = False  # a request is not answered yet
        self._account = None if sandbox is None else Account(sandbox.writable, _QUOTA)
        with ExitStack() as stack:
            control, theirs = socket.socketpair()
            self._control = stack.enter_context(control)
            self._statuses = Answers(control)
            self._printed, printed = os.pipe()
            stack.callback(os.close, self._printed)
            os.set_blocking(self._printed, False)
            with theirs, open(printed, "wb") as stream:
                self._process = _launched(environment, sandbox, theirs, stream.fileno(), stack)
            self._stack = stack.pop_all()

    def wait_ready(self) -> None:
        """Wait until it has imported. Raises Stopped, and the HarnessError that prevents all."""
        started = time.monotonic()
        while (message := self._wait(started, _START_SECONDS)) is None:
            pass
        value_of(message)

    def call(
        self, request: tuple[Any, ...], seconds: float, on_stage: Callable[[str], None]
    ) -> Any:
        """Return the function's result. ``request``: its name and its arguments.

        Raises Stopped, and the function's own exception."""
        started, status, result = time.monotonic(), None, None
        self.output.clear()
        self.busy = True
        ours, theirs = socket.socketpair()
        try:
            with ours:
                with theirs:
                    socket.send_fds(self._control, [b"f"], [theirs.fileno()])
                ours.sendall(pickle.dumps(request))
                ours.shutdown(socket.SHUT_WR)
                answers = Answers(ours)
                while status is None:
                    status = self._wait(started, seconds, answers)
                    for message in answers.available():
                        if "stage" in message:
                            on_stage(str(message["stage"]))
                        else:
                            result = result or message
        except (BrokenPipeError, ConnectionResetError):
            raise Stopped(*_how(self.close())) from None
        self.busy = False
        if result is None:
            raise Stopped(*_how(int(status["status"])))
        return value_of(result)

    def _wait(
        self, started: float, seconds: float, answers: Answers | None = None
    ) -> dict[str, Any] | None:
        """Wait a short time. Returns a message of the process itself, or None."""
        raise_if_cancelled()
        if time.monotonic() - started > seconds:
            raise Stopped(f"did not finish within {seconds:.0f} s and was ended")
        unfinished = [] if answers is None or answers.ended else [answers.connection]
        wait([self._control, self._printed, *unfinished], _TICK_SECONDS)
        statuses = self._statuses.available()
        self.output.collect(self._printed)
        if statuses:
            return statuses[0]
        if self._statuses.ended:
            raise Stopped(*_how(self.close()))
        if self._account is not None:
            excess = self._account.excess(tree_processes(self._process.pid))
            if excess is not None:
                raise Stopped(f"wrote too much ({excess}) and was ended")
        return None

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def close(self) -> int:
        """End the process and its fork. Returns its status."""
        self._stack.close()
        if not is_cancelled():
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_SECONDS)
        return self._process.end()


class _Ended(HarnessError):
    """The export process ended, or was ended, without an answer.

    ``status`` or ``signal``: how it ended, both None when the harness ended it; ``log``: the end of
    what it printed."""

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
        """Set up. ``exporter``: a checkout that is imported; None: the installed wheel."""
        self._exporter = exporter
        self._sandbox = sandbox
        self._server: _ForkServer | None = None
        self._broken: HarnessError | None = None
        self.log = ""  # what the last request printed

    def call(
        self,
        function: str,
        *arguments: object,
        task: str,
        on_stage: Callable[[str], None] = lambda _: None,
    ) -> Any:
        """Return the result of ``function`` ("module:name" below ``child``) as plain data.

        ``task`` names the work in messages, such as "the export of ds_cnn". Raises the HarnessError
        that the function raised, ExportProcessFailed for a process that gave no answer, and
        ImportFailed, ExporterUnusable, InfraError or ExporterDied when torch and ExecuTorch cannot
        be imported; then every later call does so."""
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

    def _ready(self) -> _ForkServer:
        if self._broken is not None:
            raise self._broken
        if self._server is not None and self._server.has_ended():
            self.close()
        if self._server is None:
            environment = self._exporter.environment if self._exporter else None
            self._server = _ForkServer(environment, self._sandbox)
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


def _launched(
    environment: Path | None,
    sandbox: Sandbox | None,
    control: socket.socket,
    printed: int,
    stack: ExitStack,
) -> TiedProcess:
    inherited = [str(import_root()), *filter(None, sys.path)]  # not the current directory
    path = [str(environment), *inherited] if environment else inherited
    code = _START.format(
        path=path, argv=[control.fileno(), sandbox is not None, str(environment or "")]
    )
    # bytecode in a checkout's environment would be a part of the cache without a seal
    unwritten = ["-B"] if environment else []
    argv, descriptors = [sys.executable, "-u", *unwritten, "-c", code], [control.fileno()]
    options: dict[str, Any] = {}
    if sandbox is not None:
        python = Path(sys.executable).resolve()  # links of a virtual environment lead outside
        prefix = stack.enter_context(
            confined(
                sandbox.writable,
                python,
                list(_readable(sandbox)),
                ResourceLimits(file_bytes=_QUOTA.file_bytes),
                forks=True,
            )
        )
        argv = [*prefix.prefix, str(python), "-u", "-I", "-S", "-c", code]
        descriptors += prefix.descriptors
        options = {"cwd": sandbox.writable, "env": ENVIRONMENT}
    return TiedProcess(argv, descriptors, stdout=printed, stderr=printed, **options)


def _how(returned: int) -> tuple[str, int]:
    if returned >= 0:
        return f"ended with status {returned} and gave no result", returned
    try:
        name = f" ({signal.Signals(-returned).name})"
    except ValueError:
        name = ""
    return f"was ended by signal {-returned}{name}", returned


def _readable(sandbox: Sandbox) -> Iterator[Path]:
    yield from (import_root() / "harness", data_root() / "targets", Path(sys.base_prefix) / "lib")
    libraries: Sequence[str | None] = [sysconfig.get_path(name) for name in _LIBRARIES]
    for place in filter(None, (*sys.path, *libraries)):
        if place.endswith(("-packages", "lib-dynload")) or "/python3" in place:
            yield Path(place)
    yield from sandbox.readable
