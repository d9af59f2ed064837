"""A Linux guest on the real QEMU: every ending of its kernel, its login and its runner."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness.case.case import Case
from harness.dev.doubles import FakeFirmware
from harness.errors.verdict import Verdict
from harness.guest import image
from harness.run.pipeline import RunOptions, run_case
from harness.run.record import RunRecord
from harness.simulate.pick import pick
from harness.target.loading import Limits, Target, load_target, target_directories
from tests.endings.linux_guest import ends_badly, faulty_module, told

pytestmark = [
    pytest.mark.corstone1000,
    pytest.mark.skipif(
        not (shutil.which("aarch64-linux-gnu-g++") and shutil.which("qemu-system-aarch64")),
        reason="needs aarch64-linux-gnu-g++ and qemu-system-aarch64",
    ),
]


@pytest.fixture
def home(tmp_path: Path, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, with the packages of the guest that are there already."""
    shared = Path(shared_hil_home) / "cache" / "guest"
    shared.mkdir(parents=True, exist_ok=True)
    (tmp_path / ".hil" / "cache").mkdir(parents=True)
    (tmp_path / ".hil" / "cache" / "guest").symlink_to(shared)
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    monkeypatch.setenv("HIL_REFERENCES", str(tmp_path / "references"))
    return tmp_path


def target_with(**changes: object) -> Target:
    target = load_target("corstone-1000-a320", target_directories({}))
    return target.model_copy(update=changes)


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> FakeFirmware:
    return ends_badly(tmp_path_factory.mktemp("firmware"))


def ran(
    home: Path, firmware: FakeFirmware, ending: bytes, target: Target | None = None
) -> RunRecord:
    target = target or target_with()
    given = told(home / "program", ending)
    return run_case(Case(target.name, "add"), pick(target), given, firmware, RunOptions())  # type: ignore[arg-type]


def check_no_leftover(record: RunRecord) -> None:
    """No process of the run lives, and no socket of ours is left in its directory."""
    assert record.run_dir is not None
    work = str(Path(record.run_dir) / "work")
    assert [pid for pid in os.listdir("/proc") if pid.isdigit() and _directory(pid) == work] == []
    assert not [path for path in Path(work).iterdir() if not path.is_file()]


def _directory(pid: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


ENDINGS = {
    "PANIC": (Verdict.FAULT, "linux_panic"),
    "OUT_OF_MEMORY": (Verdict.FAULT, "out_of_memory"),
    "SEGFAULT": (Verdict.FAULT, "process_crash"),
    "UNTOLD_SEGFAULT": (Verdict.FAULT, "process_crash"),
    "HUNG_TASK": (Verdict.HANG, "hung_task"),
    "DISK_FULL": (Verdict.INFRA, "disk_full"),
    "POWERS_OFF": (Verdict.NO_VERDICT, "exit_unknown"),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_ending_has_its_verdict(home: Path, firmware: FakeFirmware, ending: str) -> None:
    """From the console: QEMU ends with 0 after most of these, or not at all."""
    record = ran(home, firmware, ending.encode())
    cause = record.cause
    assert cause is not None
    assert (record.verdict, cause.kind) == ENDINGS[ending], cause
    if ending.endswith("SEGFAULT"):  # the runner tells its own, the kernel that of any program
        assert cause.facts is not None
        assert "store" in cause.facts["pc_symbol"]
        assert cause.facts["pc_source"].startswith("linux.cpp:")
    check_no_leftover(record)


def test_an_oops_of_the_kernel(home: Path, firmware: FakeFirmware) -> None:
    """In a module's first function, with the place that the kernel names; the guest lives on, and
    is not waited for."""
    settings = load_target("corstone-1000-a320", target_directories({})).settings.qemu
    assert settings is not None
    assert settings.guest is not None
    kernel = image.guest_kernel(settings.guest.modules)
    module = next(path for path in kernel.modules if path.name == "virtio_mmio.ko")
    record = ran(home, firmware, faulty_module(module))
    cause = record.cause
    assert cause is not None
    assert (record.verdict, cause.kind) == (Verdict.FAULT, "linux_oops"), cause
    assert cause.facts is not None
    assert cause.facts["pc_symbol"].startswith("virtio_mmio_init+")
    check_no_leftover(record)


def test_a_login_that_is_refused(home: Path, firmware: FakeFirmware) -> None:
    linux = target_with().linux
    assert linux is not None
    target = target_with(linux=linux.model_copy(update={"user": "nobody-here"}))
    record = ran(home, firmware, b"SLEEPS", target)
    cause = record.cause
    assert cause is not None
    assert (record.verdict, cause.kind) == (Verdict.INFRA, "login_refused"), cause
    check_no_leftover(record)


def test_no_root_file_system(
    home: Path, firmware: FakeFirmware, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The image is no archive: the kernel's panic says what it looked for."""
    monkeypatch.setattr(image, "initramfs", lambda *_: b"nothing that could be unpacked")
    record = ran(home, firmware, b"SLEEPS")
    cause = record.cause
    assert cause is not None
    assert (record.verdict, cause.kind) == (Verdict.INFRA, "no_root_file_system"), cause
    check_no_leftover(record)


def test_a_runner_that_waits_for_ever(home: Path, firmware: FakeFirmware) -> None:
    """Its guest is idle, which is a stall as anywhere else."""
    target = target_with(limits=Limits(host=200.0, stall=4.0))
    record = ran(home, firmware, b"SLEEPS", target)
    cause = record.cause
    assert cause is not None
    assert (record.verdict, cause.kind) == (Verdict.HANG, "stall"), cause
    check_no_leftover(record)
