"""The FVP's command line, word by word, and where an installed one is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.loading import load_target, target_directories
from harness.config.target import Limits, Target
from harness.core.errors import ToolMissing, UsageError
from harness.sim import fvp
from harness.sim.simulator import GuestJob, pick

RUNNER = ("executor_runner", "-m", "program.pte", "-o", "s0", "-i", "s0i0.bin")


@pytest.fixture
def board() -> Target:
    return load_target("corstone-300-m55", target_directories({}))


def test_an_npu_target_has_its_macs(tmp_path: Path) -> None:
    settings = load_target("corstone-300-u55-32", target_directories({})).simulators.fvp
    assert settings is not None
    limits = Limits(host=9, stall=9)
    argv = fvp.argv("/f", settings, GuestJob(Path("/e"), ("r",), tmp_path, limits))
    assert "ethosu.num_macs=32" in argv


def test_argv(board: Target) -> None:
    """Parameter names of the MPS3 models, exactly; semihosting on, limits of the target."""
    assert board.simulators.fvp is not None
    job = GuestJob(Path("/f/elf"), RUNNER, Path("/run/work"), board.limits)
    argv = fvp.argv("/fvp/FVP", board.simulators.fvp, job)
    assert argv[0] == "/fvp/FVP"
    assert argv[-6:] == ("--timelimit", "240", "--simlimit", "120", "-a", "/f/elf")
    flags = argv[1:-6:2]
    assert set(flags) == {"-C"}
    assert set(argv[2:-6:2]) == {
        "ethosu.num_macs=128",
        "cpu0.semihosting-enable=1",
        "cpu0.semihosting-cwd=/run/work",
        "cpu0.semihosting-cmd_line=executor_runner -m program.pte -o s0 -i s0i0.bin",
        "cpu0.semihosting-stack_base=0",
        "cpu0.semihosting-heap_limit=0",
        "mps3_board.uart0.out_file=-",
        "mps3_board.uart0.unbuffered_output=1",
        "mps3_board.uart0.shutdown_on_eot=1",
        "mps3_board.visualisation.disable-visualisation=1",
        "mps3_board.telnetterminal0.start_telnet=0",
        "mps3_board.telnetterminal1.start_telnet=0",
        "mps3_board.telnetterminal2.start_telnet=0",
        "mps3_board.telnetterminal5.start_telnet=0",
    }


def test_command_line_is_never_cut() -> None:
    """The FVP drops what is beyond its limit without a word, so we refuse it."""
    assert fvp.command_line(["a" * 254, "b"], 256) == "a" * 254 + " b"
    with pytest.raises(UsageError, match="has 257 characters and the FVP takes 256") as caught:
        fvp.command_line(["a" * 255, "b"], 256)
    assert (caught.value.facts["length"], caught.value.facts["limit"]) == (257, 256)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("word", ["two words", "", 'quo"te'])
def test_command_line_has_no_quoting(word: str) -> None:
    with pytest.raises(UsageError, match="cannot carry"):
        fvp.command_line(["runner", word], 256)


def test_launch(board: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed model is found in $HIL_FVP_DIR as Arm's installer lays it out, with its
    version, its own libpython and the pseudo-file that makes the exit status usable."""
    model = tmp_path / "models" / "Linux64_GCC-9.3" / "FVP_Corstone_SSE-300_Ethos-U55"
    model.parent.mkdir(parents=True)
    model.write_text("#!/bin/sh\necho 'Fast Models [11.27.42 (Dec  9 2024)]'\n")
    model.chmod(0o755)
    (tmp_path / "python" / "lib").mkdir(parents=True)
    (tmp_path / "fmtplib").mkdir()
    monkeypatch.setenv("HIL_FVP_DIR", str(tmp_path))
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    chosen = pick(board, "fvp")
    tool = chosen.require()
    launch = chosen.simulator.launch(
        board, tool, GuestJob(Path("/f/elf"), RUNNER, tmp_path, board.limits)
    )
    assert (chosen.name, tool.version) == ("fvp", "11.27.42")
    assert launch.argv[0] == str(model)
    assert launch.environment == {
        "LD_LIBRARY_PATH": f"{tmp_path / 'python' / 'lib'}:{tmp_path / 'fmtplib'}",
        "PYTHONHOME": str(tmp_path / "python"),
    }
    assert launch.files == {":semihosting-features": b"SHFB\x01"}
    assert tmp_path in launch.readable


def test_missing_fvp_says_how_to_get_it(
    board: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HIL_FVP_DIR", str(tmp_path))
    with pytest.raises(ToolMissing, match="FVP_Corstone_SSE-300_Ethos-U55 is not inst") as caught:
        pick(board, "fvp").require()
    assert "FVP_Corstone_SSE-300_11.27_42_Linux64.tgz" in str(caught.value.hint)
    assert caught.value.exit_code == 3
