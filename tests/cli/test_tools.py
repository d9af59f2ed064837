"""What the doctor shows beside versions: why one was asked anew, or is not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import main
from harness.system import toolchain
from harness.system.toolchain import FVP_DOWNLOADS
from tools.doubles import install_double


def shown(*verb: str) -> tuple[dict[str, Any], str]:
    """As data and as text."""
    answers = [CliRunner().invoke(main, [*verb, *words]).stdout for words in (["--json"], [])]
    return json.loads(answers[0]), answers[1]


def test_what_went_wrong_with_a_version_reaches_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As text and as data."""
    tool = tmp_path / "cmake"
    tool.write_text("#!/bin/sh\nexec /bin/sleep 20\n")
    tool.chmod(0o755)
    monkeypatch.setattr(toolchain, "_QUERY_SECONDS", 0.2)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HIL_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "300")
    data, text = shown("doctor")
    (row,) = (row for row in data["tools"] if row["name"] == "cmake")
    assert "did not print its version" in row["note"]
    assert f"cmake: {row['note']}" in " ".join(text.split())
    assert next(row["note"] for row in data["tools"] if row["path"] is None) is None


def test_doctor_counts_what_can_run_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says where to get each FVP, the one that boots Linux too."""
    name = "FVP_Corstone_SSE-320"
    monkeypatch.setenv("HIL_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("HIL_FVP_DIR", "")
    data, out = shown("doctor")
    able, every = data["targets"]["fvp"]
    assert (able, every > 20) == (0, True)
    assert "; FVP: none" in out
    assert any("Corstone_1000" in row["how_to_get"] for row in data["tools"])
    install_double(tmp_path / "fvp", name, "passes", ())
    monkeypatch.setenv("HIL_FVP_DIR", str(tmp_path / "fvp"))
    data, out = shown("doctor")
    assert data["targets"]["fvp"][0] > 0
    assert f"; FVP: {name} 11.27.42" in out


def test_what_is_missing_is_reported_once_and_within_80_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No name, package or address is cut: only an address may be longer than its line."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HIL_HOME", str(tmp_path))
    monkeypatch.setenv("HIL_FVP_DIR", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    _, out = shown("doctor")
    lines = out.splitlines()
    assert (
        max(len(line) for line in lines if "https://" not in line and "missing: " not in line) <= 80
    )
    assert "FVP_Corstone_SSE-300_Ethos-U55, FVP_Corstone_SSE-300_Ethos-U65: get" in out
    assert " ".join(out.split()).count("apt-get install gcc-arm-none-eabi") == 1
    assert FVP_DOWNLOADS in out


def test_targets_have_a_line_each_and_fit_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    data, text = shown("targets")
    lines = text.splitlines()
    names = [row["name"] for row in data["targets"]]
    assert [line.split()[0] for line in lines[1 : len(names) + 1]] == names
    assert max(map(len, lines)) <= 80
    assert len(lines) <= len(names) + 3


def test_a_target_s_lowerings_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody could guess what may stand behind the @."""
    monkeypatch.setenv("COLUMNS", "300")
    data, text = shown("targets", "corstone-1000-a320")
    (row,) = (r for r in data["targets"] if r["name"] == "corstone-1000-a320")
    assert set(row["lowerings"]) == {
        "portable-fp32",
        "portable-int8",
        "xnnpack-fp32",
        "xnnpack-int8",
    }
    assert "lowering @xnnpack-int8: int8, XNNPACK\n" in text
