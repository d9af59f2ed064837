"""``hil bisect``: what it refuses before any work, and what it shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli.main import main
from tests.run.bisect.histories import linear


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of two commits, which is no ExecuTorch."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("EXECUTORCH_ROOT", raising=False)
    return linear(tmp_path / "checkout", "PASS", "MISMATCH").folder


def hil(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["bisect", *map(str, arguments)])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("corstone-300-m5", "ds_cnn", "--good", "c0"), "did you mean corstone-300-m85"),
        (("corstone-300-m55", "ds_cn", "--good", "c0"), "did you mean ds_cnn?"),
        (("corstone-300-m55", "ds_cnn", "--good", "v9"), "has no revision 'v9'"),
        (("corstone-300-m55", "ds_cnn", "--good", "c0", "--bad", "c9"), "has no revision 'c9'"),
        (("corstone-300-m55", "ds_cnn", "--good", "c0"), "is not a checkout of ExecuTorch"),
        (("corstone-300-m55", "ds_cnn"), "the older end is missing: --good REV"),
        (("corstone-300-m55", "ds_cnn", "--fixed"), "the older end is missing: --bad REV"),
        (("corstone-300-m55", "ds_cnn", "--fixed", "--bad", "c0"), "is not a checkout of Exec"),
        (("corstone-300-m55", "ds_cnn", "--good", "c0", "--count-bad", "PASS"), "cannot be 'PASS'"),
        (("corstone-300-m55", "ds_cnn", "--good", "c0", "--part", "nn=x"), "no part 'nn'"),
    ],
)
def test_wrong_usage_is_exit_2(checkout: Path, arguments: tuple[str, ...], said: str) -> None:
    result = hil(*arguments, "-C", checkout)
    assert result.exit_code == 2
    assert said in result.output
    assert not (checkout / ".git" / "worktrees").exists()


def test_a_folder_that_is_not_a_repository(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = hil("corstone-300-m55", "ds_cnn", "--good", "c0", "-C", tmp_path / "empty")
    assert result.exit_code == 2
    assert "is not the work tree of a git repository" in result.output


def test_no_checkout_at_all(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = hil("corstone-300-m55", "ds_cnn", "--good", "c0", "--json")
    assert result.exit_code == 2
    assert "needs a checkout of ExecuTorch" in json.loads(result.stdout)["cause"]["text"]
