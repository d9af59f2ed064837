"""The simulator is chosen once, and never replaced behind anybody's back."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from harness.config.loading import load_target, target_directories
from harness.config.target import Qemu, Simulators, Target
from harness.core.errors import FvpMissing, ToolMissing, Unknown
from harness.core.simulator_name import SimulatorName
from harness.core.verdict import Verdict
from harness.sim.simulator import available_simulators, pick, simulator, skip_without_fvp


@pytest.fixture
def board() -> Target:
    return load_target("corstone-300-m55", target_directories({}))


@pytest.mark.parametrize("name", SimulatorName)
def test_every_name_has_its_object_and_its_settings(name: SimulatorName) -> None:
    """A row in SimulatorName without its module, or its section of a target file, is noticed."""
    assert simulator(name).name is name
    assert name in {one.name for one in fields(Simulators)}


def test_the_choice_has_the_target_as_it_is_there(board: Target) -> None:
    told = Qemu(executable="qemu-system-arm", machine="m", core="Cortex-M3", cmake={"HIL_A": "7"})
    settings = replace(board.simulators, qemu=told)
    other = replace(board, simulators=settings, core="Cortex-M55")
    chosen = pick(other, "qemu")
    assert chosen.target.cmake["HIL_A"] == "7"
    assert chosen.differences == ("the board's CPU is a Cortex-M55; QEMU ran a Cortex-M3",)
    assert pick(other, "fvp").target == other
    assert pick(other, "fvp").differences == ()


def test_skipping_is_a_verdict_with_a_cause(
    board: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HIL_FVP_DIR", str(tmp_path))
    with pytest.raises(FvpMissing, match="is not installed") as caught:
        skip_without_fvp(pick(board, "fvp"))
    assert (caught.value.verdict, caught.value.kind) == (Verdict.SKIPPED, "fvp_missing")
    assert caught.value.tool == "FVP_Corstone_SSE-300_Ethos-U55"
    assert caught.value.package == "FVP_Corstone_SSE-300_11.27_42_Linux64.tgz"
    assert "HIL_FVP_DIR" in str(caught.value.hint)
    skip_without_fvp(pick(board, "qemu"))


def test_unknown_simulator(board: Target) -> None:
    with pytest.raises(Unknown, match="has no simulator 'qmu'") as caught:
        pick(board, "qmu")
    assert caught.value.hint == "did you mean qemu?"


def test_named_simulator_is_never_replaced(
    board: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked for the FVP, which is not here: an error, not a result of QEMU."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HIL_FVP_DIR", raising=False)
    assert pick(board, "fvp").name is SimulatorName.FVP
    with pytest.raises(ToolMissing, match="FVP_Corstone"):
        pick(board, "fvp").require()
    assert available_simulators(board) == ()
    with pytest.raises(ToolMissing, match="qemu-system-arm is not installed") as caught:
        pick(board).require()
    assert caught.value.package == "qemu-system-arm"


def test_auto_prefers_an_installed_fvp(
    board: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    monkeypatch.setenv("HIL_FVP_DIR", str(tmp_path))
    assert pick(board).name is SimulatorName.QEMU
    model = tmp_path / "FVP_Corstone_SSE-300_Ethos-U55"
    model.write_text("#!/bin/sh\necho 'Fast Models [11.27.42 (Dec  9 2024)]'\n")
    model.chmod(0o755)
    assert pick(board).name is SimulatorName.FVP
    assert pick(board, "qemu").name is SimulatorName.QEMU
