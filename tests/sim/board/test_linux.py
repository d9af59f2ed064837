"""A board with Linux through labgrid: its console, its power and its ssh, with the stand-in of
tests/doubles/corstone1000 as the board."""

from __future__ import annotations

import hashlib
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.config.loading import load_target
from harness.core.verdict import Verdict
from harness.log.events import Kind
from harness.run.pipeline import RunOptions, run_case, run_cases
from harness.run.record import RunRecord
from harness.sim.board import SIMULATOR
from harness.sim.simulator import pick
from harness.system.settings import in_ci
from tests.doubles.corstone1000.image import FOLDER, StandIn, make_card, make_image, make_stand_in
from tests.doubles.corstone1000.model import NAME
from tests.late import Late
from tools.doubles import FakeFirmware, double_program
from tools.guest_doubles import ends_badly

lab = Late("harness.sim.lab")
PROGRAMS = ("aarch64-linux-gnu-g++", "qemu-system-aarch64", "qemu-aarch64-static", "ssh")
pytestmark = [
    pytest.mark.corstone1000,
    pytest.mark.skipif(not all(map(shutil.which, PROGRAMS)), reason=f"needs {PROGRAMS}"),
]

TARGET = """
extends: corstone-1000-u85-256
linux: {{hostname: corstone1000-a320-fvp, prompt: "# ", user: {user}, folder: {folder}}}
limits: {{host: {host}, stall: 20, boot: {boot}, shell: {shell}}}
simulators:
  auto: [board]
  board: {{labgrid: lab.yaml, stand_in: QEMU's virt}}
"""
LAB = """
targets:
  main:
    resources:
      RawSerialPort: {{port: "{folder}/line", speed: 115200}}
      NetworkService: {{address: 127.0.0.1, port: {ssh}, username: root}}
    drivers:
      StandInDriver:
        command: "{command}"
        flash: "{flash}"
        card: "{card}"
        port: "{folder}/line"
        ssh: {ssh}
      SerialDriver: {{}}
      SSHDriver: {{connection_timeout: {patience}}}
imports: ["{driver}"]
"""


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> StandIn:
    folder = tmp_path_factory.mktemp("board")
    if SIMULATOR.find(load_target("corstone-1000-a320")) is None and not in_ci():
        pytest.skip("labgrid is not installed")
    return make_stand_in(folder / "made")


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> FakeFirmware:
    return ends_badly(tmp_path_factory.mktemp("firmware"))


@pytest.fixture
def desk(stand_in: StandIn, tmp_path: Path) -> Callable[..., str]:
    """The file of a target whose board has an image with these ``options``."""

    def make(
        options: str = "",
        card: str = "",
        user: str = "root",
        folder: str = "/tmp",
        boot: float = 120,
        shell: float = 30,
        host: float = 300,
    ) -> str:
        deploy = stand_in.image.parent
        image = make_image(deploy, f"board-{options.partition('=')[2]}", options)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        lab = LAB.format(
            folder=tmp_path,
            ssh=port,
            command=stand_in.folder / NAME,
            flash=image.with_suffix(".wic"),
            card=deploy / card if card else "",
            driver=FOLDER / "lab_driver.py",
            patience=min(float(shell), 30.0),
        )
        (tmp_path / "lab.yaml").write_text(lab)
        target = tmp_path / "desk.yaml"
        target.write_text(
            TARGET.format(user=user, folder=folder, boot=boot, shell=shell, host=host)
        )
        return str(target)

    return make


@pytest.fixture
def ended(
    desk: Callable[..., str], firmware: FakeFirmware, guest_home: Path
) -> Callable[..., RunRecord]:
    """A run with a program that ends as ``program`` says."""

    def run(program: str = "", **options: object) -> RunRecord:
        given, content = double_program(guest_home / "program"), program.encode()
        given.pte_path.write_bytes(content)
        given = replace(given, pte_sha256=hashlib.sha256(content).hexdigest())
        file = desk(**options)
        case, chosen = Case(file, "add"), pick(load_target(file))
        return run_case(case, chosen, given, firmware, RunOptions())  # type: ignore[arg-type]

    return run


def told(record: RunRecord) -> tuple[Verdict, str]:
    assert record.cause is not None
    print(record.cause)
    return record.verdict, str(record.cause.kind)


def test_a_network_with_the_npu(
    desk: Callable[..., str], shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    (record,) = run_cases([Case(desk(), "add")], RunOptions(strict=False))
    assert record.verdict.passed, record.cause
    assert record.simulator is not None
    assert record.simulator.name == "board"
    work = Path(str(record.run_dir)) / "work"
    assert b"Booting Linux" in (work / "serial.log").read_bytes()


def test_ssh_that_is_refused(ended: Callable[..., RunRecord]) -> None:
    record = ended(options="double=no_ssh", shell=2.0)
    assert told(record) == (Verdict.INFRA, Kind.SSH_REFUSED)


def test_a_board_that_nobody_can_restart() -> None:
    board = lab.LabBoard.__new__(lab.LabBoard)
    board._power = board._reset = None
    with pytest.raises(lab.GuestProblem, match="no driver switches it on or resets it"):
        board.boot()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("program", "options", "verdict", "kind"),
    [
        ("", {"boot": 1.0}, Verdict.INFRA, Kind.GUEST_SILENT),
        ("", {"user": "nobody-here"}, Verdict.INFRA, Kind.LOGIN_REFUSED),
        ("", {"options": "double=panic"}, Verdict.INFRA, Kind.LINUX_PANIC),
        ("PANIC", {}, Verdict.FAULT, Kind.LINUX_PANIC),
        ("RESETS", {}, Verdict.FAULT, Kind.BOARD_RESTARTED),
        ("TAKES_SSH_DOWN", {}, Verdict.NO_VERDICT, Kind.OUTPUTS_LOST),
    ],
)
def test_a_failure_has_its_name(
    ended: Callable[..., RunRecord],
    program: str,
    options: dict[str, object],
    verdict: Verdict,
    kind: Kind,
) -> None:
    assert told(ended(program, **options)) == (verdict, kind)


@pytest.mark.thorough
def test_a_full_card(ended: Callable[..., RunRecord], stand_in: StandIn) -> None:
    card = make_card(stand_in.image.parent, "small.img", 64 << 10)
    record = ended(card=card, folder="/run/media/mmcblk0")
    assert told(record) == (Verdict.INFRA, Kind.DISK_FULL)


@pytest.mark.thorough
def test_twenty_times_in_a_row(
    desk: Callable[..., str], shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    target = desk()
    for _ in range(20):
        records = run_cases([Case(target, "add"), Case(target, "ds_cnn")], RunOptions(strict=False))
        assert all(record.verdict.passed for record in records), [told(r) for r in records]
