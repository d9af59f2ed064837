"""Protects that a fault is planted in one place of a clone without edits, and taken out again."""

from __future__ import annotations

import click
import pytest
import yaml

from tests.firmware.executorch.conftest import Source, pristine, small
from tests.firmware.executorch.small import git
from tools.executorch_ci import FAULTS, planted, section

__all__ = ["pristine", "small"]
FAULT = {"kind": "size", "file": "version.txt", "old": "1", "new": "2"}


def test_a_fault_is_there_and_then_gone(small: Source) -> None:
    file = small.root / "version.txt"
    file.write_text("1.0\n")
    git(small.root, "commit", "-qam", "one")

    def interrupted() -> None:
        with planted(small.root, FAULT):
            assert file.read_text() == "2.0\n"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    assert file.read_text() == "1.0\n"


def test_a_fault_without_its_place_and_a_clone_with_edits(small: Source) -> None:
    with (
        pytest.raises(click.ClickException, match="the text of the fault 0 times"),
        planted(small.root, {**FAULT, "old": "not there"}),
    ):
        pass
    (small.root / "version.txt").write_text("1.0\n")
    with pytest.raises(click.ClickException, match="has edits"), planted(small.root, FAULT):
        pass


def test_the_table_has_what_the_script_and_we_said() -> None:
    row = {
        "name": "zephyr/u55",
        "verdict": "unproven",
        "status": 0,
        "reasons": ["HANG: a | b"],
        "exactness": "",
        "run": ["MISMATCH", None],
    }
    text = section({"a": FAULT, "b": FAULT}, {"a": row})
    assert "| a | size | zephyr/u55 | exit 0 | unproven: HANG: a \\| b | MISMATCH |" in text
    assert "\n| b |" not in text


def test_every_fault_changes_something() -> None:
    for name, fault in yaml.safe_load(FAULTS.read_text()).items():
        assert fault["old"] != fault["new"], name
        assert set(fault) - {"run"} == {"kind", "file", "old", "new", "job"}, name
