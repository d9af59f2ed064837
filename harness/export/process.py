"""The process in which torch and ExecuTorch's Python run.

The harness never imports them: a model's file, torch, Vela and the TOSA reference model may print,
exit, crash, hang or fork, and must not take a verdict with them. ``ExportProcess`` starts
``harness.export.child.main`` when it is first needed, sends it requests, and starts another one
after a failure. What the process writes to its standard output and error is collected for each
request, at most ``_KEPT_BYTES`` of it.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import sys
import sysconfig
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.core.errors import ExportError, HarnessError, InfraError
from harness.export.failures import ExporterUnusable, ImportFailed
from harness.export.wire import AnswerReader, BadMessage, frame, restored
from harness.system.confine import ENVIRONMENT, confined
from harness.system.paths import import_root
from harness.system.quota import Account, Quota
from harness.system.settings import settings

if TYPE_CHECKING:
    from harness.export.checkout import CheckoutExporter

REQUEST_SECONDS = 1800.0  # the largest model tried takes 90 s on a busy machine
START_SECONDS = 300.0
TEMPORARY = "tmp"  # below the only folder that a confined process can write to
_KEPT_BYTES = 1 << 20  # of what it prints: half from the beginning, half from the end
_LOG_LINES = 20
_READ = 1 << 16
_TICK_MS = 500
_QUOTA = Quota(file_bytes=2 << 30, total_bytes=4 << 30, files=20_000)
_START = (
    "import sys; sys.path[:] = {path!r}; "
    "from harness.export.child.main import main; main(*{argv!r})"
)
_LIBRARIES = ("stdlib", "platstdlib", "purelib", "platlib")


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


class _Stopped(Exception):
    """``returned``: as of Popen, negative for a signal; None: the harness ended the process."""

    def __init__(self, why: str, returned: int | None = None) -> None:
        self.why, self.returned = why, returned


@dataclass(frozen=True)
class Walls:
    """A sandbox for the process: it reads the Python environment and ``readable``, writes only to
    ``writable``, and has no network."""

    writable: Path
    readable: tuple[Path, ...] = ()


class _Output:
    """What the process printed since ``clear``, bounded."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._head, self._tail, self._dropped = bytearray(), bytearray(), 0

    def add(self, data: bytes) -> None:
        half = _KEPT_BYTES // 2
        room = half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * half:
            self._dropped += len(self._tail) - half
            del self._tail[:-half]

    def text(self) -> str:
        cut = f"\n[{self._dropped} bytes left out]\n".encode() if self._dropped else b""
        return (bytes(self._head) + cut + bytes(self._tail)).decode(errors="replace")

    def tail(self) -> str:
        return "\n".join(self.text().splitlines()[-_LOG_LINES:])


