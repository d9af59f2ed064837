"""``hil bench verdict`` itself: it runs, its verdicts are right, and it says when they are not."""

from __future__ import annotations

import json
import shutil

import pytest
from click.testing import CliRunner, Result

from tools.bench.verdict import TimedEnding, TimedEndings
from tools.commands import main

FAULT = TimedEnding("double", "hard_fault", "FAULT", "hard_fault", True, 0.2, 0.0)


def bench(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bench", "verdict", *arguments])


def test_endings_by_name_have_their_verdicts() -> None:
    """One that passes and one that does not, through the whole pipeline."""
    result = bench("--ending", "passes", "--ending", "hard_fault", "--json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["endings"]
    assert [(r["name"], r["verdict"], r["cause"], r["expected"]) for r in rows] == [
        ("passes", "PASS", None, True),
        ("hard_fault", "FAULT", "hard_fault", True),
    ]


def test_an_ending_that_there_is_not() -> None:
    result = bench("--ending", "hard_falt")
    assert result.exit_code == 2
    assert "there is no ending 'hard_falt'" in result.output
    assert "did you mean hard_fault?" in result.output


def test_a_wrong_verdict_and_a_late_one_are_reported() -> None:
    wrong = TimedEnding("double", "passes", "FAULT", "exit_status", False, 0.1, 0.0)
    late = TimedEnding("double", "stalls", "HANG", "stall", True, 2.5, 1.0)
    table = TimedEndings((FAULT, wrong, late))
    assert table.exit_code == 1
    assert "WRONG VERDICT" in wrong.text()
    assert "LATE" in late.text()
    assert (
        table.text()
        .splitlines()[-1]
        .startswith("3 endings, 1 with a wrong verdict, 1 later than 1 s after their limit")
    )
    assert TimedEndings((FAULT, late)).exit_code == 0


@pytest.mark.skipif(
    not (shutil.which("aarch64-linux-gnu-g++") and shutil.which("qemu-system-aarch64")),
    reason="needs aarch64-linux-gnu-g++ and qemu-system-aarch64",
)
def test_a_linux_guest_is_timed_from_its_cause() -> None:
    """To boot takes as long as it does; what counts is what passes afterwards."""
    result = bench("--ending", "DISK_FULL", "--json")
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)["endings"]
    assert (row["simulator"], row["verdict"], row["cause"]) == ("guest", "FAULT", "disk_full")
    assert 0 < row["limit"] <= row["seconds"]
