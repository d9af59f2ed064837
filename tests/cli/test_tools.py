"""What the doctor shows beside versions: why one was asked anew, or is not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.tools import list_tools


def test_what_went_wrong_with_a_version_reaches_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As text and as data; the state directory is a file here, so nothing is remembered."""
    tool = tmp_path / "cmake"
    tool.write_text("#!/bin/sh\necho cmake version 3.25.1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HIL_HOME", str(tool))
    monkeypatch.setenv("COLUMNS", "300")
    data, _ = list_tools(show=True)
    (row,) = (row for row in data["tools"] if row["name"] == "cmake")
    assert "NotADirectoryError" in row["note"]
    assert f"cmake: {row['note']}" in " ".join(capsys.readouterr().out.split())
    assert next(row["note"] for row in data["tools"] if row["path"] is None) is None