class _Running:
    """One started process and the descriptors that lead to it."""

    def __init__(self, environment: Path | None, walls: Walls | None) -> None:
        self.output = _Output()
        self._answers: deque[dict[str, Any]] = deque()
        self._reader = AnswerReader()
        self._stack = ExitStack()
        with ExitStack() as stack:
            self._account = None if walls is None else Account(walls.writable, _QUOTA)
            self._start(stack, environment, walls)
            self._stack = stack.pop_all()

    def _start(self, stack: ExitStack, environment: Path | None, walls: Walls | None) -> None:
        requests, self._requests = os.pipe()
        self._replies, replies = os.pipe()
        self._printed, printed = os.pipe()
        for descriptor in (self._requests, self._replies, self._printed):
            stack.callback(os.close, descriptor)
        theirs = stack.enter_context(ExitStack())
        for descriptor in (requests, replies, printed):
            theirs.callback(os.close, descriptor)
        argv = [requests, replies, 0 if walls else os.getpid(), str(environment or "")]
        inherited = [str(import_root()), *filter(None, sys.path)]  # not the current directory
        path = [str(environment), *inherited] if environment else inherited
        code = _START.format(path=path, argv=argv)
        options: dict[str, Any] = {"start_new_session": True}
        command, descriptors = [sys.executable, "-u", "-c", code], [requests, replies]
        if walls is not None:
            python = Path(sys.executable).resolve()  # links of a virtual environment lead outside
            prefix = stack.enter_context(
                confined(
                    walls.writable, python, list(_readable(walls)), file_bytes=_QUOTA.file_bytes
                )
            )
            command = [*prefix.prefix, str(python), "-u", "-I", "-S", "-c", code]
            descriptors += prefix.descriptors
            options = {"cwd": walls.writable, "env": ENVIRONMENT}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            pass_fds=descriptors,
            **options,
        )
        stack.callback(self.end)
        self._pidfd = os.pidfd_open(self._process.pid)
        stack.callback(os.close, self._pidfd)
        self._poll = select.poll()
        for descriptor in (self._replies, self._printed):
            os.set_blocking(descriptor, False)
        for descriptor in (self._replies, self._printed, self._pidfd):
            self._poll.register(descriptor, select.POLLIN)
        theirs.close()

    def send(self, request: bytes) -> None:
        with suppress(BrokenPipeError):  # its end shows in ``receive``
            view = memoryview(frame(request))
            while view:
                view = view[os.write(self._requests, view) :]

    def receive(self, deadline: float, seconds: float) -> dict[str, Any]:
        """The next answer. Raises _Stopped when there is none to come, or none by ``deadline``."""
        while not self._answers:
            if time.monotonic() > deadline:
                raise _Stopped(f"did not finish within {seconds:.0f} s and was ended")
            ready = {descriptor for descriptor, _ in self._poll.poll(_TICK_MS)}
            ended = self._pidfd in ready
            if ended or self._printed in ready:
                self.collect_output()
            if ended or self._replies in ready:
                self._collect_answers()
            if ended and not self._answers:
                raise _Stopped(*_how(self._reaped()))
            if self._account is not None and (excess := self._account.excess()):
                raise _Stopped(f"wrote too much ({excess}) and was ended")
        return self._answers.popleft()

    def _reaped(self) -> int:
        """The status of the ended process. What it left in its group is killed first."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait()

    def collect_output(self) -> None:
        for data in self._available(self._printed):
            self.output.add(data)

    def _collect_answers(self) -> None:
        for data in self._available(self._replies):
            try:
                self._answers.extend(self._reader.feed(data))
            except BadMessage:
                raise _Stopped("wrote something that is no answer, and was ended") from None

    def _available(self, descriptor: int) -> Iterator[bytes]:
        """What is in a pipe now. A flood is read in portions, so that time limits still hold."""
        for _ in range(64):
            try:
                data = os.read(descriptor, _READ)
            except BlockingIOError:
                return
            if not data:
                with suppress(KeyError):
                    self._poll.unregister(descriptor)
                return
            yield data

    def close(self) -> None:
        self._stack.close()

    def end(self) -> None:
        """Kills the process and its group. Until it is reaped its number is its own."""
        if self._process.returncode is not None:
            return
        for kill in (os.killpg, os.kill):
            with suppress(ProcessLookupError, PermissionError):
                kill(self._process.pid, signal.SIGKILL)
        self._process.wait()


class ExportProcess:
    """Not thread-safe. A ``with`` block ends what is still running."""

    def __init__(
        self, exporter: CheckoutExporter | None = None, walls: Walls | None = None
    ) -> None:
        """``exporter``: a checkout whose ``executorch`` is imported; None: the installed wheel."""
        self._exporter = exporter
        self._walls = walls
        self._running: _Running | None = None
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
        process that gave no answer, and ImportFailed, ExporterUnusable, NotTheCheckout or
        ExporterDied when torch and ExecuTorch cannot be imported; then every later call does so.
        """
        if self._broken is not None:
            raise self._broken
        running = self._running or self._started()
        seconds = REQUEST_SECONDS * settings().limit_factor
        running.collect_output()  # what was printed while torch was imported
        running.output.clear()
        running.send(pickle.dumps((function, arguments)))
        try:
            message = self._result(running, time.monotonic() + seconds, seconds, on_stage)
            running.collect_output()
            self.log = running.output.text()
            if "value" in message:
                return message["value"]
            if "os_error" in message:
                raise _os_error(message)
            error = _restored(message)
        except _Stopped as stopped:
            running.end()
            running.collect_output()
            self.close()
            self.log = running.output.text()
            raise ExportProcessFailed(
                task,
                stopped.why,
                stopped.returned,
                running.output.tail(),
                walls=self._walls is not None,
            ) from None
        if isinstance(error, ExportError):
            error.log = running.output.tail()
        raise error

    def _started(self) -> _Running:
        running = _Running(self._exporter.environment if self._exporter else None, self._walls)
        self._running = running
        try:
            message = running.receive(time.monotonic() + START_SECONDS, START_SECONDS)
            if "ready" in message:
                return running
            self._broken = _restored(message)
        except _Stopped as stopped:
            running.collect_output()
            self._broken = ExporterDied(stopped.why, stopped.returned, running.output.tail())
        if isinstance(self._broken, ImportFailed) and self._exporter is not None:
            running.collect_output()
            self._broken = ExporterUnusable(self._exporter, self._broken, running.output.tail())
        self.close()
        raise self._broken

    def _result(
        self,
        running: _Running,
        deadline: float,
        seconds: float,
        on_stage: Callable[[str], None],
    ) -> dict[str, Any]:
        while True:
            message = running.receive(deadline, seconds)
            if "forked" in message:
                raise _Stopped("forked a copy of itself that went on exporting, and was ended")
            if "stage" not in message:
                return message
            on_stage(str(message["stage"]))

    def close(self) -> None:
        if self._running is not None:
            self._running.close()
            self._running = None

    def __enter__(self) -> ExportProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _restored(message: dict[str, Any]) -> HarnessError:
    try:
        return restored(message["error"])
    except (BadMessage, KeyError):
        raise _Stopped("wrote something that is no answer, and was ended") from None


def _os_error(message: dict[str, Any]) -> OSError:
    try:
        number, text, file = message["os_error"]
    except (TypeError, ValueError):
        raise _Stopped("wrote something that is no answer, and was ended") from None
    return OSError(int(number), str(text), str(file))


def _how(returned: int) -> tuple[str, int]:
    if returned >= 0:
        return f"ended with status {returned} and gave no result", returned
    try:
        name = f" ({signal.Signals(-returned).name})"
    except ValueError:
        name = ""
    return f"was ended by signal {-returned}{name}", returned


def _readable(walls: Walls) -> Iterator[Path]:
    yield from (import_root() / "harness", Path(sys.base_prefix) / "lib")
    libraries: Sequence[str | None] = [sysconfig.get_path(name) for name in _LIBRARIES]
    for place in filter(None, (*sys.path, *libraries)):
        if place.endswith(("-packages", "lib-dynload")) or "/python3" in place:
            yield Path(place)
    yield from walls.readable
