"""A Linux guest on the real QEMU: every ending of its kernel, its login and its runner."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.run.pipeline import RunOptions, run_case
from harness.run.record import RunRecord
from harness.sim.simulator import pick
from tests.processes import ends
from tools.doubles import FakeFirmware
from tools.guest_doubles import ends_badly, guest_ending, guest_endings

pytestmark = [
    pytest.mark.corstone1000,
    pytest.mark.skipif(
        not (shutil.which("aarch64-linux-gnu-g++") and shutil.which("qemu-system-aarch64")),
        reason="needs aarch64-linux-gnu-g++ and qemu-system-aarch64",
    ),
]


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> FakeFirmware:
    return ends_badly(tmp_path_factory.mktemp("firmware"))


def check_no_leftover(record: RunRecord) -> None:
    """No process of the run lives, and no socket of ours is left in its directory."""
    assert record.run_dir is not None
    work = str(Path(record.run_dir) / "work")
    processes = [int(pid) for pid in os.listdir("/proc") if pid.isdigit()]
    assert all(ends(pid) for pid in processes if _directory(pid) == work)
    assert not [path for path in Path(work).iterdir() if not path.is_file()]


def _directory(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


@pytest.mark.parametrize("ending", guest_endings())
def test_ending_has_its_verdict(guest_home: Path, firmware: FakeFirmware, ending: str) -> None:
    """From the console: QEMU ends with 0 after most of these, or not at all. A crash has its place
    (the runner tells its own, the kernel that of any program), and so has an oops, whose guest
    lives on and is not waited for."""
    given = guest_ending(guest_home / "program", ending)
    record = run_case(
        Case(given.target.name, "add"),
        pick(given.target),
        given.program,
        firmware,
        RunOptions(),  # type: ignore[arg-type]
    )
    cause = record.cause
    assert cause is not None
    assert (record.verdict, cause.kind) == guest_endings()[ending], cause
    facts = cause.facts or {}
    if ending.endswith("SEGFAULT"):
        assert "store" in facts["pc_symbol"]
        assert facts["pc_source"].startswith("linux.cpp:")
    if ending == "OOPS":
        assert facts["pc_symbol"].startswith("virtio_mmio_init+")
    check_no_leftover(record)
