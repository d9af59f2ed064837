"""Protects the promise that a program gets the memory it needs, as far as the board has it, and
that one that does not fit is told before anything is built, with what lies where."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.config.loading import load_target
from harness.config.target import Region, Target
from harness.firmware.memory import (
    NOTHING,
    DoesNotFit,
    MemoryNeeds,
    has_room,
    memory_needs,
    pool_options,
)
from harness.run.pipeline import RunOptions, run_cases

KIB, MIB = 1 << 10, 1 << 20
METHOD = "HIL_METHOD_POOL_BYTES"
METHOD_PLACE = "HIL_METHOD_POOL_PLACE"
M55, U55 = "corstone-300-m55", "corstone-300-u55-128"
U65, U85 = "corstone-300-u65-512", "corstone-320-u85-256"
LINUX = "corstone-1000-a320"


def pools(target: str, needs: MemoryNeeds) -> dict[str, int]:
    options = pool_options(load_target(target), needs)
    return {
        name.removeprefix("HIL_").removesuffix("_POOL_BYTES").lower(): int(value)
        for name, value in options.items()
        if name.endswith("_BYTES")
    }


@pytest.mark.parametrize(
    ("target", "file", "method", "temp"),
    [
        (M55, 32 * MIB, 1536 * KIB, 256 * KIB),
        (LINUX, 32 * MIB, 1536 * KIB, 256 * KIB),
        ("mps2-m4", 12 * MIB, 1536 * KIB, 256 * KIB),
        (U55, 32 * MIB, 512 * KIB, 1536 * KIB),
        (U65, 32 * MIB, 1536 * KIB, 16 * MIB),
        (U85, 1536 * KIB, 512 * KIB, 2 * MIB),
    ],
)
def test_small_programs_share_one_firmware(target: str, file: int, method: int, temp: int) -> None:
    """The sizes that references of a runner were accepted with."""
    small = MemoryNeeds(file, method, temp)
    assert pools(target, NOTHING) == pools(target, small) == vars(small)
    assert METHOD_PLACE not in pool_options(load_target(target), small)


@pytest.mark.parametrize("target", [M55, U55, U65, LINUX])
def test_a_larger_pool_is_a_power_of_two(target: str) -> None:
    """So that programs of like size share a firmware, too."""
    needs = MemoryNeeds(method=2 * MIB + 1)
    assert pools(target, needs)["method"] == 4 * MIB
    assert has_room(pool_options(load_target(target), needs), needs)


@pytest.mark.parametrize(("target", "moves"), [(M55, True), (U55, True), (U65, False)])
def test_buffers_of_the_cpu_go_to_ddr_where_sram_is_too_small(target: str, moves: bool) -> None:
    """In a mode with the arena in DDR they are there already."""
    options = pool_options(load_target(target), MemoryNeeds(method=3 * MIB))
    assert options.get(METHOD_PLACE) == ("DDR" if moves else None)


def test_sram_comes_first() -> None:
    """What fits there to the kilobyte is not moved."""
    options = pool_options(load_target(U55), MemoryNeeds(method=900_000, temp=1_190_000))
    assert METHOD_PLACE not in options
    assert (int(options[METHOD]), int(options["HIL_TEMP_POOL_BYTES"])) == (900_096, 1_190_912)


def test_scratch_of_the_npu_stays_where_its_mode_has_it() -> None:
    """2 MiB and a byte of it are too many for the SRAM, and DDR is no place for it."""
    with pytest.raises(DoesNotFit) as caught:
        pool_options(load_target(U55), MemoryNeeds(temp=2 * MIB + 1))
    error = caught.value
    assert error.verdict == "OVER_BUDGET"
    assert (error.kind, error.region, error.size, error.missing) == ("memory", "SRAM", 2 * MIB, KIB)
    assert error.needed == {"temp": 2 * MIB + KIB}
    assert "SRAM has 2,097,152 bytes, and it needs 2,098,176 for scratch of the NPU" in str(error)


def test_a_mode_that_would_do_is_named() -> None:
    needs = MemoryNeeds(file=3_900_000, method=800_000, temp=1_500_000)
    with pytest.raises(DoesNotFit) as caught:
        pool_options(load_target(U85), needs)
    assert (caught.value.region, set(caught.value.needed)) == ("SRAM", {"file", "temp"})
    assert caught.value.instead == tuple(
        f"{U85}@{mode}"
        for mode in (
            "Shared_Sram",
            "Dedicated_Sram",
            "Dedicated_Sram_256KB",
            "Dedicated_Sram_384KB",
            "Dedicated_Sram_512KB",
        )
    )
    assert "it would fit corstone-320-u85-256@Shared_Sram" in str(caught.value.hint)
    for name in caught.value.instead:
        assert has_room(pool_options(load_target(name), needs), needs)


def test_a_board_that_would_do_is_named_where_no_mode_does() -> None:
    """A Linux board places what it needs wherever it has memory."""
    needs = MemoryNeeds(file=300 * MIB)
    with pytest.raises(DoesNotFit, match="SRAM has 4,194,304 bytes") as caught:
        pool_options(load_target(U85), needs)
    assert caught.value.instead == ("corstone-1000-u85-256",)


def test_nothing_has_that_much() -> None:
    with pytest.raises(DoesNotFit) as caught:
        pool_options(load_target(U55), MemoryNeeds(file=300 * MIB))
    assert caught.value.instead == ()
    assert str(caught.value.hint).startswith("no other memory mode")


def test_fast_scratch_takes_its_part_of_the_sram() -> None:
    with pytest.raises(DoesNotFit) as caught:
        pool_options(_with_sram(load_target(U65), 256 * KIB), NOTHING)
    assert caught.value.needed == {"fast_scratch": 384 * KIB}


def _with_sram(target: Target, size: int) -> Target:
    memory = tuple(
        replace(region, size=size) if region.name == "SRAM" else region for region in target.memory
    )
    return replace(target, memory=memory)


def test_a_board_with_less_memory_gives_less() -> None:
    """A memory map is all that a user has to write."""
    small = _with_sram(load_target(M55), 384 * KIB)
    options = pool_options(small, MemoryNeeds(method=100 * KIB, temp=0))
    assert int(options[METHOD]) == 100 * KIB
    assert METHOD_PLACE not in options
    only = replace(small, memory=tuple(r for r in small.memory if r.name != "DDR"))
    with pytest.raises(DoesNotFit, match="SRAM"):
        pool_options(only, MemoryNeeds(method=400 * KIB))


def test_a_pool_of_the_targets_file_is_a_budget(tmp_path: Path) -> None:
    """It neither grows nor moves, on a CPU or an NPU."""
    for base in (M55, U55):
        target = replace(load_target(base), pools={"method": 48 * KIB})
        assert pool_options(target, MemoryNeeds(method=48 * KIB))[METHOD] == str(48 * KIB)
        with pytest.raises(DoesNotFit) as caught:
            pool_options(target, MemoryNeeds(method=48 * KIB + 1))
        assert (caught.value.region, caught.value.missing) == ("", 1)
        assert "`pools` of the target's file" in str(caught.value.hint)


def test_a_users_pool_holds_for_a_target_with_an_npu(tmp_path: Path) -> None:
    """The product's sizes used to replace it."""
    (tmp_path / "mine.yaml").write_text(f"extends: {U55}\npools: {{temp: 0x100000}}\n")
    target = load_target(str(tmp_path / "mine.yaml"))
    assert pool_options(target)["HIL_TEMP_POOL_BYTES"] == str(MIB)


