"""The pytest surface against doubles of an FVP, alone and under two workers; and being killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from harness.suites.standin.command_line import load_fvp_model
from tools.doubles import install_double

FVP = "FVP_Corstone_SSE-300_Ethos-U55"
ENDINGS = ("passes", "hard_fault_then_runs_on", "missing_library", "stalls")
# The fixtures that export and build are replaced: the program and the firmware are doubles' own.
TESTS = """
    import os
    from pathlib import Path
    import pytest
    from tools.doubles import double_firmware, double_program
    from executorch_hil import require_pass

    @pytest.fixture(scope="session")
    def hil_program(tmp_path_factory):
        return double_program(tmp_path_factory.mktemp("p") / "program")

    @pytest.fixture(scope="session")
    def hil_firmware(tmp_path_factory):
        return double_firmware(tmp_path_factory.mktemp("f"))

    @pytest.fixture
    def ending(request, monkeypatch):
        monkeypatch.setenv("HIL_FVP_DIR", os.path.join(os.environ["DOUBLES"], request.param))

    @pytest.mark.parametrize("ending", {endings}, indirect=True)
    @pytest.mark.hil_cases(targets=["corstone-300-m55"], models=["add"])
    def test_model(ending, hil_run):
        require_pass(hil_run)
"""


@pytest.fixture
def doubles(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = pytester.path / "doubles"
    for ending in ENDINGS:
        install_double(folder / ending, FVP, ending, load_fvp_model(FVP).parameters)
    monkeypatch.setenv("DOUBLES", str(folder))
    monkeypatch.setenv("HIL_HOME", str(pytester.path / ".hil"))
    monkeypatch.setenv("HIL_REFERENCES", str(pytester.path / "references"))
    return folder


@pytest.mark.parametrize(
    "workers",
    [
        pytest.param((), id="alone"),
        pytest.param(("-n", "2"), id="xdist", marks=pytest.mark.thorough),
    ],
)
def test_each_ending_is_reported(
    pytester: pytest.Pytester, doubles: Path, workers: tuple[str, ...]
) -> None:
    pytester.makepyfile(TESTS.replace("{endings}", repr(list(ENDINGS))))
    result = pytester.runpytest_inprocess(
        "--hil-simulator=fvp", "--hil-limit-factor=0.03", *workers
    )
    result.assert_outcomes(passed=1, failed=3)
    said = result.stdout.str()
    assert "FAULT hard_fault (console line 10): Hard fault. irq=-13" in said
    assert "INFRA library_missing (console line 1): " in said
    assert "HANG stall (console line 9): no output and no CPU time" in said


@pytest.mark.parametrize(("policy", "outcome"), [("skip", "skipped"), ("fail", "errors")])
def test_a_missing_fvp(
    pytester: pytest.Pytester,
    doubles: Path,
    monkeypatch: pytest.MonkeyPatch,
    policy: str,
    outcome: str,
) -> None:
    """Skipped where that is wanted; else an error, because it is the fixture that fails."""
    monkeypatch.setenv("HOME", str(pytester.path))
    (doubles / "passes" / FVP).unlink()
    pytester.makepyfile(TESTS.replace("{endings}", '["passes"]'))
    result = pytester.runpytest_inprocess(
        "--hil-simulator=fvp", f"--hil-fvp-missing={policy}", "-rs"
    )
    result.assert_outcomes(**{outcome: 1})
    result.stdout.fnmatch_lines(["*FVP_Corstone_SSE-300_Ethos-U55 is not installed*"])
    assert result.ret != 0  # skipped alone proves nothing


def test_killing_pytest_leaves_no_simulator_behind(
    pytester: pytest.Pytester, doubles: Path
) -> None:
    """SIGKILL gives us no chance to clean up; the simulator is tied to our life."""
    pytester.makepyfile(TESTS.replace("{endings}", '["stalls"]'))
    argv = [sys.executable, "-m", "pytest", "-q", "--hil-simulator=fvp", str(pytester.path)]
    with subprocess.Popen(argv, cwd=pytester.path, stdout=subprocess.DEVNULL) as child:
        found = _wait_for(lambda: bool(_simulators(doubles)))
        child.send_signal(signal.SIGKILL)
    assert found, "the simulator was never started"
    assert _wait_for(lambda: not _simulators(doubles))


def _wait_for(condition, seconds: float = 20):  # type: ignore[no-untyped-def]
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := condition():
            return found
        time.sleep(0.05)
    return False


def _simulators(folder: Path) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in command and int(process.name) != os.getpid():
            found.append(int(process.name))
    return found


def test_a_worker_of_xdist_that_is_killed_costs_its_case_alone(
    pytester: pytest.Pytester, doubles: Path
) -> None:
    pytester.makepyfile(TESTS.replace("{endings}", '["stalls", "passes"]'))
    argv = [sys.executable, "-m", "pytest", "-n", "2", "--hil-simulator=fvp", str(pytester.path)]
    with subprocess.Popen(argv, cwd=pytester.path, stdout=subprocess.PIPE, text=True) as child:
        worker = _wait_for(lambda: _worker(child.pid, doubles / "stalls"), 120)
        assert worker
        os.kill(worker, signal.SIGKILL)
        out, _ = child.communicate(timeout=300)
    assert child.returncode == pytest.ExitCode.TESTS_FAILED, out
    assert "crashed while running" in out
    assert "1 failed, 1 passed" in out
    assert _wait_for(lambda: not _simulators(doubles))


def _worker(pytest_id: int, folder: Path) -> int | None:
    """The child of pytest that runs a simulator below ``folder``."""
    for process in _simulators(folder):
        with suppress(OSError):  # it may have ended
            while process > 1:
                stat = Path(f"/proc/{process}/stat").read_text()
                parent = int(stat.rpartition(")")[2].split()[1])
                if parent == pytest_id:
                    return process
                process = parent
    return None
