"""One started export process: its pipes, what it printed, and how it ended.

``start`` begins a new one. ``fork`` makes a copy of one that has imported torch and ExecuTorch and
has exported nothing: that takes milliseconds, the imports take seconds.
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
from functools import partial
from pathlib import Path
from typing import Any

from harness.export.wire import AnswerReader, BadMessage, frame, restored
from harness.system.confine import ENVIRONMENT, confined
from harness.system.paths import import_root
from harness.system.quota import Account, Quota

TEMPORARY = "tmp"  # below the only folder that a confined process can write to
START_SECONDS = 300.0
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


class Stopped(Exception):
    """``returned``: as of Popen, negative for a signal; None: the harness ended the process."""

    def __init__(self, why: str, returned: int | None = None) -> None:
        self.why, self.returned = why, returned


@dataclass(frozen=True)
class Walls:
    """A sandbox for the process: it reads the Python environment and ``readable``, writes only to
    ``writable``, and has no network."""

    writable: Path
    readable: tuple[Path, ...] = ()


class Output:
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


Ends = tuple[int, int, int]  # of a process: requests, replies, what it prints
Begin = Callable[[ExitStack, Ends], tuple[int, Callable[[], int]]]


class Running:
    """One process and the descriptors that lead to it."""

    def __init__(self, begin: Begin, account: Account | None = None) -> None:
        """``begin`` starts it with its ends of the pipes: its number, and what kills it with its
        group and gives its status as of Popen."""
        self.output = Output()
        self._answers: deque[dict[str, Any]] = deque()
        self._reader = AnswerReader()
        self._account = account
        self._status: int | None = None
        with ExitStack() as stack:
            requests, self._requests = os.pipe()
            self._replies, replies = os.pipe()
            self._printed, printed = os.pipe()
            for descriptor in (self._requests, self._replies, self._printed):
                stack.callback(os.close, descriptor)
            theirs = stack.enter_context(ExitStack())
            for descriptor in (requests, replies, printed):
                theirs.callback(os.close, descriptor)
            self.pid, self._kill = begin(stack, (requests, replies, printed))
            stack.callback(self.end)
            self._pidfd = os.pidfd_open(self.pid)
            stack.callback(os.close, self._pidfd)
            self._poll = select.poll()
            for descriptor in (self._replies, self._printed):
                os.set_blocking(descriptor, False)
            for descriptor in (self._replies, self._printed, self._pidfd):
                self._poll.register(descriptor, select.POLLIN)
            theirs.close()
            self._stack = stack.pop_all()

    def ask(self, function: str, *arguments: object) -> Any:
        """The result of what takes no time. Raises as ``value_of``."""
        if self._status is not None:
            raise Stopped("was ended", self._status)
        self.send(function, *arguments)
        return value_of(self.receive(START_SECONDS))

    def send(self, function: str, *arguments: object) -> None:
        with suppress(BrokenPipeError):  # its end shows in ``receive``
            view = memoryview(frame(pickle.dumps((function, arguments))))
            while view:
                view = view[os.write(self._requests, view) :]

    def receive(self, seconds: float, since: float | None = None) -> dict[str, Any]:
        """The next answer. Raises Stopped when there is none to come, or none within ``seconds``
        of ``since`` (time.monotonic; None: now)."""
        deadline = (time.monotonic() if since is None else since) + seconds
        while not self._answers:
            if time.monotonic() > deadline:
                raise Stopped(f"did not finish within {seconds:.0f} s and was ended")
            ready = {descriptor for descriptor, _ in self._poll.poll(_TICK_MS)}
            ended = self._pidfd in ready
            if ended or self._printed in ready:
                self.collect_output()
            if ended or self._replies in ready:
                self._collect_answers()
            if ended and not self._answers:
                raise Stopped(*_how(self.end()))
            if self._account is not None and (excess := self._account.excess()):
                raise Stopped(f"wrote too much ({excess}) and was ended")
        return self._answers.popleft()

    def has_ended(self) -> bool:
        return self._status is not None or self._pidfd in dict(self._poll.poll(0))

    def collect_output(self) -> None:
        for data in self._available(self._printed):
            self.output.add(data)

    def _collect_answers(self) -> None:
        for data in self._available(self._replies):
            try:
                self._answers.extend(self._reader.feed(data))
            except BadMessage:
                raise Stopped("wrote something that is no answer, and was ended") from None

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

    def end(self) -> int:
        """Kills the process and its group, also of one that has ended. Its status."""
        if self._status is None:
            self._status = self._kill()
        return self._status


def start(environment: Path | None, walls: Walls | None) -> Running:
    """A new process. Its first answer says that it is ready, or why it cannot export.
    ``environment``: where ``executorch`` is imported from; None: the installed wheel."""
    account = None if walls is None else Account(walls.writable, _QUOTA)
    return Running(partial(_launched, environment, walls), account)


def fork(template: Running) -> Running:
    """A copy of ``template``, which is ready. Raises as ``Running.ask``."""
    return Running(partial(_copied, template))


def _launched(
    environment: Path | None, walls: Walls | None, stack: ExitStack, ends: Ends
) -> tuple[int, Callable[[], int]]:
    requests, replies, printed = ends
    argv = [requests, replies, 0 if walls else os.getpid(), str(environment or "")]
    inherited = [str(import_root()), *filter(None, sys.path)]  # not the current directory
    path = [str(environment), *inherited] if environment else inherited
    code = _START.format(path=path, argv=argv)
    options: dict[str, Any] = {"start_new_session": True}
    command, descriptors = [sys.executable, "-u", "-c", code], [requests, replies]
    if walls is not None:
        python = Path(sys.executable).resolve()  # links of a virtual environment lead outside
        prefix = stack.enter_context(
            confined(walls.writable, python, list(_readable(walls)), file_bytes=_QUOTA.file_bytes)
        )
        command = [*prefix.prefix, str(python), "-u", "-I", "-S", "-c", code]
        descriptors += prefix.descriptors
        options = {"cwd": walls.writable, "env": ENVIRONMENT}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=printed,
        stderr=printed,
        pass_fds=descriptors,
        **options,
    )

    def kill() -> int:
        kill_group(process.pid)
        return process.wait()

    return process.pid, kill


def _copied(template: Running, _: ExitStack, ends: Ends) -> tuple[int, Callable[[], int]]:
    pid = int(template.ask("main:fork", os.getpid(), *ends))

    def kill() -> int:
        try:
            return int(template.ask("main:end", pid))
        except Stopped:
            return -signal.SIGKILL  # a copy ends with the process that it was made of

    return pid, kill


def kill_group(process: int) -> None:
    """Of a child that was not waited for: until then its number is its own."""
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            kill(process, signal.SIGKILL)


def value_of(message: dict[str, Any]) -> Any:
    """The result that an answer has. Raises the HarnessError or OSError that it has instead, and
    Stopped for what is no answer."""
    if "value" in message:
        return message["value"]
    try:
        if "os_error" in message:
            number, text, file = message["os_error"]
            raise OSError(int(number), str(text), str(file))
        error = restored(message["error"])
    except (BadMessage, KeyError, TypeError, ValueError):
        raise Stopped("wrote something that is no answer, and was ended") from None
    raise error


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
