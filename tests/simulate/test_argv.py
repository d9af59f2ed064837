"""The command lines of the simulators, word by word."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import ToolMissing, UsageError
from harness.simulate import fvp, qemu
from harness.simulate.launch import Job
from harness.simulate.pick import pick, simulator
from harness.simulate.simulation import runner_arguments
from harness.target.loading import Limits, Qemu, Target, load_target, target_directories
from harness.target.model import SimulatorName

RUNNER = ("executor_runner", "-m", "program.pte", "-o", "s0", "-i", "s0i0.bin")


@pytest.fixture
def board() -> Target:
    return load_target("corstone-300-m55", target_directories({}))


def test_runner_arguments() -> None:
    """Each ``-o`` starts an input set; a bundled program keeps its suffix."""
    assert runner_arguments(Path("x/ds_cnn.pte"), [1]) == RUNNER
    assert runner_arguments(Path("m.bpte"), [2, 0], profile=True) == (
        *("executor_runner", "-m", "program.bpte", "-p"),
        *("-o", "s0", "-i", "s0i0.bin", "-i", "s0i1.bin"),
        *("-o", "s1"),
    )


def test_qemu(board: Target) -> None:
    assert board.settings.qemu is not None
    argv = qemu.argv("/usr/bin/qemu-system-arm", board.settings.qemu, Path("/f/elf"), RUNNER[:3])
    assert argv == (
        "/usr/bin/qemu-system-arm",
        *("-M", "mps3-an547"),
        "-nographic",
        *("-monitor", "unix:qemu-monitor,server=on,wait=off"),
        *("-serial", "none"),
        *("-icount", "shift=5"),
        "-semihosting-config",
        "enable=on,target=native,arg=executor_runner,arg=-m,arg=program.pte",
        *("-kernel", "/f/elf"),
    )


def test_qemu_comma_is_doubled() -> None:
    """QEMU splits its options at single commas."""
    assert qemu.semihosting(["a,b", "c=d"]) == "enable=on,target=native,arg=a,,b,arg=c=d"


def test_qemu_memory() -> None:
    argv = qemu.argv("q", Qemu(executable="q", machine="m", memory="2G"), Path("e"), ["a"])
    assert argv[3:5] == ("-m", "2G")


def test_qemu_with_memory_that_the_host_shares() -> None:
    """The whole of the machine's RAM is a file of a short name in QEMU's current directory."""
    settings = load_target("corstone-300-u55-128", target_directories({})).settings.qemu
    assert settings is not None
    argv = qemu.argv("q", settings, Path("e"), ["a"])
    assert argv[1:7] == (
        *("-M", "mps3-an547,memory-backend=ddr"),
        *("-m", "2048M"),
        *("-object", "memory-backend-file,id=ddr,size=2048M,mem-path=npu-ddr,share=on"),
    )


def test_fvp_of_an_npu_target_has_its_macs(tmp_path: Path) -> None:
    settings = load_target("corstone-300-u55-32", target_directories({})).settings.fvp
    assert settings is not None
    limits = Limits(host=9, stall=9)
    argv = fvp.argv("/f", settings, limits, Path("/e"), ["r"], tmp_path)
    assert "ethosu.num_macs=32" in argv


def test_fvp(board: Target) -> None:
    """Parameter names of the MPS3 models, exactly; semihosting on, limits of the target."""
    assert board.settings.fvp is not None
    argv = fvp.argv(
        "/fvp/FVP", board.settings.fvp, board.limits, Path("/f/elf"), RUNNER, Path("/run/work")
    )
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


def test_fvp_command_line_is_never_cut() -> None:
    """The FVP drops what is beyond its limit without a word, so we refuse it."""
    assert fvp.command_line(["a" * 254, "b"], 256) == "a" * 254 + " b"
    with pytest.raises(UsageError, match="has 257 characters and the FVP takes 256") as caught:
        fvp.command_line(["a" * 255, "b"], 256)
    assert caught.value.facts == {"length": 257, "limit": 256}


@pytest.mark.parametrize("word", ["two words", "", 'quo"te'])
def test_fvp_command_line_has_no_quoting(word: str) -> None:
    with pytest.raises(UsageError, match="cannot carry"):
        fvp.command_line(["runner", word], 256)


def test_fvp_launch(board: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        board, tool, Job(Path("/f/elf"), RUNNER, tmp_path, board.limits)
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


def test_host() -> None:
    """The program itself is argv[0]; the variant's environment goes along."""
    native, host = load_target("host"), simulator(SimulatorName.HOST)
    job = Job(Path("/f/elf"), RUNNER, Path("/w"), native.limits, {"ASAN_OPTIONS": "x"})
    launch = host.launch(native, host.require(native), job)
    assert launch.argv == ("/f/elf", *RUNNER[1:])
    assert launch.environment == {"ASAN_OPTIONS": "x"}
