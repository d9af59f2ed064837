"""What an ELF asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.sim.gdbstub.program import Program, read_program
from tests.sim.gdbstub import guests


def test_functions_and_hooks_are_found_by_name(tmp_path: Path) -> None:
    program = read_program(guests.bare(tmp_path / "e", guests.NPU_GUEST))
    assert {"ethosu_init", "ethosu_invoke_v3", "ETHOSU_PMU_Get_CCNTR"} <= set(program.functions)
    assert set(program.callbacks) == {"ethosu_inference_begin", "ethosu_inference_end"}
    assert not any(
        address & 1 for address in (*program.functions.values(), *program.callbacks.values())
    )
    assert program.needs_hooks


def test_our_own_runner_asks_for_nothing(tmp_path: Path) -> None:
    """It is started without a debugger."""
    program = read_program(guests.bare(tmp_path / "e", guests.NPU_GUEST, DOORBELL=1))
    assert program == Program(doorbell=True)
    assert not program.needs_hooks


def test_newlibs_start_up_asks_for_its_heap_also_without_symbols(tmp_path: Path) -> None:
    elf = guests.newlib(tmp_path / "e")
    program = read_program(guests.stripped(elf))
    assert program == read_program(elf)
    assert program.heap_calls
    assert program.needs_hooks


def test_a_stripped_driver_is_an_error(tmp_path: Path) -> None:
    elf = guests.bare(tmp_path / "e", guests.NPU_GUEST, MESSAGES=1)
    assert read_program(elf).functions
    with pytest.raises(UsageError, match="but no symbol table: QEMU has no Ethos-U") as caught:
        read_program(guests.stripped(elf))
    assert caught.value.facts["stripped"]
    assert "do not strip" in str(caught.value.hint)


def test_a_driver_whose_functions_are_inlined_is_an_error(tmp_path: Path) -> None:
    """As link-time optimisation may leave it: symbols, and none of the driver."""
    elf = guests.bare(tmp_path / "e", guests.NPU_GUEST, MESSAGES=1, DOORBELL=1)
    renamed = tmp_path / "renamed"
    renamed.write_bytes(elf.read_bytes().replace(b"npu-request", b"something-x"))
    with pytest.raises(UsageError, match="no symbols of the driver's functions") as caught:
        read_program(renamed)
    assert not caught.value.facts["stripped"]


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n"])
def test_other_files_ask_for_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert read_program(tmp_path / "file") == Program()
    assert read_program(tmp_path / "absent") == Program()
