"""The Corstone-1000's FVP with a Linux image, on the stand-in of tests/doubles: QEMU with the
harness's guest, a real ssh server, a console on a port and a memory card. No Arm model was seen."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.config.loading import load_target, target_directories
from harness.config.target import Limits, Target
from harness.core.errors import InfraError, UsageError
from harness.core.verdict import ExitCode, Verdict
from harness.log.events import Kind, Stage
from harness.log.parser import parse_console
from harness.run.judging import judge_again
from harness.run.pipeline import RunOptions, run_case, run_cases
from harness.run.record import RunRecord
from harness.sim import fvp
from harness.sim.linux_fvp import read_image
from harness.sim.simulator import GuestJob, pick
from tests.doubles.corstone1000.image import StandIn, make_card, make_image, make_stand_in
from tests.doubles.corstone1000.model import NAME
from tools.doubles import FakeFirmware, double_program
from tools.guest_doubles import ends_badly

TARGET = "corstone-1000-a320"
CARD = "/run/media/mmcblk0"
# As meta-arm's fvpboot.bbclass writes one.
IMAGE = {
    "provider": "fvp-corstone1000-native",
    "exe": NAME,
    "parameters": {},
    "data": [],
    "applications": {"cluster0": "/nowhere.elf"},
    "consoles": {"default": "host_terminal_0"},
    "terminals": {},
    "args": ["--stat"],
    "env": {},
}
PROGRAMS = ("aarch64-linux-gnu-g++", "qemu-system-aarch64", "qemu-aarch64-static", "ssh")
pytestmark = [
    pytest.mark.corstone1000,
    pytest.mark.skipif(not all(map(shutil.which, PROGRAMS)), reason=f"needs {PROGRAMS}"),
]


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> StandIn:
    return make_stand_in(tmp_path_factory.mktemp("fvp") / "made")


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> FakeFirmware:
    return ends_badly(tmp_path_factory.mktemp("firmware"))


@pytest.fixture
def installed(
    stand_in: StandIn, guest_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Path], None]:
    """Installs the stand-in; the result names an image in the settings."""
    monkeypatch.setenv("HIL_FVP_DIR", str(stand_in.folder))
    monkeypatch.chdir(guest_home)
    (guest_home / "hil.toml").touch()

    def name(image: Path) -> None:
        (guest_home / "hil.toml").write_text(f'fvp_image = "{image}"\n')

    return name


Ended = Callable[..., RunRecord]


@pytest.fixture
def ended(
    installed: Callable[[Path], None], stand_in: StandIn, firmware: FakeFirmware, guest_home: Path
) -> Ended:
    """A run on the stand-in with a program that ends as ``program`` says, on an image with these
    ``options`` of its kernel."""

    def run(
        program: str = "", options: str = "", card: str = "", target: Target | None = None
    ) -> RunRecord:
        name = f"image-{options.partition('=')[2] or card or 'plain'}"
        installed(make_image(stand_in.image.parent, name, options, card))
        given, content = double_program(guest_home / "program"), program.encode()
        given.pte_path.write_bytes(content)
        given = replace(given, pte_sha256=hashlib.sha256(content).hexdigest())
        board = target or load_target(TARGET, target_directories({}))
        chosen = pick(board, "fvp")
        return run_case(Case(TARGET, "add"), chosen, given, firmware, RunOptions())  # type: ignore[arg-type]

    return run


def told(record: RunRecord) -> tuple[Verdict, str]:
    assert record.cause is not None
    print(record.cause)
    return record.verdict, str(record.cause.kind)


def board(**linux: str) -> Target:
    target = load_target(TARGET, target_directories({}))
    assert target.linux is not None
    return replace(target, linux=replace(target.linux, **linux))


def test_a_network_with_the_npu(
    installed: Callable[[Path], None],
    stand_in: StandIn,
    shared_hil_home: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exported, built, booted, run and compared, all of it in the sandbox; judged again alike."""
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    installed(stand_in.image.parent)
    (record,) = run_cases([Case("corstone-1000-u85-256", "add")], RunOptions("fvp", strict=False))
    assert record.verdict.passed, record.cause
    assert record.simulator is not None
    assert record.simulator.confined
    assert "host.ethosu.num_macs=256" in record.simulator.argv
    assert any("the stand-in on QEMU" in note for note in record.notes)
    run_dir = Path(str(record.run_dir))
    assert judge_again(run_dir).judgement == record.judgement
    assert not list(run_dir.glob("*-card.img"))
    console = (run_dir / "console.log").read_bytes()
    assert b"host_terminal_0: Listening for serial connection on port 5000" in console
    stages = [progress.stage for progress in parse_console(console).progress]
    assert stages[:1] == [Stage.BOOTED]
    assert {Stage.LOGIN, Stage.RUNNER, Stage.COMPLETE} <= {*stages}


