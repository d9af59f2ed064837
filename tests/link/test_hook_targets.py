"""Protects the Ethos-U backend's copy hook in the firmware of the targets themselves, by memory
mode: the override counts what the program's tensors need wherever the pools lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.loading import load_target
from harness.firmware.sources.bundled import build
from harness.sim.simulator import pick
from tests.link.delegate_program import needed_copies
from tests.link.recorded_programs import PROGRAMS, counted
from tests.link.test_own_builds import LISTS, forgetful_kernels
from tests.thorough import cases

# Two boards, and every placement of weights and arena. In a push test_hook_runtime has the U55's.
TARGETS = cases(
    "corstone-300-u65-512",  # Dedicated_Sram_384KB
    thorough=(
        "corstone-300-u55-128",  # Shared_Sram
        "corstone-320-u85-256",  # Sram_Only
        "corstone-320-u85-256@Dedicated_Sram_384KB",
    ),
)


@pytest.mark.parametrize("name", TARGETS)
def test_the_override_sees_every_copy(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    kernels = forgetful_kernels(
        tmp_path, LISTS.replace("registry.cpp", "registry.cpp op_forgotten.cpp")
    )
    options = {"HIL_ETHOSU_COUNT_IO": "ON", "HIL_KERNELS_DIR": str(kernels)}
    target = load_target(name)
    assert target.npu is not None
    firmware = build(pick(target, "qemu").target, options=options)
    chosen = {
        key: what
        for key, what in PROGRAMS.items()
        if (what.product, what.macs) == (target.npu.product, target.npu.macs)
        and (not what.fast or target.npu.mode.fast_scratch)
    }
    for key, what in chosen.items():
        run = what.run(firmware.elf, tmp_path / key)
        assert run.status == 0, run.console
        assert counted(run.console) == 2 * needed_copies(what.program()), key
        assert run.outputs == (what.expected(),) * 2, key
    assert chosen
