"""Protects that the Ethos-U backend's copy can be replaced in the firmware, in every bare-metal
configuration; test_hook_runtime.py runs it, test_zephyr_hook.py does so in the Zephyr module."""

from __future__ import annotations

import subprocess

import pytest

from harness.link.check import check
from tests.link.conftest import BareRunner
from tests.link.runner_build import ELF
from tests.thorough import cases

HOOK = "arm_ethos_io_memcpy"
CHECKS = {
    "default_is_weak",
    "default_is_alone",
    "called_across_files",
    "not_inlined",
    "strong_wins",
}
# the options of the runners that test_hook_runtime.py runs, as it gives them
DOORBELL = ("-DHIL_ETHOSU=ON", "-DHIL_ETHOSU_DRIVER=doorbell")
COUNTING = (*DOORBELL, "-DHIL_ETHOSU_COUNT_IO=ON")
FAST_SCRATCH = "-DHIL_ETHOSU_FAST_SCRATCH_BYTES=393216"
UNOPTIMISED = "-DCMAKE_BUILD_TYPE=Debug"
CONFIGURATIONS = {
    "doorbell": DOORBELL,
    "registers": ("-DHIL_ETHOSU=ON", "-DHIL_ETHOSU_DRIVER=registers"),
    "fast_scratch": (*COUNTING, FAST_SCRATCH),
    "cortex_m33": ("-DHIL_ETHOSU=ON", "-DHIL_CPU=cortex-m33", "-DHIL_ETHOSU_DRIVER=registers"),
    "unoptimised": (*COUNTING, UNOPTIMISED),
}


def _quiet(_message: str) -> None:
    pass


@pytest.mark.parametrize(
    "name",
    cases("fast_scratch", "doorbell", thorough=("registers", "cortex_m33", "unoptimised")),
)
def test_the_default_can_be_overridden(name: str, bare_runner: BareRunner) -> None:
    found = check(bare_runner(*CONFIGURATIONS[name]), [HOOK], _quiet)
    assert found.holds, found.text()
    assert {f.check for f in found.findings} == CHECKS
    assert any("io_memcpy.cpp" in f.text for f in found.findings)
    assert any("function hil::ethosu::" in f.text for f in found.findings)


def test_the_counting_build_overrides_it(bare_runner: BareRunner) -> None:
    build = bare_runner(*COUNTING, FAST_SCRATCH)
    found = check(build, [HOOK], _quiet)
    symbols = subprocess.run(
        ["arm-none-eabi-nm", str(build / ELF)], capture_output=True, text=True, check=True
    ).stdout
    assert f" T {HOOK}\n" in symbols
    assert found.holds, found.text()
    assert any("io_count.cpp" in f.text for f in found.findings if f.check == "strong_wins")


def test_without_the_backend_there_is_no_hook(bare_runner: BareRunner) -> None:
    found = check(bare_runner(), [HOOK], _quiet)
    assert [f.check for f in found.findings] == ["in_program"]
    assert "neither defined nor called here" in found.text()
    assert not found.holds  # nothing was proven
