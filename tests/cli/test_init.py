"""Protects the first minutes of a user's repository: what `hil init` writes works, from its root
and from below, and never writes over anything."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.main import main
from harness.size.gate import every_subject


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_hil_home: str) -> Path:
    """With the session's state, in which the runner is built already."""
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    monkeypatch.delenv("HIL_REFERENCES", raising=False)
    done = CliRunner().invoke(main, ["init", str(tmp_path / "mine"), "--json"])
    assert done.exit_code == 0, done.output
    assert f"{tmp_path}/mine/hil.toml" in json.loads(done.stdout)["written"]
    monkeypatch.chdir(tmp_path / "mine")
    return tmp_path / "mine"


def test_nothing_is_written_over(example: Path) -> None:
    (example / "models" / "tiny.yaml").unlink()
    done = CliRunner().invoke(main, ["init"])
    assert done.exit_code == 2
    assert "nothing was written: there are already .gitignore, boards/my-board.yaml" in done.output
    assert not (example / "models" / "tiny.yaml").exists()


def test_what_is_gated_is_what_the_settings_name(example: Path) -> None:
    ids = [case.id for case in every_subject()]
    assert ids == ["my-board/runner", "my-board/models/tiny.py"]


def test_it_works_from_every_folder(example: Path) -> None:
    """One export and one run each: accepted from the root, held from below and under workers."""
    accepted = "my-board/models/tiny.py"
    words = ["accept", accepted, "--reason", "first"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert (example / "references" / f"{accepted}.json").is_file()
    for folder, workers in (("tests", ()), (".", ("-n", "2"))):
        argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *workers]
        ran = subprocess.run(argv, cwd=example / folder, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout
        assert "test_model[my-board/models/tiny.py]" in ran.stdout
        assert "no reference run accepted" not in ran.stdout
