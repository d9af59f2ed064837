"""Protects what ``./hil test --all`` is for: no test is lost between it and ``./hil test``."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from harness.system.paths import references_dir
from tests.regression.conftest import EVERY_NETWORK, NETWORK
from tests.thorough import SLOW_FOR_AN_NPU, VARIABLE, amount
from tools.clone import project_root

FILE = "tests/npu/test_limits.py"  # one of three products in every run


@pytest.mark.parametrize(
    ("asked", "everything", "collected"),
    [
        ([FILE], "0", ["u85"]),
        ([FILE], "1", ["u85", "u55", "u65"]),
        ([FILE, "-k", "u55"], "0", ["u55"]),
        ([FILE, "-m", "thorough"], "0", ["u55", "u65"]),
        ([f"{FILE}::test_a_planted_stream_meets_a_limit_and_says_which[u65]"], "0", ["u65"]),
    ],
)
def test_what_is_thorough_is_run_where_it_is_asked_for(
    asked: list[str], everything: str, collected: list[str]
) -> None:
    assert [test.rpartition("[")[2] for test in collected_by(*asked, everything=everything)] == [
        f"{name}]" for name in collected
    ]


def collected_by(*asked: str, everything: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", *asked]
    environment = {**os.environ, VARIABLE: everything}
    done = subprocess.run(
        command, cwd=project_root(), env=environment, capture_output=True, text=True, check=True
    )
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_a_push_runs_each_board_that_has_references() -> None:
    """One network; on a CPU every network of the matrix, and on an NPU all but one."""
    tests = collected_by("tests/regression/test_regression.py", everything="0")
    run = {tuple(test.rpartition("[")[2].rstrip("]").split("/")) for test in tests}
    boards = {folder.name for folder in references_dir().iterdir()}
    without_zephyr = {name for name in boards if not name.startswith("zephyr")}
    assert without_zephyr
    assert {(board, NETWORK) for board in without_zephyr} <= run
    networks = {network for _, network in run}
    assert len(networks) > 4
    cpu, npu = EVERY_NETWORK
    assert {(cpu, network) for network in networks} <= run
    assert {(npu, network) for network in networks - {SLOW_FOR_AN_NPU}} <= run


def test_a_number_of_random_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    assert amount(3, 100) == 100
    monkeypatch.delenv(VARIABLE)
    assert amount(3, 100) == 3