def test_a_region_is_overfull_by_what_all_of_its_pools_need() -> None:
    target = load_target(U55)
    assert Region(name="SRAM", origin=0x31000000, size=2 * MIB) in target.memory
    with pytest.raises(DoesNotFit) as caught:
        pool_options(load_target(f"{U55}@Sram_Only"), MemoryNeeds(file=MIB, temp=MIB + 1))
    assert caught.value.needed == {"file": MIB, "temp": MIB + KIB}
    assert caught.value.missing == KIB


def test_what_is_not_a_program_takes_its_size(tmp_path: Path) -> None:
    """The runner says better what is wrong with it."""
    for content in (b"", b"not a program", b"\0\0\0\0ET12" + bytes(40)):
        (tmp_path / "bad.pte").write_bytes(content)
        taken = memory_needs(tmp_path / "bad.pte", load_target(M55))
        assert taken == MemoryNeeds(file=-(-len(content) // 32) * 32)


def test_too_large_a_network_is_reported_before_a_build(
    tmp_path: Path, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a network that fits gets pools that the other one's firmware does not have."""
    (tmp_path / "board.yaml").write_text(f"extends: {M55}\npools: {{method: 0x100}}\n")
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    (record,) = run_cases([Case(str(tmp_path / "board.yaml"), "add")], RunOptions())
    assert (record.verdict, record.run_dir) == ("OVER_BUDGET", None)
    assert record.cause is not None
    assert (record.cause.kind, record.cause.facts["size"]) == ("memory", 0x100)