def test_no_image(installed: Callable[[Path], None], guest_home: Path) -> None:
    target = board()
    chosen = pick(target, "fvp")
    job = GuestJob(guest_home / "elf", ("executor_runner",), guest_home / "work", target.limits)
    with pytest.raises(InfraError, match="your settings name none") as caught:
        chosen.simulator.launch(target, chosen.require(), job)
    assert caught.value.kind == "no_image"
    assert "fvp_image" in str(caught.value.hint)
    installed(guest_home / "nowhere")
    with pytest.raises(InfraError, match=r"nowhere is not, and does not have, a \.fvpconf"):
        chosen.simulator.launch(target, chosen.require(), job)
    assert pick(target).name == "qemu"  # an installed FVP is no reason to fail


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "is not as meta-arm writes it"),
        ('{"exe": "FVP_Corstone-1000-A320"}', "is not as meta-arm writes it: KeyError"),
        (json.dumps(IMAGE | {"exe": "FVP_Corstone-1000"}), "is for FVP_Corstone-1000, and"),
    ],
)
def test_an_image_that_cannot_be_used(tmp_path: Path, content: str, text: str) -> None:
    (tmp_path / "image.fvpconf").write_text(content)
    with pytest.raises(InfraError, match=text):
        read_image(tmp_path, NAME)


def test_an_image_of_meta_arm(tmp_path: Path) -> None:
    """The newest of a folder."""
    for name in ("bl1.bin", "nopt.wic"):
        (tmp_path / name).touch()
    (tmp_path / "old.fvpconf").write_text("{}")
    conf = tmp_path / "new.fvpconf"
    own = {
        "parameters": {"se.trustedBootROMloader.fname": f"{tmp_path}/bl1.bin"},
        "data": [f"board.flash0={tmp_path}/nopt.wic@0x68000000"],
    }
    conf.write_text(json.dumps(IMAGE | own))
    image = read_image(tmp_path, NAME)
    assert image.file == conf
    assert image.console == "host_terminal_0"
    assert image.words == (
        *("--data", f"board.flash0={tmp_path}/nopt.wic@0x68000000"),
        *("-a", "cluster0=/nowhere.elf", "--stat"),
    )
    assert set(image.files) == {tmp_path, tmp_path / "bl1.bin", tmp_path / "nopt.wic"}


def test_no_login(ended: Ended, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit for a machine without load; a busy one may not come as far as the console."""
    monkeypatch.setattr(fvp, "_BOOT_SECONDS", 1.0)
    target = replace(board(), limits=Limits(host=90.0, stall=90.0, boot=12.0))
    record = ended(options="double=no_login", target=target)
    assert told(record) == (Verdict.INFRA, Kind.GUEST_SILENT)
    assert "within 12 s" in str(record.cause)


def test_a_panic_at_boot_is_not_the_programs(ended: Ended) -> None:
    assert told(ended(options="double=panic")) == (Verdict.INFRA, Kind.LINUX_PANIC)


def test_a_panic_of_the_program_is(ended: Ended) -> None:
    record = ended("PANIC")
    assert told(record) == (Verdict.FAULT, Kind.LINUX_PANIC)
    assert record.ending is not None
    assert record.ending.began


def test_ssh_that_is_refused(ended: Ended) -> None:
    target = board()
    limits = replace(target.limits, shell=2.0)
    record = ended(options="double=no_ssh", target=replace(target, limits=limits))
    assert told(record) == (Verdict.INFRA, Kind.SSH_REFUSED)
    assert "the guest refuses ssh: " in str(record.cause)


def test_a_full_card(ended: Ended, stand_in: StandIn) -> None:
    """The user's image of it stays as it was."""
    card = make_card(stand_in.image.parent, "small.img", 64 << 10)
    before = (stand_in.image.parent / card).read_bytes()
    record = ended(card=card, target=board(folder=CARD))
    assert told(record) == (Verdict.INFRA, Kind.DISK_FULL)
    assert f"full at {CARD}/hil-" in str(record.cause)
    assert (stand_in.image.parent / card).read_bytes() == before


def test_a_reset_while_the_program_runs(ended: Ended) -> None:
    record = ended("RESETS")
    assert told(record) == (Verdict.FAULT, Kind.BOARD_RESTARTED)
    assert "began again while it ran `sh run.sh`" in str(record.cause)


def test_a_program_cannot_make_itself_infra(ended: Ended) -> None:
    """By ending the ssh server, so that nobody can fetch its outputs."""
    record = ended("TAKES_SSH_DOWN")
    assert told(record) == (Verdict.NO_VERDICT, Kind.OUTPUTS_LOST)
    assert record.verdict.exit_code is ExitCode.FAILED


def test_a_runner_with_libraries_of_its_own(
    installed: Callable[[Path], None], stand_in: StandIn, guest_home: Path
) -> None:
    installed(stand_in.image)
    target, elf = board(), guest_home / "elf"
    chosen = pick(target, "fvp")
    job = GuestJob(elf, ("executor_runner",), guest_home / "work", target.limits, root=guest_home)
    with pytest.raises(UsageError, match="belongs to the board"):
        chosen.simulator.launch(target, chosen.require(), job)


@pytest.mark.thorough
def test_a_login_that_is_refused(ended: Ended) -> None:
    record = ended(target=board(user="nobody-here"))
    assert told(record) == (Verdict.INFRA, Kind.LOGIN_REFUSED)


@pytest.mark.thorough
def test_twenty_times_in_a_row(
    installed: Callable[[Path], None],
    stand_in: StandIn,
    shared_hil_home: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    installed(stand_in.image)
    cases = [
        *(Case("corstone-1000-u85-256", "add"), Case("corstone-1000-u85-256", "ds_cnn")),
        Case("corstone-1000-a320", "resnet8"),
    ]
    for _ in range(20):
        records = run_cases(cases, RunOptions("fvp", strict=False))
        assert all(record.verdict.passed for record in records), [told(r) for r in records]
