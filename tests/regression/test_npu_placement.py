"""A memory mode shows in the firmware: what lies in which region, read from the ELF itself."""

from __future__ import annotations

import pytest

from harness.config.loading import load_target
from harness.config.target import Target
from harness.firmware.memory import pool_options
from harness.firmware.source import Firmware
from harness.firmware.sources.bundled import build
from harness.formats.elf import read_elf
from harness.sim.simulator import pick
from harness.size.elf_anatomy import section_parts
from harness.size.measure import figures_of_firmware


def sections(firmware: Firmware) -> dict[str, tuple[int, int]]:
    """Address and size of every section that has a size."""
    return {s.name: (s.address, s.size) for s in read_elf(firmware.elf).sections if s.size}


def region_of(firmware: Firmware, section: str) -> str:
    address, size = sections(firmware)[section]
    return next(r.name for r in firmware.regions if r.origin <= address and address + size <= r.end)


# One per target and mode; the model does not matter.
@pytest.mark.hil_cases(models=["add"], npu=True)
def test_everything_is_where_the_memory_mode_says(
    hil_target: Target, hil_firmware: Firmware
) -> None:
    """Weights are with the files, the arena is the other two pools; and the footprint, which is
    the bytes of each region, has the fast scratch only where a dedicated SRAM is."""
    target, firmware = hil_target, hil_firmware
    if not target.memory:
        pytest.skip(f"{target.name} has no memory map: Linux places what its driver asks for")
    assert target.npu is not None
    mode = target.npu.mode
    assert region_of(firmware, ".pool.files") == mode.weights
    assert region_of(firmware, ".pool.method") == mode.arena
    assert region_of(firmware, ".pool.temp") == mode.arena
    scratch = sections(firmware).get(".pool.fast_scratch", (0, 0))[1]
    assert scratch == mode.fast_scratch
    if scratch:
        assert region_of(firmware, ".pool.fast_scratch") == "SRAM"
    options = pool_options(target)
    pools = {
        name: int(options[f"HIL_{name.upper()}_POOL_BYTES"]) for name in ("file", "method", "temp")
    }
    sram = (
        mode.fast_scratch
        + (pools["file"] if mode.weights == "SRAM" else 0)
        + (pools["method"] + pools["temp"] if mode.arena == "SRAM" else 0)
    )
    parts = section_parts(firmware.elf, firmware.regions)
    figures = figures_of_firmware(parts, [r.name for r in firmware.regions])
    assert figures["elf_outside"] == 0
    assert figures["elf_SRAM"] == sram


@pytest.mark.u55
@pytest.mark.parametrize(
    ("name", "stack", "code"),
    [("corstone-300-u55-128", "DTCM", "ITCM"), ("corstone-320-u85-256", "DTCM", "BRAM")],
)
def test_the_runner_for_an_fvp_drives_registers(name: str, stack: str, code: str) -> None:
    """It links into the board's own memory and knows nothing of the stand-in's doorbell. It was
    never run on an FVP."""
    target = load_target(name)
    firmware = build(pick(target, "fvp").target)
    assert {(r.name, r.origin) for r in firmware.regions} == {
        (r.name, r.origin) for r in target.memory
    }
    assert b"npu-request" not in firmware.elf.read_bytes()
    assert ".pool.doorbell" not in sections(firmware)
    assert region_of(firmware, ".stack") == stack
    assert region_of(firmware, ".text") == code
    assert region_of(firmware, ".vectors") == "ITCM"
