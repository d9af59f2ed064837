"""Protects whose suite is run: with a checkout's, its tests and its Python, not the wheel's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.main import main
from harness.core.errors import InfraError
from harness.export.checkout import CheckoutExporter
from harness.export.exporter import exporter_label
from harness.suites.results import Phase, Selection, SuiteReport, SuiteTest, results_of
from harness.suites.run import SuiteOptions
from harness.suites.session import SuiteWorkspace, prepare, run_session
from harness.suites.suites import SUITES, KnownFailure, apply_known_failures
from harness.system.progress import Progress, silent
from tests.export.checkout.conftest import Tree, tree  # noqa: F401  (a fixture)

from .conftest import OWN, checkout_exporter, store

SUITE = "import executorch\ndef test_whose(): assert executorch.WHOSE == 'the checkout', executorch"


@pytest.fixture
def exporter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CheckoutExporter:
    """As a checkout's environment is: folders of its own, and a link for each file."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    package = tmp_path / "env" / "executorch"
    sources = {"__init__.py": "WHOSE = 'the checkout'\n", "suite/ops/test_theirs.py": SUITE}
    for name, text in sources.items():
        source = tmp_path / "checkout" / name
        for place in (source, package / name):
            place.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text)
        (package / name).symlink_to(source)
    (tmp_path / "elf").write_bytes(b"elf")
    return checkout_exporter(package.parent)


def judged(workspace: SuiteWorkspace) -> tuple[SuiteTest, ...]:
    phases = run_session(workspace, store(workspace), Selection(), 1, silent)
    return results_of([Phase.from_json(phase) for phase in phases])


def test_its_tests_import_its_package(exporter: CheckoutExporter, tmp_path: Path) -> None:
    workspace = prepare(OWN, tmp_path / "elf", exporter)
    (verdict,) = judged(workspace)
    assert (verdict.id, verdict.result) == ("ops/test_theirs.py::test_whose", "passed")
    assert workspace.environment["PYTHONPATH"].split(os.pathsep)[0] == str(exporter.environment)


STALE = """
import pathlib, subprocess
def test_stale():
    words = ["FVP_Corstone_SSE-300_Ethos-U55", "-a", ELF, "--timelimit", "1"]
    try:
        subprocess.run(words, check=True, capture_output=True)
    except subprocess.CalledProcessError as e:  # as ExecuTorch's runner_utils.py does
        told = f"Stderr: {e.stderr.decode()}\\nStdout: {e.stdout.decode()}"
        raise RuntimeError(f"Failed running command {' '.join(words)}\\n{told}")
"""


def test_a_runner_that_was_left_somewhere_is_not_run(
    exporter: CheckoutExporter, tmp_path: Path
) -> None:
    """ExecuTorch's look-up goes on in $GITHUB_WORKSPACE, in the parents of the working directory
    and in the checkout: what lies there may be of another target and of another day."""
    stale = tmp_path / "checkout/arm_test/arm_semihosting_executor_runner_x/arm_executor_runner"
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"of yesterday")
    tests = exporter.environment / "executorch/suite/ops/test_theirs.py"
    tests.unlink()
    tests.write_text(STALE.replace("ELF", repr(str(stale))))
    workspace = prepare(OWN, tmp_path / "elf", exporter)
    (verdict,) = judged(workspace)
    assert verdict.result == "failed"
    assert verdict.cause.startswith(
        f"simulator_error: FVP_Corstone_SSE-300_Ethos-U55: {stale} is not the runner under test"
    )


def test_a_checkout_without_the_suite(exporter: CheckoutExporter) -> None:
    with pytest.raises(InfraError, match="the checkout has no ethos-u55 suite") as error:
        SUITES["ethos-u55"].directory(exporter)
    assert "--exporter wheel" in str(error.value.hint)


def test_what_the_wheel_is_known_to_fail_may_pass_elsewhere() -> None:
    known = {"a::t": KnownFailure(reason="why", finding="finding")}
    for result, become in (("passed", "passed"), ("failed", "xfailed")):
        (verdict,) = apply_known_failures([SuiteTest("a::t", result, "c", 1)], known, strict=False)
        assert verdict.result == become


def test_the_command_finds_it(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    tree: Tree,  # noqa: F811
) -> None:
    """With the bundled runner, and the report says whose suite it was."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    seen: list[CheckoutExporter] = []

    def run_suite(name: str, options: SuiteOptions, progress: Progress) -> SuiteReport:
        assert options.exporter is not None
        seen.append(options.exporter)
        tests = (SuiteTest("a::b", "passed", "", 1),)
        label = exporter_label(options.exporter.facts)
        return SuiteReport(name, "q", "e", tests, 1, Path("l"), exporter=label)

    monkeypatch.setattr("harness.cli.suite.run_suite", run_suite)
    words = [
        "suite",
        "cortex-m",
        "--executorch",
        str(tree.root),
        "--firmware",
        "bundled",
        "--exporter",
        "checkout",
    ]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    (exporter,) = seen
    assert (exporter.environment / "executorch/exir/lowering.py").resolve().parent.parent == (
        tree.root
    )
    assert f"the suite and its exporter: checkout {tree.git('rev-parse', 'HEAD')[:8]}" in (
        done.output
    )


def test_a_given_runner_with_a_checkouts_firmware(tmp_path: Path, tree: Tree) -> None:  # noqa: F811
    (tmp_path / "elf").write_bytes(b"elf")
    words = [
        "suite",
        "cortex-m",
        "--executorch",
        str(tree.root),
        "--elf",
        str(tmp_path / "elf"),
        "--exporter",
        "checkout",
    ]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "--firmware bundled and --executorch" in done.output
