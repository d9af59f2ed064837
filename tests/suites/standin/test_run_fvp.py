"""ExecuTorch's run_fvp.sh, unmodified, on the stand-in, with each of its options.

It runs where $EXECUTORCH_ROOT names a checkout. In it are only the script and what it sources: the
program is a small one of ours.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.suites.standin.install import install
from harness.system.settings import ROOT_VARIABLE
from tests.suites.standin.conftest import Guest

_SCRIPT = "backends/arm/scripts/run_fvp.sh"
_SOURCE = Path(os.environ.get(ROOT_VARIABLE, "/nonexistent")) / _SCRIPT
pytestmark = pytest.mark.skipif(
    not _SOURCE.is_file(), reason=f"${ROOT_VARIABLE} names no checkout with {_SCRIPT}"
)


class Checkout:
    """A folder with the script, and the stand-in where setup.sh would put an FVP."""

    def __init__(self, root: Path, home: str) -> None:
        self.root, self._home = root, home
        script = root / _SCRIPT
        script.parent.mkdir(parents=True)
        shutil.copy(_SOURCE, script)
        models = root / "examples/arm/arm-scratch/FVP-corstone300/models/Linux64_GCC-9.3"
        install(models)
        setup = root / "examples/arm/arm-scratch/setup_path.sh"
        setup.write_text(f"export PATH={models}:$PATH\n")

    def run(self, elf: Path, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.root / _SCRIPT, f"--elf={elf}", *options],
            cwd=self.root,
            env={**os.environ, "HIL_HOME": self._home},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture
def checkout(tmp_path: Path, shared_hil_home: str) -> Checkout:
    return Checkout(tmp_path / "executorch", shared_hil_home)


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
@pytest.mark.parametrize("option", ["", "--fast", "--timeout=30"])
def test_a_good_run(checkout: Checkout, guest: Guest, target: str, option: str) -> None:
    words = [f"--target={target}", *([option] if option else [])]
    done = checkout.run(guest(TEXT='"hello\\n\\04"', LOOP=1), *words)
    assert done.returncode == 0, done.stdout
    assert "hello" in done.stdout
    assert "No problems found!" in done.stdout


def test_data_is_in_memory(checkout: Checkout, guest: Guest, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"xT12rest")
    words = (f"--data={tmp_path / 'data'}@0x70000000", f"--semihosting-cwd={tmp_path}")
    done = checkout.run(guest(SAY_MEMORY=0x70000000), *words)
    assert done.returncode == 0, done.stdout
    assert "xT12rest" in done.stdout


def test_semihosting_has_its_directory(checkout: Checkout, guest: Guest, tmp_path: Path) -> None:
    (tmp_path / "in.bin").write_bytes(b"\1\2\3\4")
    done = checkout.run(guest(ADD=1), f"--semihosting-cwd={tmp_path}")
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "out.bin").read_bytes() == b"\2\3\4\5"


@pytest.mark.parametrize("verdict", ["PASS", "FAIL"])
def test_a_bundle_decides(checkout: Checkout, guest: Guest, tmp_path: Path, verdict: str) -> None:
    (tmp_path / "x.bpte").write_bytes(b"BP12")
    words = ("--target=cortex-m55", f"--bundle={tmp_path / 'x.bpte'}")
    done = checkout.run(guest(TEXT=f'"Test_result: {verdict}\\n\\04"', LOOP=1), *words)
    assert (done.returncode == 0) is (verdict == "PASS"), done.stdout


def test_the_guest_gets_the_bundles_command_line(
    checkout: Checkout, guest: Guest, tmp_path: Path
) -> None:
    (tmp_path / "x.bpte").write_bytes(b"BP12")
    words = ("--target=cortex-m55", f"--bundle={tmp_path / 'x.bpte'}")
    done = checkout.run(guest(SAY_COMMAND_LINE=1), *words)
    assert "[executor_runner -m x.bpte -i fvp_dummy_input.bin -o out]" in done.stdout
    assert done.returncode == 1
    assert "No Test_result line" in done.stdout


def test_a_trace_is_refused_in_words(checkout: Checkout, guest: Guest, tmp_path: Path) -> None:
    """Rather than a run without a file, which the script would read next."""
    done = checkout.run(
        guest(TEXT='"hello\\n\\04"', LOOP=1), f"--trace_file={tmp_path / 'pmu.txt'}"
    )
    assert done.returncode == 1, done.stdout
    assert "there is no PMU trace" in done.stdout
    assert "hello" not in done.stdout
    assert not (tmp_path / "pmu.txt").exists()


def test_a_program_that_hangs_ends_at_the_timeout(checkout: Checkout, guest: Guest) -> None:
    done = checkout.run(guest(TEXT='"hello\\n"', LOOP=1), "--timeout=3")
    assert done.returncode == 1, done.stdout
    assert "CPU time has been exceeded" in done.stdout
