"""Programs that were linked for an FVP, with newlib's own start-up, and not touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sim.gdbstub import guests

from .conftest import SSE_320, Fvp, Guest, semihosting

# What ExecuTorch's scripts set.
GIVEN = ("-C", "cpu0.semihosting-stack_base=0", "-C", "cpu0.semihosting-heap_limit=0")
ITCM = ("-C", "mps4_board.subsystem.iotss3_systemcontrol.INITSVTOR_RST=0")


@pytest.mark.parametrize("macros", [{}, {"THROUGH_FUNCTION": 1}])
def test_start_up_finds_the_memory_that_the_program_was_linked_for(
    fvp: Fvp, tmp_path: Path, macros: dict[str, object]
) -> None:
    """QEMU's own answer puts the stack into ITCM's end, and then no malloc succeeds."""
    elf = guests.newlib(tmp_path / "newlib.elf", **macros)
    done = fvp("-a", elf, *GIVEN, *semihosting(line="runner -m model"))
    assert done.stdout.splitlines()[:5] == [
        "block 0 0 0 20700000",
        "errors 0 1",
        "arguments 3 model",
        "malloc behind the program",
        "file 1",
    ]
    assert (tmp_path / "cwd" / "out.txt").read_text() == "written"
    assert done.returncode == 0


def test_the_answer_is_what_the_parameters_say(fvp: Fvp, tmp_path: Path) -> None:
    elf = guests.newlib(tmp_path / "newlib.elf")
    values = {
        "heap_base": 0x30040000,
        "heap_limit": 0x30070000,
        "stack_base": 0x30078000,
        "stack_limit": 0x30070000,
    }
    words = [w for name, at in values.items() for w in ("-C", f"cpu0.semihosting-{name}={at}")]
    done = fvp("-a", elf, *words, *semihosting())
    assert "block 30040000 30070000 30078000 30070000\n" in done.stdout
    assert "malloc behind" in done.stdout
    assert "answered by" not in done.stderr


def test_the_other_boards_parameters(fvp: Fvp, tmp_path: Path) -> None:
    elf = guests.newlib(tmp_path / "newlib.elf")
    cpu = "mps4_board.subsystem.cpu0.semihosting"
    words = (*ITCM, "-C", f"{cpu}-enable=1", "-C", f"{cpu}-stack_base=0")
    done = fvp("-a", elf, *words, "-C", f"{cpu}-heap_base=0x30050000", model=SSE_320)
    assert "block 30050000 20700000 0 20700000\n" in done.stdout


@pytest.mark.parametrize("status", [255, 193, 134])
def test_a_program_that_gives_up_is_not_qemu_that_died(
    fvp: Fvp, tmp_path: Path, status: int
) -> None:
    """abort() of ExecuTorch's runner is _exit(-1); 134 is also what a QEMU that aborts has, and
    the debugger interface tells the two apart."""
    elf = guests.newlib(tmp_path / "newlib.elf", STATUS=status)
    done = fvp("-a", elf, *GIVEN, *semihosting())
    assert f"ended with status {status}; as with the model, it is not passed on" in done.stderr
    assert done.returncode == 0
    (tmp_path / "cwd" / ":semihosting-features").write_bytes(b"SHFB\x01")
    assert fvp("-a", elf, *GIVEN, *semihosting()).returncode == status


def test_255_is_the_programs_also_when_nobody_attends_it(fvp: Fvp, guest: Guest) -> None:
    done = fvp("-a", guest(STATUS=255), *semihosting())
    assert "ended with status 255" in done.stderr
    assert done.returncode == 0


def test_a_driver_without_symbols_is_refused_before_the_start(fvp: Fvp, guest: Guest) -> None:
    """It would wait for an NPU that is not there, to the limit."""
    elf = guest(source=guests.NPU_GUEST, MESSAGES=1)
    assert "copied 16" in fvp("-a", elf, *semihosting()).stdout
    done = fvp("-a", guests.stripped(elf), *semihosting())
    assert done.returncode == 1
    assert done.stdout == ""
    assert "has Arm's Ethos-U core driver in it but no symbol table" in done.stderr
    assert "keep the section .symtab" in done.stderr
