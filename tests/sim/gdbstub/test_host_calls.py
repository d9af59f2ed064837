"""What an ELF asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.sim.gdbstub.host_calls import HostCalls, read_host_calls
from tests.sim.gdbstub import guests


def test_functions_and_hooks_are_found_by_name(tmp_path: Path) -> None:
    calls = read_host_calls(guests.bare(tmp_path / "e", guests.NPU_GUEST))
    assert {"ethosu_init", "ethosu_invoke_v3", "ETHOSU_PMU_Get_CCNTR"} <= set(calls.functions)
    assert set(calls.callbacks) == {"ethosu_inference_begin", "ethosu_inference_end"}
    assert not any(
        address & 1 for address in (*calls.functions.values(), *calls.callbacks.values())
    )
    assert calls.needs_hooks


def test_our_own_runner_asks_for_nothing(tmp_path: Path) -> None:
    """It is started without a debugger."""
    calls = read_host_calls(guests.bare(tmp_path / "e", guests.NPU_GUEST, DOORBELL=1))
    assert calls == HostCalls(doorbell=True)
    assert not calls.needs_hooks


def test_newlibs_start_up_asks_for_its_heap_also_without_symbols(tmp_path: Path) -> None:
    elf = guests.newlib(tmp_path / "e")
    calls = read_host_calls(guests.stripped(elf))
    assert calls == read_host_calls(elf)
    assert calls.heap_calls
    assert calls.needs_hooks


def test_a_stripped_driver_is_an_error(tmp_path: Path) -> None:
    elf = guests.bare(tmp_path / "e", guests.NPU_GUEST, MESSAGES=1)
    assert read_host_calls(elf).functions
    with pytest.raises(UsageError, match="but no symbol table: QEMU has no Ethos-U") as caught:
        read_host_calls(guests.stripped(elf))
    assert caught.value.facts["stripped"]
    assert "do not strip" in str(caught.value.hint)


def test_a_driver_whose_functions_are_inlined_is_an_error(tmp_path: Path) -> None:
    """As link-time optimisation may leave it: symbols, and none of the driver."""
    elf = guests.bare(tmp_path / "e", guests.NPU_GUEST, MESSAGES=1, DOORBELL=1)
    renamed = tmp_path / "renamed"
    renamed.write_bytes(elf.read_bytes().replace(b"npu-request", b"something-x"))
    with pytest.raises(UsageError, match="no symbols of the driver's functions") as caught:
        read_host_calls(renamed)
    assert not caught.value.facts["stripped"]


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n"])
def test_other_files_ask_for_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert read_host_calls(tmp_path / "file") == HostCalls()
    assert read_host_calls(tmp_path / "absent") == HostCalls()
