"""pytest as a child: shards cover the suite once, samples are seeded, and wrong options are errors.

A small suite of its own stands for ExecuTorch's, so that no torch is imported.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.suite import suite
from harness.core.errors import HarnessError, UsageError
from harness.suites.results import Phase, Selection, judge
from harness.suites.session import run_session
from harness.suites.workspace import Workspace, identify, interrupted, prepare
from harness.system.progress import silent
from tests.suites.conftest import OWN


def run(workspace: Workspace, selection: Selection) -> list[Phase]:
    return [Phase.from_json(phase) for phase in run_session(workspace, selection, 2, silent)]


def names(phases: list[Phase]) -> set[str]:
    return {phase.test for phase in phases if phase.when != "collect"}


def test_results_come_through_the_workers(workspace: Workspace) -> None:
    phases = run(workspace, Selection())
    verdicts = {v.id.split("::")[-1]: v for v in judge(phases)}
    assert verdicts["test_number[3]"].result == "passed"
    assert verdicts["test_skipped"].cause == "hangs"
    assert verdicts["test_known"].cause == "the suite's own: known [assert 0]"
    assert verdicts["test_broken"].cause.startswith("AssertionError: numbers")
    assert verdicts["ops/test_absent.py"].cause == (
        "needs not_installed_anywhere, which is not installed"
    )
    (console,) = [c for p in phases if p.test.endswith("[3]") for c in p.consoles]
    assert console == b"run of 3"


def test_only_what_did_not_pass_is_kept(workspace: Workspace) -> None:
    """A failure must be examined, and two thousand passes must not fill the disk."""
    run(workspace, Selection())
    (kept,) = workspace.kept.glob("*/1/program.pte")
    assert "test_broken" in str(kept)


def test_only_the_suites_own_tests_are_run(workspace: Workspace) -> None:
    """The product is in a test's name, before its parameters."""
    some = replace(workspace, suite=replace(OWN, only="skip"))
    assert names(run(some, Selection())) == {"ops/test_own.py::test_skipped"}


def test_an_interrupted_run_is_continued(workspace: Workspace, tmp_path: Path) -> None:
    """Its results count, its tests do not run again; a line that was cut off is no result."""
    selection = Selection("number")
    identity = identify(OWN, tmp_path / "elf", selection)
    workspace.save_identity(identity)
    phases = run(workspace, Selection("number and (3 or 4)"))
    with workspace.events.open("a") as events:
        events.write(json.dumps({"test": "ops/test_own.py::test_number[7]", "when": "call"}))
        events.write('\n{"test": "ops/te')
    earlier = interrupted(identity)
    again = prepare(OWN, tmp_path / "elf")
    ended = [Phase.from_json(phase) for phase in earlier]
    assert ended == [phase for phase in phases if phase.when != "collect"]
    rest = run_session(again, selection, 2, silent, {phase.test for phase in ended})
    ran = [phase["test"] for phase in rest if phase["when"] == "call"]
    assert sorted(ran) == sorted(
        f"ops/test_own.py::test_number[{n}]" for n in range(12) if n not in (3, 4)
    )


def test_shards_are_a_partition_and_samples_repeat(workspace: Workspace) -> None:
    """Two halves run every test once; the same seed gives the same tests."""
    halves = [names(run(workspace, Selection("number", shard=(i, 2)))) for i in (1, 2)]
    assert halves[0] | halves[1] == {f"ops/test_own.py::test_number[{n}]" for n in range(12)}
    assert not halves[0] & halves[1]
    first, again = (names(run(workspace, Selection("number", sample=4, seed=7))) for _ in range(2))
    assert len(first) == 4
    assert first == again


def test_selecting_nothing_is_an_error(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match="no test of the suite was selected"):
        run(workspace, Selection("no_such_test_anywhere"))


def test_a_bad_expression_is_an_error(workspace: Workspace) -> None:
    with pytest.raises(HarnessError, match="pytest could not run the suite"):
        run(workspace, Selection("and and"))


@pytest.mark.parametrize("shard", ["3/2", "0/2", "1", "a/b"])
def test_a_wrong_shard(shard: str) -> None:
    done = CliRunner().invoke(suite, ["cortex-m", "--shard", shard])
    assert done.exit_code == 2
    assert "--shard takes I/N" in done.output


def test_nothing_to_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    (tmp_path / "elf").write_bytes(b"elf")
    arguments = ["ethos-u55", "--resume", "--elf", str(tmp_path / "elf")]
    done = CliRunner().invoke(suite, arguments)
    assert done.exit_code == 2
    assert "there is no interrupted run to resume" in done.output
