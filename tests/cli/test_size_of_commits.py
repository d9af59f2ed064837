"""Protects that two commits of a checkout are built and compared in one command, without touching
it, and that growth beyond the slack fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.main import main
from tests.firmware.executorch.conftest import Source, pristine, small
from tests.firmware.executorch.small import KERNEL, commit, edit, git

__all__ = ["pristine", "small"]
TARGET = "corstone-300-m55/runner"


def invoked(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["size", TARGET, *map(str, words)])
    return result.exit_code, result.output


def test_two_commits_are_built_and_compared(
    small: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    base = git(small.root, "rev-parse", "HEAD").strip()
    table = (
        "namespace hil {\nextern const int planted_table[64];\nconst int planted_table[64] = {1};"
    )
    edit(small.root / KERNEL, "namespace hil {", table)
    edit(
        small.root / KERNEL,
        "HIL_TRY(check_numbers(ctx, n));",
        "HIL_TRY(check_numbers(ctx, n));\n"
        "static int calls;\nif (planted_table[calls++ & 63] == 7) return Error::Ok;",
    )
    commit(small.root, "grow")
    parts = [f"--part={name}={folder}" for name, folder in small.parts.items()]
    given = [f"--executorch={small.root}", *parts, f"--commits={base}..HEAD"]
    code, said = invoked(*given, "--json", "--slack", 100)
    assert code == 1, said
    answer = json.loads(said[said.index("{") :])
    assert "delta" in answer, said
    assert 256 < answer["delta"] < 1024
    assert any("planted_table" in part["path"] for part in answer["parts"])
    code, said = invoked(*given, "--slack", 2132)
    assert code == 0, said
    assert "planted_table" in said
    assert git(small.root, "status", "--porcelain") == ""


@pytest.mark.parametrize("commits", ["main", "main..", "a..b..c"])
def test_what_is_not_two_commits_is_refused(small: Source, commits: str) -> None:
    code, said = invoked(f"--executorch={small.root}", f"--commits={commits}")
    assert code == 2
    assert "--commits BASE..HEAD" in " ".join(said.split())


def test_a_commit_that_is_not_there_is_named(small: Source) -> None:
    code, said = invoked(f"--executorch={small.root}", "--commits=nowhere..HEAD")
    assert code == 2
    assert "has no revision 'nowhere'" in " ".join(said.split())


def test_slack_needs_a_change(small: Source) -> None:
    code, said = invoked("--slack", 5)
    assert code == 2
    assert "--slack are about a change" in " ".join(said.split())
