"""Runs an FVP that boots Linux, with an image that the user built; never seen on a real one.

meta-arm writes a ``.fvpconf`` for each image: JSON with the model's parameters, the files of its
flash and the name of the console (meta-arm, classes/fvpboot.bbclass). A process of the harness, in
the sandbox with the model and a network of their own, starts the model, reads the port of the
console from what it prints (meta-arm, lib/fvp/runner.py) and runs a session (``linux_session``).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Thread
from typing import Any

from pexpect import EOF, TIMEOUT
from pexpect.fdpexpect import fdspawn

from harness.config.fvp import Fvp
from harness.config.schema import Data, checked
from harness.config.target import Target
from harness.core.errors import InfraError
from harness.sim.driving_process import Report, Reporter, driven, own_files, record
from harness.sim.guest.console import Closed, GuestProblem, line_of
from harness.sim.linux_session import LinuxJob, linux_files, linux_job, run_session
from harness.sim.simulator import Companion, GuestJob, Launch
from harness.system import paths, toolchain
from harness.system.files import MALFORMED, disk_errors, read_json
from harness.system.settings import settings

JOB = "linux.json"
_CARD = "p_mmc_file"  # the last part of the parameter with the memory card's image
_SSH_PORT = "=2222=22"  # of this machine and of the guest, as in ExecuTorch's README
_END_SECONDS = 10.0  # from the request to end until the model is killed
_OPTIONS = (
    *("BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null"),
    *("LogLevel=ERROR", "ConnectTimeout=10", "ServerAliveInterval=15"),
)


@dataclass(frozen=True)
class FvpImage:
    """A ``.fvpconf``. ``words``: of the command line, besides the parameters."""

    file: Path
    parameters: dict[str, str]
    words: tuple[str, ...]
    console: str

    @property
    def files(self) -> tuple[Path, ...]:
        """Its folder, and what its values name elsewhere."""
        values = (v.partition("@")[0] for v in (*self.parameters.values(), *self.words))
        named = (Path(value.rpartition("=")[2]) for value in values)
        return (self.file.parent, *(p for p in named if p.is_absolute() and p.is_file()))


class NoImage(InfraError):
    kind = "no_image"

    def __init__(self, why: str, path: Path | None = None) -> None:
        super().__init__(
            f"no image that the FVP can boot: {why}",
            hint='build one with meta-arm and name its folder: fvp_image = "..." in hil.toml',
            path=path,
        )


def read_image(place: Path | None, executable: str) -> FvpImage:
    """``place``: a ``.fvpconf`` or the folder of the newest one. Raises NoImage."""
    if place is None:
        raise NoImage("your settings name none")
    found = sorted(place.glob("*.fvpconf"), key=os.path.getmtime) if place.is_dir() else [place]
    if not found or not found[-1].is_file():
        raise NoImage(f"{place} is not, and does not have, a .fvpconf", place)
    file = found[-1].resolve()
    try:
        content: Any = read_json(file)
        given = {str(name): str(value) for name, value in content["parameters"].items()}
        data = [word for value in content["data"] for word in ("--data", str(value))]
        programs = content["applications"].items()
        loaded = [word for name, elf in programs for word in ("-a", f"{name}={elf}")]
        words = (*data, *loaded, *map(str, content["args"]))
        exe, console = content["exe"], content["consoles"]["default"]
    except (*MALFORMED, OSError) as error:
        raise NoImage(f"{file} is not as meta-arm writes it: {error!r}", file) from error
    if exe != executable:
        raise NoImage(f"{file} is for {exe}, and the target's FVP is {executable}", file)
    return FvpImage(file, given, words, str(console))


@dataclass(frozen=True)
class FvpJob(Data):
    """``console``: of the model, as its first lines name it. ``environment``: the model's."""

    linux: LinuxJob
    console: str
    environment: dict[str, str]


