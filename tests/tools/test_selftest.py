"""The steps of ``./hil test``: a step that finds something fails, and the others still run."""

from __future__ import annotations

import re
import shutil
import threading
from pathlib import Path
from typing import IO

import pytest

from harness.core.errors import Unknown
from tools import selftest
from tools.clone import project_root
from tools.selftest import Options, Step


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one module under our own settings; gives the module's file."""
    (tmp_path / "harness").mkdir()
    (tmp_path / "tools").mkdir()
    shutil.copy(project_root() / "pyproject.toml", tmp_path)
    for name in (*selftest.PIPELINES, ".github/zizmor.yml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if "workflows" in name else shutil.copy)(
            project_root() / name, tmp_path / name
        )
    monkeypatch.setattr(selftest, "project_root", lambda: tmp_path)
    return tmp_path / "harness" / "module.py"


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("def one() -> int:\n    return 1\n", True),
        ("import os\n", False),  # ruff and vulture
        ("def one() -> int:\n    return 1\n    print()\n", False),  # vulture alone
        ('"""A line that is too long, which only ruff minds. """  #' + "x" * 100 + "\n", False),
    ],
)
def test_lint_finds_bad_style_and_what_nobody_calls(
    project: Path, text: str, passes: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    project.write_text(text)
    result, code = selftest.run_steps(["lint"], Options(), as_json=True)
    assert (result["steps"]["lint"]["passed"], code) == (passes, 0 if passes else 1)


def test_lint_finds_an_unsafe_pipeline(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    project.write_text("def one() -> int:\n    return 1\n")
    action = project.parents[1] / "action.yml"
    pinned = re.sub(r"(setup-python)@[0-9a-f]{40}", r"\1@v7", action.read_text())
    assert pinned != action.read_text()
    action.write_text(pinned)
    result, _ = selftest.run_steps(["lint"], Options(), as_json=True)
    assert not result["steps"]["lint"]["passed"]
    assert "unpinned-uses" in capfd.readouterr().err


def test_a_step_that_does_not_exist() -> None:
    with pytest.raises(Unknown, match="there is no step 'nonsense'") as caught:
        selftest.run_steps(["nonsense"], Options(), as_json=True)
    assert caught.value.hint == f"steps: {', '.join(caught.value.known)}"
    assert "lint" in caught.value.known


def test_steps_next_to_pytest_run_while_it_runs_and_all_are_counted(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each of the two waits for the other: one after the other they would wait in vain."""
    static, tests = threading.Event(), threading.Event()

    def check(output: IO[str], _options: Options) -> bool:
        print("a line of the check", file=output)
        static.set()
        return not tests.wait(30)  # fails, after pytest has begun

    def run_tests(_output: IO[str], _options: Options) -> bool:
        tests.set()
        return static.wait(30)

    fuzz = Step("fuzz", "last", lambda _out, _options: True, beside_pytest=False)
    steps = (Step("lint", "a check", check), Step("pytest", "tests", run_tests, False), fuzz)
    monkeypatch.setattr(selftest, "STEPS", steps)
    result, code = selftest.run_steps([], Options(), as_json=True)
    passed = {name: step["passed"] for name, step in result["steps"].items()}
    assert (passed, code) == ({"lint": False, "pytest": True, "fuzz": True}, 1)
    assert "a line of the check" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("only", "everything", "run"),
    [([], False, ["push"]), ([], True, ["push", "night"]), (["night"], False, ["night"])],
)
def test_a_thorough_step_is_of_a_thorough_run_or_named(
    only: list[str], everything: bool, run: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = (
        Step("push", "each time", lambda _out, _options: True),
        Step("night", "each night", lambda _out, _options: True, thorough=True),
    )
    monkeypatch.setattr(selftest, "STEPS", steps)
    monkeypatch.setenv("HIL_TEST_ALL", "0")  # which a thorough run sets for its steps
    result, _ = selftest.run_steps(only, Options(everything=everything), as_json=True)
    assert list(result["steps"]) == run
