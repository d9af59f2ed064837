"""The stand-in as scripts call it: UARTs, stop lines, exit statuses, limits, semihosting."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.suites.standin.install import start_code

from .conftest import SSE_320, U55, U65, Fvp, Guest, semihosting

STOPPED = "Info: /OSCI/SystemC: Simulation stopped by user."
UART0 = ("-C", "mps3_board.uart0.out_file=-")


def test_version_is_plain_about_what_it_is(standin_directory: Path) -> None:
    """No script may take it for an FVP, and Zephyr's CMake needs an x.y.z to compare."""
    done = subprocess.run([standin_directory / U55, "--version"], capture_output=True, text=True)
    assert done.returncode == 0
    assert f"Stand-in for {U55} on top of QEMU" in done.stdout
    assert not re.search(r"Fast Models", done.stdout)
    assert re.search(r"[0-9]+\.[0-9]+\.[0-9]+", done.stdout)


def test_it_starts_with_little() -> None:
    """A suite starts it hundreds of times: without asyncio, numpy and the like."""
    code = start_code(U55)
    done = subprocess.run(
        [sys.executable, "-I", "-X", "importtime", "-c", code, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    imported = set(re.findall(r"\| +([\w.]+)$", done.stderr, re.M))
    assert {"harness.suites.standin.main", "harness.system.confine"} <= imported
    assert not {"asyncio", "numpy", "pydantic"} & imported


def test_the_uart_goes_to_standard_output(fvp: Fvp, guest: Guest) -> None:
    done = fvp("-a", guest(), *UART0, *semihosting())
    assert done.stdout.startswith("hello\n")
    assert STOPPED in done.stdout
    assert done.returncode == 0


def test_the_uart_goes_to_a_file_and_nowhere_else(fvp: Fvp, guest: Guest, tmp_path: Path) -> None:
    file = tmp_path / "uart.log"
    file.write_text("of an earlier run, and longer than the new one")
    done = fvp("-a", guest(), "-C", f"mps3_board.uart0.out_file={file}", *semihosting())
    assert file.read_text() == "hello"
    assert "hello" not in done.stdout


def test_a_relative_uart_file_is_relative_to_the_models_directory(
    fvp: Fvp, guest: Guest, tmp_path: Path
) -> None:
    fvp("-a", guest(), "-C", "mps3_board.uart0.out_file=u.log", *semihosting())
    assert (tmp_path / "cwd" / "u.log").read_text() == "hello"


def test_uarts_are_told_apart(fvp: Fvp, guest: Guest, tmp_path: Path) -> None:
    one = tmp_path / "one"
    done = fvp(
        "-a",
        guest(UART="0x59304000"),
        *UART0,
        "-C",
        f"mps3_board.uart1.out_file={one}",
        *semihosting(),
    )
    assert one.read_text() == "hello"
    assert "hello" not in done.stdout


def test_a_uart_nobody_asked_for_is_silent(fvp: Fvp, guest: Guest) -> None:
    assert "hello" not in fvp("-a", guest(), *semihosting()).stdout


def test_eot_stops_the_simulation(fvp: Fvp, guest: Guest) -> None:
    """What comes after it is not shown; without it this guest would run until the limit."""
    elf = guest(TEXT=r'"one\004two"', LOOP=1)
    done = fvp("-a", elf, *UART0, "-C", "mps3_board.uart0.shutdown_on_eot=1", "--timelimit", 50)
    assert "one" in done.stdout
    assert "two" not in done.stdout
    assert STOPPED in done.stdout
    assert done.returncode == 0


def test_eot_alone_does_not_stop_it(fvp: Fvp, guest: Guest) -> None:
    elf = guest(TEXT=r'"one\004two"', LOOP=1)
    done = fvp("-a", elf, *UART0, "--simlimit", 1)
    assert "two" in done.stdout
    assert STOPPED not in done.stdout


def test_a_tag_stops_the_simulation_although_it_comes_in_pieces(fvp: Fvp, guest: Guest) -> None:
    elf = guest(TEXT='"a EXITTHESIM zzz"', LOOP=1)
    tag = ("-C", "mps3_board.uart0.shutdown_tag=EXITTHESIM")
    done = fvp("-a", elf, *UART0, *tag, "--timelimit", 50)
    assert "EXITTHESIM" in done.stdout
    assert "zzz" not in done.stdout
    assert STOPPED in done.stdout


@pytest.mark.parametrize(
    ("limit", "value", "what"),
    [
        ("--timelimit", "1", "CPU time"),
        ("--cpulimit", "1", "CPU time"),
        ("--simlimit", "0.2", "Simulated time"),
        ("--cyclelimit", "1000000", "Cycle limit"),
    ],
)
def test_each_limit_has_its_stop_line(
    fvp: Fvp, guest: Guest, limit: str, value: str, what: str
) -> None:
    """The models end with 0 then; run_fvp.sh looks for the line."""
    done = fvp("-a", guest(LOOP=1), limit, value)
    assert f"Info: Simulation is stopping. Reason: {what} has been exceeded." in done.stdout
    assert done.returncode == 0


def test_quiet_leaves_only_the_program(fvp: Fvp, guest: Guest) -> None:
    done = fvp("-a", guest(), *UART0, *semihosting(), "-q")
    assert (done.stdout, done.stderr) == ("hello", "")


def test_statistics(fvp: Fvp, guest: Guest) -> None:
    done = fvp("-a", guest(LOOP=1), "--simlimit", "0.3", "--stat")
    assert re.search(r"Simulated time +: at least 0\.[3-9]", done.stdout)
    assert re.search(r"Wall time +: \d", done.stdout)


def test_a_programs_status_stays_with_the_model(fvp: Fvp, guest: Guest) -> None:
    """As on the real one: 0, whatever the program says, unless the features file is there."""
    done = fvp("-a", guest(STATUS=3), *semihosting())
    assert done.returncode == 0
    assert "ended with status 3; as with the model, it is not passed on" in done.stderr


def test_the_features_file_passes_the_status_on(fvp: Fvp, guest: Guest, tmp_path: Path) -> None:
    (tmp_path / ":semihosting-features").write_bytes(b"SHFB\x01")
    assert fvp("-a", guest(STATUS=3), *semihosting(tmp_path)).returncode == 3
    (tmp_path / ":semihosting-features").write_bytes(b"SHFB\x00")
    assert fvp("-a", guest(STATUS=3), *semihosting(tmp_path)).returncode == 0


@pytest.mark.parametrize("length", [255, 256, 257, 300])
def test_a_long_command_line_is_cut_silently(fvp: Fvp, guest: Guest, length: int) -> None:
    line = ("runner -m a,b " + "x" * length)[:length]
    done = fvp("-a", guest(SAY_COMMAND_LINE=1), *semihosting(line=f"'{line}'"))
    assert f"[{line[:256]}]" in done.stdout
    assert "256" not in done.stderr


def test_without_a_command_line_it_is_empty(fvp: Fvp, guest: Guest) -> None:
    assert "[]" in fvp("-a", guest(SAY_COMMAND_LINE=1), *semihosting()).stdout


def test_data_is_in_memory(fvp: Fvp, guest: Guest, tmp_path: Path) -> None:
    (tmp_path / "d,ata.bin").write_bytes(b"DATAFILE")
    elf = guest(SAY_MEMORY="0x70001000")
    done = fvp("-a", elf, "--data", f"cpu0={tmp_path}/d,ata.bin@0x70001000", *semihosting())
    assert "DATAFILE" in done.stdout


def test_the_guest_has_its_directory_and_nothing_else(
    fvp: Fvp, guest: Guest, tmp_path: Path
) -> None:
    """Semihosting would open any file of the host; what it writes elsewhere must vanish."""
    inside = tmp_path / "inside"
    inside.mkdir()
    assert "opened" in fvp("-a", guest(OPEN='"f"', MODE=4), *semihosting(inside)).stdout
    assert (inside / "f").exists()
    outside = tmp_path / "outside"
    fvp("-a", guest(OPEN=f'"{outside}"', MODE=4), *semihosting(inside))
    assert not outside.exists()
    outside.write_text("secret")
    done = fvp("-a", guest(OPEN=f'"{outside}"', MODE=0), *semihosting(inside))
    assert "refused" in done.stdout


def test_a_lock_up_is_an_error(fvp: Fvp, guest: Guest) -> None:
    done = fvp("-a", guest(LOCK_UP=1))
    assert done.returncode == 1
    assert "the core locked up" in done.stderr


def test_semihosting_is_off_unless_asked_for(fvp: Fvp, guest: Guest) -> None:
    """A semihosting program without it is a breakpoint nobody handles."""
    assert "locked up" in fvp("-a", guest(SAY_COMMAND_LINE=1)).stderr


def test_list_params_can_be_read_back(fvp: Fvp, guest: Guest, tmp_path: Path) -> None:
    listed = fvp("--list-params").stdout
    fvp("-l", "-o", tmp_path / "params.txt")
    assert (tmp_path / "params.txt").read_text() == listed
    done = fvp("-f", tmp_path / "params.txt", *UART0, *semihosting(), guest())
    assert "hello" in done.stdout


def test_help_names_the_options(fvp: Fvp) -> None:
    assert "--timelimit" in fvp("--help").stdout


def test_the_u65_model_runs_the_same(fvp: Fvp, guest: Guest) -> None:
    macs = ("-C", "ethosu.num_macs=256")
    assert "hello" in fvp("-a", guest(), *UART0, *macs, *semihosting(), model=U65).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "one application is needed (-a ELF), 0 were given"),
        (("-a", "x", "-a", "y"), "one application is needed (-a ELF), 2 were given"),
        (("-a", "missing.elf"), "cannot open application missing.elf: No such file"),
        (("-a", "/dev/null"), "cannot open application /dev/null: not a regular file"),
        (("-a", "/bin/true"), "application /bin/true is not a 32-bit little-endian Arm ELF file"),
        (("-l", "-o", "/nonexistent/x"), "No such file or directory (/nonexistent/x)"),
        (("-f", "/nonexistent"), "No such file or directory (/nonexistent)"),
        (("-C", "nothing=1"), "unknown parameter 'nothing'"),
    ],
)
def test_what_cannot_be_run_is_an_error(fvp: Fvp, arguments: tuple[str, ...], message: str) -> None:
    done = fvp(*arguments)
    assert done.returncode == 1
    assert f"Error: {U55}: " in done.stderr
    assert message in done.stderr


