"""Protects the bundles of a night: one of each failure that ran, and a reason for each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.nightly import night
from harness.nightly.night import pack_failures
from harness.run.bundle import unpack
from harness.run.record import RunRecord
from harness.system.files import DiskError
from tests.nightly.history.made import row


def test_failures_have_one_and_nothing_else(
    passed: RunRecord, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", str(home / ".hil"))
    rows = [
        replace(row(1, "MISMATCH", "t/a"), run_dir=passed.run_dir),
        replace(row(1, "PASS", "t/b"), run_dir=passed.run_dir),
        replace(row(1, "INFRA", "t/c"), run_dir=passed.run_dir),
        replace(row(1, "EXPORT_ERROR", "t/d"), run_dir=None),
        replace(row(1, "FAULT", "t/e"), run_dir=str(tmp_path / "gone")),
    ]
    found = dict(pack_failures(rows, tmp_path / "deep" / "bundles"))
    assert list(found) == ["t/a", "t/d", "t/e"]
    assert found["t/d"] == "nothing was run"
    assert "gone" in str(found["t/e"])
    made = found["t/a"]
    assert isinstance(made, Path)
    assert "record.json" in unpack(made, tmp_path / "there")


def test_there_is_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(night, "MAX_BUNDLES", 2)
    rows = [replace(row(1, "FAULT", f"t/{i}"), run_dir=None) for i in range(3)]
    assert [why for _, why in pack_failures(rows, tmp_path)] == [
        "nothing was run",
        "nothing was run",
        "2 failures have one",
    ]


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DiskError, match="making the folder of the bundles"):
        list(pack_failures([row(1, "FAULT")], tmp_path / "file" / "bundles"))


def test_a_good_night_leaves_no_folder(tmp_path: Path) -> None:
    assert list(pack_failures([row(1)], tmp_path / "bundles")) == []
    assert not (tmp_path / "bundles").exists()
