"""A run of a user with a telling name, and the bundle of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.case import Case
from harness.run.bundle import pack
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord

USER = "zaphod-of-betelgeuse"
TARGET = "corstone-300-m55"


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory, shared_hil_home: str) -> Path:
    """A user's home, with the exports and builds of the session itself."""
    home = tmp_path_factory.mktemp("of") / USER
    (home / ".hil").mkdir(parents=True)
    (home / ".hil" / "cache").symlink_to(Path(shared_hil_home) / "cache")
    (Path(shared_hil_home) / "cache").mkdir(parents=True, exist_ok=True)
    return home


def made(home: Path, options: RunOptions, target: str = TARGET, model: str = "ds_cnn") -> RunRecord:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("HIL_HOME", str(home / ".hil"))
        patch.setenv("HIL_REFERENCES", str(home / "references"))
        (record,) = run_cases([Case(target, model)], options)
    return record


@pytest.fixture(scope="session")
def passed(home: Path) -> RunRecord:
    """A run that is PASS."""
    record = made(home, RunOptions())
    assert record.verdict.passed, record.cause
    return record


@pytest.fixture(scope="session")
def bundle(home: Path, passed: RunRecord, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bundle") / "passed.tar.zst"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("HIL_HOME", str(home / ".hil"))
        pack(Path(str(passed.run_dir)), out)
    return out


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test is on another machine, which has built and exported nothing."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("HIL_REFERENCES", str(tmp_path / "no-references"))
    return tmp_path / "elsewhere"