def test_a_damaged_elf(fvp: Fvp, guest: Guest, tmp_path: Path) -> None:
    short = tmp_path / "short.elf"
    short.write_bytes(guest().read_bytes()[:70])
    assert "is damaged" in fvp("-a", short).stderr


def test_directories_that_do_not_exist(fvp: Fvp, guest: Guest, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    assert "is not a directory" in fvp("-a", guest(), *semihosting(nowhere)).stderr
    done = fvp("-a", guest(), "-C", f"mps3_board.uart0.out_file={nowhere}/u")
    assert f"No such file or directory ({nowhere}/u)" in done.stderr


@pytest.mark.parametrize(
    ("place", "message"),
    [("nofile@0x70000000", "--data: cannot open nofile"), ("/bin/true@0x5", "is not in memory")],
)
def test_data_that_cannot_be_loaded(fvp: Fvp, guest: Guest, place: str, message: str) -> None:
    assert message in fvp("-a", guest(), "--data", place.replace("@0x5", "@0x50000000")).stderr


def test_a_missing_qemu_is_named(
    standin_directory: Path, guest: Guest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done = subprocess.run(
        [standin_directory / U55, "-a", guest()],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "qemu-system-arm is not installed" in done.stderr


def test_what_is_fixed_by_the_machine_is_said(fvp: Fvp, guest: Guest) -> None:
    done = fvp("-a", guest(), *semihosting(), "-C", "cpu0.CFGITCMSZ=15")
    assert "cpu0.CFGITCMSZ is fixed by the machine" in done.stderr


def test_killing_the_model_kills_qemu(
    standin_directory: Path, guest: Guest, tmp_path: Path
) -> None:
    """A script's time limit sends SIGKILL; the pipe closes only when nothing is left."""
    model = subprocess.Popen(
        [standin_directory / U55, "-a", guest(LOOP=1), *UART0],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert model.stdout is not None
    assert model.stdout.read(5) == b"hello"
    os.kill(model.pid, signal.SIGKILL)
    model.communicate(timeout=30)


def test_interrupting_the_model_is_a_stop(standin_directory: Path, guest: Guest) -> None:
    model = subprocess.Popen(
        [standin_directory / U55, "-a", guest(LOOP=1), *UART0],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # A suite that runs in the background of a script was started with the signal ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert model.stdout is not None
        assert model.stdout.read(5) == b"hello"
        model.send_signal(signal.SIGINT)
        said, _ = model.communicate(timeout=30)
    finally:
        model.kill()
    assert STOPPED in said.decode()


def test_the_record_has_a_copy_of_the_console(
    fvp: Fvp, guest: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_STANDIN_RECORD", str(tmp_path / "cwd"))
    done = fvp("-a", guest(), *UART0, *semihosting())
    (record,) = (tmp_path / "cwd").glob("*.log")
    assert record.read_text() == done.stdout


def test_an_exception_is_a_sentence(
    fvp: Fvp, guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here of a record that cannot be kept."""
    monkeypatch.setenv("HIL_STANDIN_RECORD", "/dev/null/record")
    done = fvp("-a", guest(), *UART0, *semihosting())
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last == f"Error: {U55}: reading or writing a file: Not a directory (/dev/null/record)"
    assert "Traceback" not in done.stderr


def test_a_program_that_never_goes_on_ends_at_once(fvp: Fvp, guest: Guest) -> None:
    """ExecuTorch's runner without semihosting stands in _exit: its script waits for 600 s."""
    done = fvp("-a", guest(LOOP=1), *UART0, "--timelimit", 50)
    assert done.returncode == 0
    assert "hello\nInfo: Simulation is stopping. Reason: CPU time has been exceeded." in done.stdout
    assert "the program stands still at reset (0x1000" in done.stderr


def test_a_program_that_a_timer_can_wake_is_waited_for(fvp: Fvp, guest: Guest) -> None:
    done = fvp("-a", guest(LOOP=1, TICKS=1), *UART0, "--timelimit", 6)
    assert "Reason: CPU time has been exceeded" in done.stdout
    assert "stands still" not in done.stderr


def test_a_program_that_has_exited_ends_although_its_timer_runs(fvp: Fvp, guest: Guest) -> None:
    """Zephyr's _exit, where ExecuTorch's sample ends when its model cannot be loaded."""
    done = fvp("-a", guest(LOOP=1, TICKS=1, EXITS=1), *UART0, "--timelimit", 50)
    assert "Reason: CPU time has been exceeded" in done.stdout
    assert "the program stands still at _exit (0x1000" in done.stderr


class TestCorstone320:
    """Exactly what can run does, and the rest is refused with the reason."""

    itcm = ("-C", "mps4_board.subsystem.iotss3_systemcontrol.INITSVTOR_RST=0")
    enable = ("-C", "mps4_board.subsystem.cpu0.semihosting-enable=1")
    uart = ("-C", "mps4_board.uart0.out_file=-")

    def test_a_program_in_the_memory_both_boards_have_runs(self, fvp: Fvp, guest: Guest) -> None:
        elf = guest()
        done = fvp("-a", elf, *self.itcm, *self.enable, *self.uart, model=SSE_320)
        assert "hello" in done.stdout
        assert "a Cortex-M55 instead of the Cortex-M85" in done.stderr

    def test_a_program_for_this_machines_map_runs_as_scripts_call_it(
        self, fvp: Fvp, guest: Guest
    ) -> None:
        """ExecuTorch's scripts leave the boot address as it is; nothing of the program is there."""
        done = fvp("-a", guest(), *self.enable, *self.uart, model=SSE_320)
        assert "hello" in done.stdout
        assert "no vector table at 0x11000000, where the model starts, but one" in done.stderr
        assert "no vector table" not in fvp("-a", guest(), *self.itcm, model=SSE_320).stderr

    def test_its_own_boot_address_is_refused(self, fvp: Fvp, guest: Guest) -> None:
        done = fvp("-a", guest(code=0x11000000), model=SSE_320)
        assert done.returncode == 1
        assert "starts at the vector table at 0x11000000" in done.stderr

    def test_memory_that_is_not_there_is_refused(self, fvp: Fvp, guest: Guest) -> None:
        elf = guest(code=0x12000000)
        done = fvp("-a", elf, *self.itcm, model=SSE_320)
        assert "its segment 0x12000000-0x12000007 is not in memory" in done.stderr

    def test_no_vector_table_where_the_machine_starts(self, fvp: Fvp, guest: Guest) -> None:
        done = fvp("-a", guest(code=0x11000000), model=U55)
        assert "it has no vector table at 0x00000000 or 0x10000000" in done.stderr

    @pytest.mark.parametrize("instruction", ["0xfb6cf00e", "0xfb50ef0c", "0xfb50ef1c"])
    def test_pointer_authentication_is_refused(
        self, fvp: Fvp, guest: Guest, instruction: str
    ) -> None:
        """PACG, AUTG, BXAUT (Armv8.1-M): undefined instructions on a Cortex-M55."""
        elf = guest(ATTRIBUTE='"50, 2"', INSTRUCTION=f'"{instruction}"')  # Tag_PAC_extension
        done = fvp("-a", elf, *self.itcm, model=SSE_320)
        assert "pointer-authentication instruction in reset (0x1000" in done.stderr

    def test_the_tag_alone_is_not_refused(self, fvp: Fvp, guest: Guest) -> None:
        """Every object for a Cortex-M85 has the tag. PACBTI is a NOP to an older core."""
        elf = guest(ATTRIBUTE='"50, 2"', INSTRUCTION='"0xf3af800d"')
        done = fvp("-a", elf, *self.itcm, *self.enable, *self.uart, model=SSE_320)
        assert "hello" in done.stdout

    def test_two_regions_over_one_memory_are_refused(self, fvp: Fvp, guest: Guest) -> None:
        """Through the Non-secure alias, in which no linker sees it."""
        done = fvp("-a", guest(data=0x00000100, SAY_COMMAND_LINE=1), model=U55)
        assert ".bss (0x00000100-0x000004ff) lies over .text (0x10000100-" in done.stderr
        assert "bytes from 0x00000100 are cleared over it" in done.stderr


def test_another_architecture_is_refused(fvp: Fvp, guest: Guest) -> None:
    assert "the core here is a Cortex-M55" in fvp("-a", guest(cpu="cortex-a9")).stderr
