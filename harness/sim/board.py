"""Runs programs on a board, through labgrid: flashes and starts it, and reads its serial line.

A process of the harness (``harness.sim.lab``) does this; only it imports labgrid. Like a simulator
it works in the run's directory: it packs the files there into a program image, and writes the
board's outputs there. The program runs elsewhere, so the process is not confined; it has its own
limits."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import filelock

from harness.config.schema import Data
from harness.config.target import Board, Target
from harness.core.errors import InfraError, NotThere, ToolMissing
from harness.core.simulator_name import SimulatorName
from harness.sim.driving_process import Report
from harness.sim.linux_session import LinuxJob, linux_files, linux_job
from harness.sim.program_image import RUN_LENGTH
from harness.sim.simulator import Companion, GuestJob, Launch, Simulator, section
from harness.system import paths
from harness.system.paths import install_command
from harness.system.toolchain import Tool

JOB = "board.json"
# For the programs that labgrid's drivers start.
_PASSED_ON = ("HOME", "PATH", "USER", "SSH_AUTH_SOCK")


@dataclass(frozen=True)
class BoardJob(Data):
    """The job of the process.

    ``address`` and ``room`` (bytes): of the flash for programs. ``run``: the digits by which the
    board identifies the program image. ``stall``: its longest silence. ``linux``: of a board that
    is not flashed, because it has Linux."""

    lab: str
    board: Board
    elf: str
    arguments: tuple[str, ...]
    run: str
    address: int
    room: int
    stall: float
    linux: LinuxJob | None = None


class _Board(Simulator):
    name = SimulatorName.BOARD

    def find(self, target: Target, checkout: Path | None = None) -> Tool | None:
        try:
            return Tool("labgrid", Path(sys.executable), f"labgrid {metadata.version('labgrid')}")
        except metadata.PackageNotFoundError:
            return None

    def require(self, target: Target) -> Tool:
        raise ToolMissing(
            "labgrid, which drives boards, is not installed",
            hint=install_command("board"),
            tool="labgrid",
        )

    def launch(self, target: Target, tool: Tool, job: GuestJob) -> Launch:
        board = section(target.simulators.board)
        pool = target.cmake.get("HIL_FILE_POOL_PLACE", "DDR")
        region = next((region for region in target.memory if region.name == pool), None)
        board_job = BoardJob(
            lab=str(_lab(target)),
            board=board,
            elf=str(job.elf),
            arguments=job.arguments,
            run=secrets.token_hex(RUN_LENGTH // 2),
            address=0 if region is None else region.origin,
            room=0 if region is None else region.size,
            stall=job.limits.stall,
            linux=None if target.linux is None else linux_job(target, job),
        )
        passed_on = {n: v for n, v in os.environ.items() if n in _PASSED_ON or n.startswith("LG_")}
        return Launch(
            (sys.executable, "-m", "harness.sim.lab", JOB),
            environment={**passed_on, "PYTHONPATH": str(paths.import_root())},
            files={
                JOB: json.dumps(asdict(board_job), indent=1).encode(),
                **({} if target.linux is None else linux_files(job)),
            },
            has_shell=target.linux is not None,
            stands_in=() if board.stand_in is None else (f"no board: {board.stand_in}",),
            own=True,
        )

    @contextmanager
    def beside(self, target: Target, job: GuestJob) -> Iterator[Sequence[Companion]]:
        """Hold the board's lock: one run at a time uses it."""
        board, lab = section(target.simulators.board), _lab(target)
        folder = paths.state_dir() / "boards"
        folder.mkdir(parents=True, exist_ok=True)
        lock = folder / f"{lab.resolve().as_posix().replace('/', '_')}-{board.role}.lock"
        try:
            with filelock.FileLock(lock, timeout=board.wait), closing(Report()) as report:
                yield (report,)
        except filelock.Timeout:
            raise InfraError(
                f"the board {board.role} of {lab} is in use by another run for {board.wait:.0f} s",
                hint="wait for it, or raise `wait` of the target's board",
                path=lab,
                kind="board_busy",
            ) from None


_TOOLS = {"OpenOCDDriver": "openocd", "SSHDriver": "ssh"}  # programs that labgrid's drivers start


def what_board_lacks(target: Target) -> tuple[str, ...]:
    """Sentences about everything that this machine lacks to drive a target's board.

    Checks only serial ports that are named by their device."""
    board = section(target.simulators.board)
    lab = target.file.parent / board.labgrid
    lacking = []
    if SIMULATOR.find(target) is None:
        lacking.append(f"labgrid is not installed: {install_command('board')}")
    if not lab.is_file():
        return (*lacking, f"there is no labgrid environment {lab}")
    text = lab.read_text()
    for port in map(Path, re.findall(r"^\s*port:\s*(/dev/\S+)\s*$", text, re.MULTILINE)):
        if not port.exists():
            lacking.append(f"{port} is not there: plug the board in")
        elif not os.access(port, os.R_OK | os.W_OK):
            lacking.append(f"{port} may not be opened: join its group, {port.group()}")
    tools = [tool for driver, tool in _TOOLS.items() if f"{driver}:" in text] + [*board.flash[:1]]
    lacking += [f"{tool} is not installed" for tool in tools if shutil.which(tool) is None]
    return tuple(lacking)


def _lab(target: Target) -> Path:
    """Return labgrid's environment file. Raises NotThere."""
    lab = target.file.parent / section(target.simulators.board).labgrid
    if not lab.is_file():
        raise NotThere(lab, "labgrid environment", hint=f"`labgrid` in {target.file} names it")
    return lab


SIMULATOR = _Board()
