"""Shards cover the suite once, samples are seeded, and wrong options are errors.

A small suite of its own stands for ExecuTorch's, so that no torch is imported.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.conformance.model import Phase, Selection
from harness.conformance.session import run_suite
from harness.conformance.stage import Stage, prepare
from harness.conformance.verdicts import judge
from harness.errors import HarnessError, InfraError, UsageError
from harness.standin_cli import conformance

SUITE = """
import os, pathlib, pytest
@pytest.mark.parametrize("n", range(12))
def test_number(n):
    pathlib.Path(os.environ["HIL_STANDIN_RECORD"], "1.log").write_text(f"run of {n}")
@pytest.mark.skip(reason="hangs")
def test_skipped(): pass
@pytest.mark.xfail(reason="known")
def test_known(): assert 0
def test_broken(): assert 1 == 2, "numbers"
"""


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    suite = tmp_path / "suite"
    (suite / "ops").mkdir(parents=True)
    (suite / "ops" / "test_own.py").write_text(SUITE)
    (suite / "ops" / "test_absent.py").write_text("import not_installed_anywhere\n")
    monkeypatch.setattr("harness.conformance.stage.cortex_m_suite", lambda: suite)
    (tmp_path / "elf").write_bytes(b"elf")
    return prepare(tmp_path / "elf")


def run(stage: Stage, selection: Selection) -> list[Phase]:
    return run_suite(stage, selection, 2, lambda _message: None)


def names(phases: list[Phase]) -> set[str]:
    return {phase.test for phase in phases if phase.when != "collect"}


def test_results_come_through_the_workers(stage: Stage) -> None:
    phases = run(stage, Selection())
    verdicts = {v.id.split("::")[-1]: v for v in judge(phases)}
    assert verdicts["test_number[3]"].result == "passed"
    assert verdicts["test_skipped"].cause == "hangs"
    assert verdicts["test_known"].cause == "the suite's own: known"
    assert verdicts["test_broken"].cause.startswith("AssertionError: numbers")
    assert verdicts["ops/test_absent.py"].cause == (
        "needs not_installed_anywhere, which is not installed"
    )
    (console,) = [c for p in phases if p.test.endswith("[3]") for c in p.consoles]
    assert console == b"run of 3"
    assert not stage.scratch.exists()


def test_the_runner_is_where_the_suite_looks_for_it(stage: Stage) -> None:
    runner = "arm_test/arm_semihosting_executor_runner_corstone-300_cortex-m55/arm_executor_runner"
    assert (Path(stage.environment["EXECUTORCH_ROOT"]) / runner).read_bytes() == b"elf"
    first = Path(stage.environment["PATH"].split(":")[0])
    assert (first / "FVP_Corstone_SSE-300_Ethos-U55").is_file()


def test_shards_are_a_partition_and_samples_repeat(stage: Stage) -> None:
    """Two halves run every test once; the same seed gives the same tests."""
    halves = [names(run(stage, Selection("number", shard=(i, 2)))) for i in (1, 2)]
    assert halves[0] | halves[1] == {f"ops/test_own.py::test_number[{n}]" for n in range(12)}
    assert not halves[0] & halves[1]
    first, again = (names(run(stage, Selection("number", sample=4, seed=7))) for _ in range(2))
    assert len(first) == 4
    assert first == again


def test_selecting_nothing_is_an_error(stage: Stage) -> None:
    with pytest.raises(UsageError, match="no test of the suite was selected"):
        run(stage, Selection("no_such_test_anywhere"))


def test_a_bad_expression_is_an_error(stage: Stage) -> None:
    with pytest.raises(HarnessError, match="pytest could not run the suite"):
        run(stage, Selection("and and"))


def test_a_missing_elf(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no ELF"):
        prepare(tmp_path / "none")


def test_a_wheel_without_the_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.conformance import stage as module

    monkeypatch.setattr(module, "executorch_package", lambda: tmp_path)
    with pytest.raises(InfraError, match="has no Cortex-M suite"):
        module.cortex_m_suite()


@pytest.mark.parametrize("shard", ["3/2", "0/2", "1", "a/b"])
def test_a_wrong_shard(shard: str) -> None:
    done = CliRunner().invoke(conformance, ["cortex-m", "--shard", shard])
    assert done.exit_code == 2
    assert "--shard takes I/N" in done.output
