"""The steps of ``hil test``: a step that finds something fails, and the others still run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.dev import selftest
from harness.errors import Unknown
from harness.system.paths import project_root


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one module under our own settings; gives the module's file."""
    (tmp_path / "harness").mkdir()
    shutil.copy(project_root() / "pyproject.toml", tmp_path)
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
    result, code = selftest.run_steps(["lint"], 0, [], as_json=True)
    assert (result["steps"]["lint"]["passed"], code) == (passes, 0 if passes else 1)


def test_a_step_that_does_not_exist() -> None:
    with pytest.raises(Unknown, match="there is no step 'nonsense'") as caught:
        selftest.run_steps(["nonsense"], 0, [], as_json=True)
    assert caught.value.hint == f"steps: {', '.join(caught.value.known)}"
    assert "lint" in caught.value.known
