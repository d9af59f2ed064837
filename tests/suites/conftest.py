"""A small suite that stands for ExecuTorch's, so that no torch is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.export.checkout import CheckoutExporter
from harness.export.exporter import ExporterFacts
from harness.suites.session import SuiteWorkspace, prepare
from harness.suites.store import ExportStore
from harness.suites.suites import Suite

SUITE = """
import os, pathlib, pytest
@pytest.mark.parametrize("n", range(12))
def test_number(n):
    record = pathlib.Path(os.environ["HIL_STANDIN_RECORD"])
    record.mkdir()
    (record / "1.log").write_text(f"run of {n}")
@pytest.mark.skip(reason="hangs")
def test_skipped(): pass
@pytest.mark.xfail(reason="known")
def test_known(): assert 0
def test_broken():
    record = pathlib.Path(os.environ["HIL_STANDIN_RECORD"])
    (record / "1").mkdir(parents=True)
    (record / "1" / "program.pte").write_text("evidence")
    assert 1 == 2, "numbers"
def test_wrapped():
    try:
        raise KeyError("a pass found no node")
    except KeyError as error:
        raise RuntimeError("Test failure.") from error
"""


def checkout_exporter(environment: Path) -> CheckoutExporter:
    """A checkout whose package is in ``environment``."""
    facts = ExporterFacts(str(environment), "0123", "main", False, "1.9", "1.5.1")
    return CheckoutExporter(environment, environment, "abc", {}, "", facts)


def store(workspace: SuiteWorkspace) -> ExportStore:
    """Of this one run."""
    made = ExportStore(workspace.directory / "store")
    made.prepare()
    return made


OWN = Suite("own", root="suite", runners=("arm_test/own",), target="none")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SuiteWorkspace:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    root = tmp_path / "suite"
    (root / "ops").mkdir(parents=True)
    (root / "ops" / "test_own.py").write_text(SUITE)
    (root / "ops" / "test_absent.py").write_text("import not_installed_anywhere\n")
    monkeypatch.setattr("harness.suites.suites.executorch_package", lambda: tmp_path)
    (tmp_path / "elf").write_bytes(b"elf")
    return prepare(OWN, tmp_path / "elf")
