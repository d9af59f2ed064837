"""Protects which runner a suite is run against, and that two runs do not overwrite each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import main
from harness.core.errors import UsageError
from harness.firmware.checkout import Checkout
from harness.firmware.source import BuildRequest, FirmwareSource, source_named
from harness.suites.results import SuiteReport, SuiteTest
from harness.suites.run import SuiteOptions
from harness.suites.suites import SUITES, build_runner
from harness.system.progress import Progress, silent
from tests.firmware.executorch.small import small_checkout


def test_each_source_is_built_for_the_suites_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """On QEMU, because the stand-in is; with the suite's options, which are of our runner."""
    seen: list[tuple[Any, ...]] = []

    def build(source: FirmwareSource, request: BuildRequest, _: object) -> str:
        on = str(request.simulator)
        seen.append((source, request.target.name, on, request.checkout, dict(request.options)))
        return "firmware"

    for name in ("bundled", "executorch"):
        monkeypatch.setattr(type(source_named(name)), "build", build)
    options = dict(SUITES["ethos-u55"].options)
    wanted = {
        source_named("bundled"): ("corstone-300-u55-128", "corstone-320-u85-128"),
        # as ExecuTorch's own script builds it, with pools that are large enough for its tests
        source_named("executorch"): (
            "corstone-300-u55-128",
            "corstone-320-u85-128@Dedicated_Sram_384KB",
        ),
    }
    for source in wanted:
        build_runner(SUITES["ethos-u55"], source, None, silent)
        build_runner(SUITES["ethos-u85"], source, None, silent)
    assert seen == [
        (source, name, "qemu", None, options) for source, names in wanted.items() for name in names
    ]


def test_the_wheels_runtime_is_of_no_suites_target() -> None:
    with pytest.raises(UsageError, match="corstone-300-u55-128 has no Linux"):
        build_runner(SUITES["ethos-u55"], source_named("wheel"), None, silent)


def test_both_are_run_and_written_beside_each_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run_suite(name: str, options: SuiteOptions, progress: Progress) -> SuiteReport:
        assert isinstance(options.checkout, Checkout)
        theirs = options.source.needs_checkout
        tests = (SuiteTest("a::b", "failed" if theirs else "passed", "", 1),)
        return SuiteReport(name, "q", "e", tests, 1, Path("l"), firmware=str(options.source))

    monkeypatch.setattr("harness.cli.suite.run_suite", run_suite)
    checkout, parts = small_checkout(tmp_path)
    given = [word for name, part in parts.items() for word in ("--part", f"{name}={part}")]
    words = [
        "suite",
        "cortex-m",
        "--executorch",
        str(checkout),
        "--firmware",
        "both",
        *given,
        "--json",
        "--report",
        str(tmp_path / "r.json"),
        "--junit",
        str(tmp_path / "j.xml"),
    ]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1, done.output
    said = [run["firmware"] for run in json.loads(done.stdout)["runs"]]
    assert said == ["bundled", "executorch"]
    for name, whose in (("r.json", "bundled"), ("r.executorch.json", "executorch")):
        assert json.loads((tmp_path / name).read_text())["firmware"] == whose
    assert (tmp_path / "j.executorch.xml").is_file()
