"""Protects a user's repository: it passes from wherever its tests are called.

Its references hold, so that each session compares with recorded runs, and none writes anything.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .conftest import Call

_TINY = "tests/test_models.py::test_model[my-board/models/tiny.py]"
_CASES = {_TINY, _TINY.replace("tiny", "scores")}
# What VS Code's test explorer calls: pytest as a module, from the folder that is open.
_IDE = ("python", "-m", "pytest", "--rootdir={root}", "-s", "--cache-clear")


def ide(repository: Path, *more: str) -> list[str]:
    return [word.format(root=repository) for word in (*_IDE, *more)]


@pytest.mark.parametrize("where", ["inside", "above"])
def test_an_ide_collects_the_cases(call: Call, repository: Path, where: str) -> None:
    """Also where the folder that is open is not the repository: its rootdir's settings hold."""
    cwd, tests = (repository, "tests") if where == "inside" else (repository.parent, "{root}/tests")
    done = call(ide(repository, "--collect-only", "-q", tests), cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {line for line in done.stdout.splitlines() if "::" in line} == _CASES


def test_an_ide_runs_one_case_from_elsewhere(call: Call, repository: Path) -> None:
    done = call(ide(repository, f"{{root}}/{_TINY}", "-rA"), repository.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_it_passes_from_a_sub_directory(call: Call, repository: Path) -> None:
    before = {path: path.read_bytes() for path in (repository / "references").rglob("*.json")}
    done = call(["pytest", "-rA"], repository / "tests")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert "no reference run accepted" not in done.stdout
    assert {p: p.read_bytes() for p in (repository / "references").rglob("*.json")} == before


def test_a_budget_of_a_model_holds(call: Call, repository: Path, tmp_path: Path) -> None:
    """The same repository with a limit that its model does not keep: the gate's exit is 1."""
    mine = shutil.copytree(repository, tmp_path / "mine")
    (mine / "models" / "scores.yaml").write_text("budgets:\n  limits: {pte_bytes: 0x800}\n")
    done = call(["hil", "gate", "my-board/models/scores.py"], mine)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "pte_bytes" in done.stdout
