"""Protects the first minutes of a user's repository: what `hil init` writes is the example that
is run elsewhere, and it never writes over anything."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.main import main
from harness.config.loading import load_target
from harness.core.simulator_name import SimulatorName
from harness.run.gate import every_subject
from harness.system.settings import settings
from tools.clone import project_root


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
    assert ids == ["my-board/runner", "my-board/models/scores.py", "my-board/models/tiny.py"]


def test_it_is_the_repository_of_the_examples(example: Path) -> None:
    """Which ``tests/examples`` runs: the same files, the same settings in a file of their own."""
    theirs = project_root() / "examples" / "repository"
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    known = subprocess.run(listed, cwd=theirs, check=True, capture_output=True, text=True)
    files = {name for name in known.stdout.split() if not name.startswith("references/")}
    mine = {path.relative_to(example).as_posix() for path in example.rglob("*") if path.is_file()}
    assert mine == files - {"pyproject.toml"} | {"hil.toml"}
    for name in mine - {"hil.toml"}:
        assert (example / name).read_text() == (theirs / name).read_text()
    said, ours = settings(example), settings(theirs)
    assert replace(said, folder=None, targets=(), references=None) == replace(
        ours, folder=None, targets=(), references=None
    )
    assert (said.targets, said.references) == ((example / "boards",), example / "references")


def test_accepted_in_the_users_repository(example: Path) -> None:
    accepted = "my-board/models/tiny.py"
    done = CliRunner().invoke(main, ["accept", accepted, "--reason", "first"])
    assert done.exit_code == 0, done.output
    assert (example / "references" / f"{accepted}.json").is_file()


def test_an_application_of_zephyr_besides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its target names it; what the runner needs of Zephyr is what the sample has."""
    done = CliRunner().invoke(main, ["init", "--zephyr", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "hil run my-zephyr models/tiny.py" in done.output
    sample = project_root() / "targets" / "runner" / "ports" / "zephyr" / "sample"
    for name in ("main.c", "prj.conf", "boards/mps3_corstone300_an547.overlay"):
        assert (tmp_path / "app" / name).read_text() == (sample / name).read_text()
    monkeypatch.chdir(tmp_path)
    target = load_target("my-zephyr")
    for built in (target, target.on(SimulatorName.QEMU)):
        assert built.zephyr is not None
        assert (built.file.parent / str(built.zephyr.application)).resolve() == tmp_path / "app"
    assert target.on(SimulatorName.QEMU).zephyr.board.endswith("/an547")  # type: ignore[union-attr]
