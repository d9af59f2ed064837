"""Runs one program on a board of a labgrid environment, in a process of its own.

``harness.sim.board`` starts it in the run's directory. Its output is the console of the run, its
exit status the runner's.

A failure is reported in a line that begins with "hil: ", on the console and on the pipe of the
report, which the program on the board cannot write to."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from labgrid import Environment
from labgrid.exceptions import NoDriverFoundError
from labgrid.protocol import BootstrapProtocol, ConsoleProtocol, PowerProtocol, ResetProtocol
from pexpect import TIMEOUT

from harness.config.schema import checked
from harness.sim.board import JOB, BoardJob
from harness.sim.driving_process import BEGAN, Reporter, driven
from harness.sim.guest.console import Closed, GuestProblem
from harness.sim.linux_session import LinuxJob, run_session
from harness.sim.program_image import intel_hex, make_image
from harness.sim.serial_frames import (
    BoardRestarted,
    FrameReader,
    LineDamaged,
    add_part,
    missing_beginning,
)
from harness.system.files import read_regular

SERIAL_LOG = "serial.log"  # every byte of the line
_IMAGE, _FIRMWARE = "program.hex", "firmware.elf"
_OWN = (JOB, SERIAL_LOG)
_ENDLESS = 86400.0  # seconds


class LabBoard:
    """A board of labgrid, switched on unless it has Linux, as a ``ConsoleStream``.

    Raises GuestProblem."""

    def __init__(self, job: BoardJob, report: Reporter) -> None:
        self._job = job
        self.report = report
        self.target = Environment(job.lab).get_target(job.board.role)
        if self.target is None:
            raise GuestProblem(
                f"the board cannot be driven: {job.lab} has no target {job.board.role!r}"
            )
        self._power, self._reset = self._driver(PowerProtocol), self._driver(ResetProtocol)
        self._bootstrap = self._driver(BootstrapProtocol)
        if self._bootstrap is None and not job.board.flash and job.linux is None:
            raise GuestProblem(
                f"the board cannot be driven: {job.lab} has no driver that flashes, and the target "
                "no command for it (`flash`)"
            )
        if self._power is not None and job.linux is None:
            self._power.on()
            if hasattr(self._power, "get") and not self._power.get():
                raise GuestProblem("the board cannot be driven: its power stays off")
        self._console = self.target.get_driver(ConsoleProtocol)
        self._log = Path(SERIAL_LOG)
        self._log.write_bytes(b"")

    def _driver(self, protocol: type) -> Any:
        try:
            return self.target.get_driver(protocol)
        except NoDriverFoundError:
            return None

    def flash(self, file: str) -> None:
        """Flashes a file; the board restarts afterwards."""
        board = self._job.board
        signal.setitimer(signal.ITIMER_REAL, board.flash_seconds)
        if board.flash:
            argv = [argument.replace("{file}", file) for argument in board.flash]
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        else:
            self._bootstrap.load(file)
        signal.setitimer(signal.ITIMER_REAL, 0)

    def restart(self) -> None:
        if self._reset is not None:
            self._reset.reset()
        elif self._power is not None:
            self._power.cycle()
        else:
            self.flash(str(Path(_IMAGE).absolute()))

    def boot(self) -> None:
        """Start a board with Linux, whatever it did before."""
        if self._power is None and self._reset is None:
            raise GuestProblem("the board cannot be driven: no driver switches it on or resets it")
        self.read(0)  # drop old output: its prompt is not of this run
        if self._power is not None:
            self._power.cycle()
        else:
            self._reset.reset()

    def ssh(self) -> tuple[str, ...]:
        """Return the command that runs another on the board. Raises GuestProblem."""
        driver = self.target.get_driver("SSHDriver", activate=False)
        try:
            self.target.activate(driver)
        except Exception as error:  # a boundary: labgrid raises just that
            raise GuestProblem(f"the guest refuses ssh: {error}") from error
        service = driver.networkservice
        user = driver.username or service.username
        return ("ssh", *driver.ssh_prefix, "-p", str(service.port), "-l", user, service.address)

    def send(self, data: bytes) -> object:
        return self._console.write(data)

    def read_nonblocking(self, size: int, timeout: float | None) -> bytes:
        data = self.read(_ENDLESS if timeout is None else timeout)
        if not data:
            raise TIMEOUT("nothing came")
        return data

    def read(self, seconds: float) -> bytes:
        """Return the received bytes; b"" when none came in time."""
        try:
            data = bytes(self._console.read(size=1, timeout=max(seconds, 0.01)))
        except TIMEOUT:
            return b""
        except OSError as error:
            raise GuestProblem(
                f"the serial line broke off: {error}; is the cable in place?"
            ) from error
        with self._log.open("ab") as log:
            log.write(data)
        return data


def run(board: LabBoard, job: BoardJob) -> int:
    """Run the program and write its outputs to files. Return the runner's exit status.

    Repeats the run once after a damaged line. Raises GuestProblem."""
    shutil.copyfile(job.elf, _FIRMWARE)  # flashing tools decide by the suffix
    board.flash(str(Path(_FIRMWARE).absolute()))
    files = {name: read_regular(Path(name)) for name in job.arguments if Path(name).is_file()}
    image = make_image(job.run, job.arguments, files, job.room)
    Path(_IMAGE).write_text(intel_hex(job.address, image))
    board.flash(str(Path(_IMAGE).absolute()))
    try:
        return _listen(board, job)
    except LineDamaged as damage:
        first = damage
        print(f"hil: the serial line was damaged, {first}: the board runs once more", flush=True)
    board.restart()
    try:
        return _listen(board, job)
    except LineDamaged as damage:
        raise GuestProblem(
            f"the board's console was damaged twice, {first}, then {damage}; check cable, ground "
            f"and speed ({SERIAL_LOG} has the bytes)"
        ) from damage


def _listen(board: LabBoard, job: BoardJob) -> int:
    """Read one run of the board. Raises LineDamaged, GuestProblem."""
    reader, files = FrameReader(job.run), dict[str, bytes]()
    answer, began = time.monotonic() + job.board.answer_seconds, False
    try:
        while True:
            data = board.read(job.stall if reader.began else answer - time.monotonic())
            if reader.began and not data:
                raise GuestProblem(f"the board said nothing for {job.stall:g} s")
            frames = list(reader.feed(data))
            if reader.began and not began:
                began = True
                board.report(BEGAN)
            for _, kind, content in frames:
                if kind == "L":
                    sys.stdout.buffer.write(content + b"\n")
                    sys.stdout.buffer.flush()
                elif kind == "F":
                    add_part(files, content)
                elif kind == "X":
                    for name, output in files.items():
                        Path(name).write_bytes(output)
                    return int(content)
            if not reader.began and time.monotonic() > answer:
                raise _no_answer(reader, job)
    except BoardRestarted as restart:
        if not began:
            board.report(BEGAN)
        raise GuestProblem(
            f"the board began again after {restart}; check its supply, and what may reset it "
            "(watchdog, brown-out, debugger)"
        ) from restart


def _no_answer(reader: FrameReader, job: BoardJob) -> Exception:
    if reader.spoilt is not None:
        return missing_beginning(reader.spoilt)
    if reader.other_run is not None:
        return GuestProblem(
            f"the board runs another program image ({reader.other_run}) than was flashed "
            f"({job.run}); does flashing report success without writing?"
        )
    return GuestProblem(
        f"the board did not answer within {job.board.answer_seconds:g} s ({reader.received} bytes "
        "came that no runner sends); look at power, wiring, and the speed of the line"
    )


def _late(*_: object) -> None:
    raise GuestProblem("the board cannot be driven: flashing it took too long")


def run_linux(board: LabBoard, job: LinuxJob) -> int:
    """Boots a board with Linux and runs the program on it. Raises GuestProblem."""
    board.boot()
    files = [path for path in Path().iterdir() if path.is_file() and path.name not in _OWN]
    try:
        run_session(job, files, board, board.ssh, board.report)
    except Closed:
        raise GuestProblem("the serial line broke off: it was closed") from None
    return 0


def main(file: str, descriptor: str) -> int:
    signal.signal(signal.SIGALRM, _late)
    job = checked(BoardJob, json.loads(Path(file).read_text()))
    report = Reporter(int(descriptor))
    with ExitStack() as stack:
        return driven(lambda: _run_on(stack, job, report), report)


def _run_on(stack: ExitStack, job: BoardJob, report: Reporter) -> int:
    board = LabBoard(job, report)
    stack.callback(board.target.cleanup)
    status = run(board, job) if job.linux is None else run_linux(board, job.linux)
    return status if status in range(256) else 255  # of a larger one the low bits are seen


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
