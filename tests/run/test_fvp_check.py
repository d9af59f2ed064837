"""`hil fvp check` on the stand-in: what its file holds, and what it does not."""

from __future__ import annotations

import json
import platform
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.main import main
from harness.suites.standin.install import install
from tests.fvp import read_fvp_file

U55 = "FVP_Corstone_SSE-300_Ethos-U55"


@pytest.mark.skipif(not shutil.which("arm-none-eabi-gcc"), reason="needs arm-none-eabi-gcc")
def test_the_file_of_a_stand_in(
    tmp_path: Path, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its CPU runs the program; it has no registers of an NPU, and the driver says so."""
    monkeypatch.setattr("harness.run.fvp_check.MODELS", ("add",))
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    install(tmp_path / "fvp")
    monkeypatch.setenv("HIL_FVP_DIR", str(tmp_path / "fvp"))
    output = tmp_path / "check.json"
    done = CliRunner().invoke(main, ["fvp", "check", U55, "-o", str(output)])
    (fvp,) = read_fvp_file(output).fvps
    cpu, npu = fvp.runs
    assert (cpu.verdict, cpu.outputs) == ("PASS", cpu.expected), done.output
    assert (npu.verdict, npu.cause) == ("FAULT", "npu_driver_error")
    assert done.exit_code == 1
    assert [run.replay() for run in fvp.runs] == [(run.verdict, run.cause) for run in fvp.runs]
    assert fvp.stand_in
    assert f"{U55} (stand-in): {len(fvp.parameters)} parameters" in done.output
    assert "ethosu.num_macs" in fvp.parameters
    text = output.read_text()
    own = (str(tmp_path), shared_hil_home, str(Path.home()) + "/", platform.node())
    assert [word for word in own if len(word) > 2 and word in text] == []
    assert "/fvp/FVP_Corstone" in json.dumps(cpu.argv)


def test_without_an_fvp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HIL_FVP_DIR", str(tmp_path))
    done = CliRunner().invoke(main, ["fvp", "check"])
    assert done.exit_code == 3
    assert "no FVP is installed" in done.output
    assert "hil standin install" in done.output


def test_an_unknown_name(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["fvp", "check", "FVP_Corstone_SSE-300_Ethos-U56"])
    assert done.exit_code == 2
    assert "did you mean" in done.output
    assert U55 in done.output
