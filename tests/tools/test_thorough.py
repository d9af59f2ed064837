"""Protects what ``./hil test --all`` is for: no test is lost between it and ``./hil test``."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.thorough import VARIABLE, amount
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
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", *asked]
    environment = {**os.environ, VARIABLE: everything}
    done = subprocess.run(
        command, cwd=project_root(), env=environment, capture_output=True, text=True, check=True
    )
    found = [line.rpartition("[")[2] for line in done.stdout.splitlines() if "::" in line]
    assert found == [f"{name}]" for name in collected]


def test_a_number_of_random_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    assert amount(3, 100) == 100
    monkeypatch.delenv(VARIABLE)
    assert amount(3, 100) == 3