def launch(target: Target, fvp: Fvp, executable: Path, model: Launch, job: GuestJob) -> Launch:
    """Return the launch of an FVP with Linux.

    ``model``: the part that all FVPs share; its words set the model's own limits. Raises NoImage,
    ToolMissing, UsageError."""
    image = read_image(settings().fvp_image, fvp.executable)
    values = {**image.parameters, **fvp.all_parameters}
    card = _card(job)
    cards = [name for name, file in values.items() if name.endswith(_CARD) and file]
    values.update(dict.fromkeys(cards, str(card)))
    parameters = [word for name, value in values.items() for word in ("-C", f"{name}={value}")]
    own = FvpJob(linux_job(target, job), image.console, dict(model.environment))
    return replace(
        model,
        argv=(
            *(sys.executable, "-m", __name__, JOB, str(executable)),
            *(*parameters, *image.words, *model.argv),
        ),
        environment={"PYTHONPATH": str(paths.import_root())},
        files={JOB: json.dumps(asdict(own), indent=1).encode(), **linux_files(job)},
        readable=(
            *(*model.readable, Path(own.linux.runner), *image.files, *own_files()),
            *(toolchain.require("ssh").path, Path("/bin"), Path("/usr/bin")),
        ),
        writable=card if cards else None,
        has_shell=True,
        has_account=True,
    )


def _card(job: GuestJob) -> Path:
    """Return the run's copy of the memory card's image, outside of the guest's directory."""
    return job.work.with_name(f"{job.work.name}-card.img")


@contextmanager
def beside(fvp: Fvp, job: GuestJob) -> Iterator[Sequence[Companion]]:
    """Copy the memory card's image for the run, so that the user's image does not change."""
    image, card = read_image(settings().fvp_image, fvp.executable), _card(job)
    source = next((v for n, v in image.parameters.items() if n.endswith(_CARD) and v), None)
    try:
        if source is not None:
            with disk_errors(f"copying the memory card {source}"):
                shutil.copyfile(source, card)
        with closing(Report()) as report:
            yield (report,)
    finally:
        card.unlink(missing_ok=True)


def main(file: str, *words: str) -> int:
    """Return the process in the sandbox. ``words``: the model's command line, and a descriptor."""
    *model, descriptor = words
    report, job = Reporter(int(descriptor)), checked(FvpJob, json.loads(Path(file).read_text()))
    with socket.socket() as free:  # without a sandbox, another run may have the usual port
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    with subprocess.Popen(
        [word.replace(_SSH_PORT, f"={port}=22") for word in model],
        env={**os.environ, **job.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as fvp:
        try:
            return driven(lambda: _drive(fvp, job, port, report), report)
        finally:
            fvp.terminate()
            with suppress(subprocess.TimeoutExpired):
                fvp.wait(_END_SECONDS)
            fvp.kill()


def _drive(fvp: subprocess.Popen[bytes], job: FvpJob, port: int, report: Reporter) -> int:
    """Return the model's status if it ended by itself. Raises GuestProblem."""
    assert fvp.stdout is not None
    linux, limits, output = job.linux.linux, job.linux.limits, fvp.stdout.fileno()
    options = [word for option in _OPTIONS for word in ("-o", option)]
    ssh = ("ssh", "-F", "none", *options, "-p", str(port), f"{linux.user}@127.0.0.1")
    files = [path for path in Path().iterdir() if path.is_file() and path.name != JOB]
    try:
        with _connect(output, job.console, limits.boot) as console:
            Thread(target=_pass_on, args=(output,), daemon=True).start()
            run_session(job.linux, files, line_of(console.fileno()), lambda: ssh, report)
    except Closed:
        status = fvp.wait()
        return status if status >= 0 else 128 - status
    return 0


def _connect(output: int, console: str, seconds: float) -> socket.socket:
    """Return the console, when the model has printed its port. Raises Closed, GuestProblem."""
    printed = fdspawn(output, use_poll=True)
    printed.logfile_read = sys.stdout.buffer
    listening = rf"\b{re.escape(console)}: Listening for serial connection on port (\d+)\r*\n"
    try:
        printed.expect(listening.encode(), timeout=seconds)
        return socket.create_connection(("127.0.0.1", int(printed.match[1])))
    except EOF as error:
        raise Closed from error
    except TIMEOUT:
        raise GuestProblem(
            f"the guest did not come to its console {console} within {seconds:g} s"
        ) from None


def _pass_on(output: int) -> None:
    while data := os.read(output, 65536):
        record(data)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
