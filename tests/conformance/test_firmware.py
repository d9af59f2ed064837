"""Protects which runner a suite is run against, and that two runs do not overwrite each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.build.executorch.checkout import Checkout
from harness.build.source import FirmwareSource
from harness.build.wheel.firmware import NoWheelFor
from harness.cli.main import main
from harness.conformance.model import Report, SuiteResult
from harness.conformance.run import build_runner
from harness.conformance.suites import SUITES
from harness.system.progress import silent
from tests.build.executorch.small import small_checkout


def test_each_source_is_built_for_the_suites_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """On QEMU, because the stand-in is; with the suite's options, which are of our runner."""
    seen: list[tuple[Any, ...]] = []

    def build(source: Any, target: Any, simulator: Any, checkout: Any, **more: Any) -> str:
        seen.append((source, target.name, str(simulator), checkout, dict(more["options"])))
        return "firmware"

    monkeypatch.setattr("harness.build.choice.build_for", build)
    options = dict(SUITES["ethos-u55"].options)
    wanted = {
        FirmwareSource.BUNDLED: ("corstone-300-u55-128", "corstone-320-u85-128"),
        # as ExecuTorch's own script builds it, with pools that are large enough for its tests
        FirmwareSource.EXECUTORCH: (
            "corstone-300-u55-128", "corstone-320-u85-128@Dedicated_Sram_384KB",
        ),
    }  # fmt: skip
    for source in wanted:
        build_runner(SUITES["ethos-u55"], source, None, silent)
        build_runner(SUITES["ethos-u85"], source, None, silent)
    assert seen == [
        (source, name, "qemu", None, options) for source, names in wanted.items() for name in names
    ]


def test_the_wheels_runtime_is_of_no_suites_target() -> None:
    with pytest.raises(NoWheelFor, match="corstone-300-u55-128 is none"):
        build_runner(SUITES["ethos-u55"], FirmwareSource.WHEEL, None, silent)


def test_both_are_run_and_written_beside_each_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def conform(suite: str, elf: Path | None, *_: Any, **more: Any) -> Report:
        assert isinstance(more["checkout"], Checkout)
        theirs = more["source"] is FirmwareSource.EXECUTORCH
        results = (SuiteResult("a::b", "failed" if theirs else "passed", "", 1),)
        return Report(suite, "q", "e", results, 1, Path("l"), firmware=str(more["source"]))

    monkeypatch.setattr("harness.conformance.run.conform", conform)
    checkout, parts = small_checkout(tmp_path)
    given = [word for name, part in parts.items() for word in ("--part", f"{name}={part}")]
    words = ["conformance", "cortex-m", "--executorch", str(checkout), "--firmware", "both", *given,
             "--json", "--report", str(tmp_path / "r.json"),
             "--junit", str(tmp_path / "j.xml")]  # fmt: skip
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1, done.output
    said = [run["firmware"] for run in json.loads(done.stdout)["runs"]]
    assert said == ["bundled", "executorch"]
    for name, whose in (("r.json", "bundled"), ("r.executorch.json", "executorch")):
        assert json.loads((tmp_path / name).read_text())["firmware"] == whose
    assert (tmp_path / "j.executorch.xml").is_file()
