"""Protects what a target for Zephyr says of its boards: one for each simulator, with the memory
that the sample's devicetree overlay for that board has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.config.loading import load_target
from harness.core.errors import TargetError
from harness.core.simulator_name import SimulatorName
from harness.sim.qemu_command import argv
from tools.clone import project_root

_OVERLAYS = project_root() / "targets" / "runner" / "ports" / "zephyr" / "sample" / "boards"
_REGION = re.compile(
    r'reg = <(0x[0-9a-f]+) DT_SIZE_M\((\d+)\)>;\s+zephyr,memory-region = "HIL_(\w+)"'
)
TARGETS = ("zephyr-corstone-300", "zephyr-corstone-300-u55-128")
QEMU, FVP = SimulatorName.QEMU, SimulatorName.FVP


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(
    ("simulator", "board"), [(QEMU, "mps3/corstone300/an547"), (FVP, "mps3/corstone300/fvp")]
)
def test_each_simulator_has_its_board_and_its_memory(
    name: str, simulator: SimulatorName, board: str
) -> None:
    there = load_target(name).on(simulator)
    assert there.zephyr is not None
    assert there.zephyr.board == board
    text = (_OVERLAYS / f"{board.replace('/', '_')}.overlay").read_text()
    laid = {(place, int(at, 16), int(size) << 20) for at, size, place in _REGION.findall(text)}
    assert laid == {(r.name, r.origin, r.size) for r in there.memory}


@pytest.mark.parametrize("name", TARGETS)
def test_another_board_is_told(name: str) -> None:
    told = (
        "Zephyr was built for mps3/corstone300/an547, which QEMU is, not for mps3/corstone300/fvp"
    )
    target = load_target(name)
    assert told in target.differences(QEMU)
    assert told not in target.differences(FVP)


@pytest.mark.parametrize(
    ("name", "serial"),
    [
        ("zephyr-corstone-300", "stdio"),
        ("zephyr-corstone-300-u55-128", "stdio"),
        ("corstone-300-m55", "none"),
    ],
)
def test_zephyrs_console_is_heard(name: str, serial: str) -> None:
    settings = load_target(name).simulators.qemu
    assert settings is not None
    words = argv("qemu", settings, Path("x.elf"), ())
    assert words[words.index("-serial") + 1] == serial


def test_a_board_of_zephyrs_is_no_use_to_another_port(tmp_path: Path) -> None:
    text = (project_root() / "targets" / "mps2-m3.yaml").read_text()
    (tmp_path / "t.yaml").write_text(text.replace("  qemu:\n", "  qemu:\n    board: mps2/an385\n"))
    with pytest.raises(TargetError, match="`board` of `qemu` is Zephyr's"):
        load_target("t", (tmp_path,))
