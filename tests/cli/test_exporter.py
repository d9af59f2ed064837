"""Protects ``--exporter``: a checkout exports what a run judges, and every report says so.

The checkout is made of the installed wheel's own Python, so the export is a real one. A real
checkout takes its place where ``$EXECUTORCH_ROOT`` names one.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness.run.directory import load_record
from tests.export.checkout.wheel_checkout import make_wheel_checkout

from .conftest import Exported, Hil

ROOT = os.environ.get("EXECUTORCH_ROOT")


@pytest.fixture(scope="module", params=["wheel's Python", "$EXECUTORCH_ROOT"])
def checkout(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param == "wheel's Python":
        return make_wheel_checkout(tmp_path_factory.mktemp("c") / "executorch").root
    if ROOT is None:
        pytest.skip("no real checkout: $EXECUTORCH_ROOT is not set")
    return Path(ROOT)


def test_a_checkout_exports(hil: Hil, checkout: Path, exported: Exported) -> None:
    """The bundled runner runs its program; record, summary and table say whose it is."""
    arguments = (
        "run",
        "corstone-300-m55",
        "add",
        "--simulator",
        "qemu",
        "--executorch",
        checkout,
        "--firmware",
        "bundled",
        "--exporter",
        "checkout",
    )
    done = hil(*arguments, "--json")
    assert done.code == 0, done.out + done.err
    summary = json.loads(done.out)
    case = summary["cases"][0]
    assert case["exporter"].startswith("checkout ")
    assert any("compiled parts of the wheel" in note for note in case["notes"])
    record = load_record(Path(case["run_dir"]))
    assert record.program is not None
    assert record.program.exporter is not None
    assert record.program.exporter.path == str(checkout)
    assert "sources" in record.program.oracle

    wheel = exported("add")
    assert Path(record.program.pte) != wheel.pte_path
    if ROOT is None or checkout != Path(ROOT):
        assert record.program.sha256 == wheel.pte_sha256, "equal Python, equal bytes"

    shown = hil(*arguments)
    assert f"exporter: {case['exporter']}" in shown.out


def test_the_wheel_is_reported_too(hil: Hil, exported: Exported) -> None:
    done = hil("run", "corstone-300-m55", "add", "--simulator", "qemu", "--json")
    version = exported("add").versions["executorch"]
    assert json.loads(done.out)["cases"][0]["exporter"] == f"wheel {version}"
    assert "exporter:" not in hil("run", "corstone-300-m55", "add", "--simulator", "qemu").out


def test_without_a_checkout(hil: Hil) -> None:
    done = hil("run", "host", "add", "--exporter", "checkout", EXECUTORCH_ROOT="")
    assert done.code == 2
    assert "--exporter checkout needs a checkout of ExecuTorch" in done.err
    assert "--executorch DIR" in done.err


def test_a_folder_that_is_none(hil: Hil, tmp_path: Path) -> None:
    done = hil(
        "run",
        "host",
        "add",
        "--exporter",
        "checkout",
        "--executorch",
        tmp_path,
        "--firmware",
        "bundled",
    )
    assert done.code == 2
    assert "is not a checkout of ExecuTorch" in done.err
