"""Where a suite finds what it needs, and pytest as a child: it runs what is selected, and wrong
options are errors.

A small suite of its own stands for ExecuTorch's, so that torch is imported by one test.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.suite import suite
from harness.core.errors import HarnessError, InfraError, UsageError
from harness.suites import session
from harness.suites.results import Phase, Selection, StandinMissing, results_of
from harness.suites.session import SuiteWorkspace, prepare, require_standins, run_session
from harness.suites.suites import SUITES
from harness.system.progress import silent
from tests.suites.conftest import OWN, SUITE, store
from tests.suites.standin.conftest import SSE_320, U55

COMPARED = """
import sys, torch, types
class Tester:
    @staticmethod
    def _assert_outputs_equal(outputs, references): pass
sys.modules["executorch.backends.test.harness.tester"] = types.SimpleNamespace(Tester=Tester)
def compare(*pairs):
    for output, reference in pairs:
        Tester._assert_outputs_equal([torch.tensor(output)], [torch.tensor(reference)])
def test_dead(): compare(([0.0, 0.0], [0.0, 0.0]), ([1.0, 1.0], [1.0, 1.0]))
def test_live(): compare(([0.0, 0.0], [0.0, 0.0]), ([1.0, 2.0], [1.0, 2.5]))
"""


def run(workspace: SuiteWorkspace, selection: Selection, workers: int = 1) -> list[Phase]:
    return [
        Phase.from_json(phase)
        for phase in run_session(workspace, store(workspace), selection, workers, silent)
    ]


def names(phases: list[Phase]) -> set[str]:
    return {phase.test for phase in phases if phase.when != "collect"}


def test_results_come_through_the_workers(workspace: SuiteWorkspace) -> None:
    """And the files of a failure, which must be examined; two thousand passes must not fill the
    disk."""
    phases = run(workspace, Selection())
    verdicts = {v.id.split("::")[-1]: v for v in results_of(phases)}
    assert verdicts["test_number[3]"].result == "passed"
    assert verdicts["test_skipped"].cause == "hangs"
    assert verdicts["test_known"].cause == "the suite's own: known [assert 0]"
    assert verdicts["test_broken"].cause.startswith("AssertionError: numbers")
    # The suite that all backends share says "Test failure." of each, raised from the error itself.
    assert verdicts["test_wrapped"].cause == "KeyError: 'a pass found no node'"
    assert verdicts["ops/test_absent.py"].cause == (
        "needs not_installed_anywhere, which is not installed"
    )
    (console,) = [c for p in phases if p.test.endswith("[3]") for c in p.consoles]
    assert console == b"run of 3"
    (kept,) = workspace.kept.glob("*/1/program.pte")
    assert "test_broken" in str(kept)


def test_only_the_suites_own_tests_are_run(workspace: SuiteWorkspace) -> None:
    """The product is in a test's name, before its parameters."""
    some = replace(workspace, suite=replace(OWN, only="kn", marker="not xfail"))
    (workspace.root / "ops" / "test_own.py").write_text(
        f"{SUITE}\n@pytest.mark.parametrize('n', ['kn'])\ndef test_of_others(n): pass\n"
        "def test_knee(): pass\n"
    )
    assert names(run(some, Selection())) == {"ops/test_own.py::test_knee"}


def test_the_workers_run_the_sample_of_the_shard(workspace: SuiteWorkspace) -> None:
    chosen = Selection("number", shard=(2, 2), sample=4, seed=7)
    numbers = [f"ops/test_own.py::test_number[{n}]" for n in range(12)]
    assert names(run(workspace, chosen, workers=2)) == set(chosen.choose(numbers))


def test_selecting_nothing_is_an_error(workspace: SuiteWorkspace) -> None:
    """All models of a suite need torchvision: -k is not what to look at, and what was not collected
    is said."""
    with pytest.raises(UsageError, match="no test of the suite was selected") as caught:
        run(workspace, Selection("absent"))
    assert caught.value.hint == (
        "look at -k, --shard, --sample; ops/test_absent.py: ModuleNotFoundError: No module named "
        "'not_installed_anywhere'"
    )


def test_with_torch(workspace: SuiteWorkspace, tmp_path: Path) -> None:
    """A torchvision without its operators imports, as that of the package index beside a torch for
    the CPU alone. And what was compared comes through the workers: of outputs that are one value
    throughout the report has to know."""
    package = tmp_path / "packages" / "torchvision"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import torch\n@torch.library.register_fake('torchvision::nms')\n"
        "def meta(dets, scores, iou_threshold): ...\n"
    )
    (workspace.root / "ops" / "test_vision.py").write_text(
        "import torchvision\ndef test_vision(): pass\n"
    )
    (workspace.root / "ops" / "test_compared.py").write_text(COMPARED)
    folders = f"{package.parent}{os.pathsep}{workspace.environment['PYTHONPATH']}"
    with_package = replace(workspace, environment={**workspace.environment, "PYTHONPATH": folders})
    phases = run(with_package, Selection("test_vision or dead or live"))
    compared = {
        phase.test.partition("::")[2]: (phase.difference, phase.constant)
        for phase in phases
        if phase.when == "call"
    }
    assert compared == {
        "test_vision": (None, False),
        "test_dead": (0.0, True),
        "test_live": (0.5, False),
    }
    assert {test.result for test in results_of(phases) if "absent" not in test.id} == {"passed"}


def test_a_suite_that_does_not_end_is_ended(
    workspace: SuiteWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the limit, not the last line of the log."""
    monkeypatch.setattr(session, "_SESSION_SECONDS", 0.1)
    with pytest.raises(InfraError, match=r"did not end within 0\.1 s and was ended"):
        run(workspace, Selection())


def test_a_bad_expression_is_an_error(workspace: SuiteWorkspace) -> None:
    with pytest.raises(HarnessError, match="pytest could not run the suite"):
        run(workspace, Selection("and and"))


@pytest.mark.parametrize("shard", ["3/2", "0/2", "1", "a/b"])
def test_a_wrong_shard(shard: str) -> None:
    done = CliRunner().invoke(suite, ["cortex-m", "--shard", shard])
    assert done.exit_code == 2
    assert f"'{shard}' is not a shard" in done.output


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        (U55, lambda file: file.unlink(), "found .* on PATH"),
        (U55, lambda file: file.chmod(0o644), "found .* on PATH"),
        (
            U55,
            lambda file: file.write_text("#!/bin/sh\necho broken >&2\nexit 7\n"),
            "`--version` fails: broken",
        ),
        (
            SSE_320,
            lambda file: file.write_text("#!/no/such/interpreter\n"),
            "No such file|not found",
        ),
    ],
)
def test_a_stand_in_that_cannot_be_started_is_an_error(
    workspace: SuiteWorkspace, name: str, damage: Callable[[Path], object], said: str
) -> None:
    """The suite would expect every test to fail, and the run would end with exit 0."""
    damage(workspace.directory / "bin" / name)
    with pytest.raises(StandinMissing, match=said) as e:
        require_standins(workspace)
    assert e.value.looked_for == name
    assert e.value.exit_code == 3


@pytest.mark.parametrize(
    ("suite", "board", "model"),
    [
        ("cortex-m", "corstone-300_cortex-m55", "FVP_Corstone_SSE-300_Ethos-U55"),
        ("models-cortex-m", "corstone-300_cortex-m55", "FVP_Corstone_SSE-300_Ethos-U55"),
        ("ethos-u55", "corstone-300", "FVP_Corstone_SSE-300_Ethos-U55"),
        ("ethos-u65", "corstone-300-u65", "FVP_Corstone_SSE-300_Ethos-U65"),
        ("ethos-u85", "corstone-320", "FVP_Corstone_SSE-320"),
        ("ethos-u85", "portable-ops_corstone-320", "FVP_Corstone_SSE-320"),
    ],
)
def test_the_runner_is_where_the_suite_looks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suite: str, board: str, model: str
) -> None:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    (tmp_path / "elf").write_bytes(b"elf")
    workspace = prepare(SUITES[suite], tmp_path / "elf")
    runner = f"arm_test/arm_semihosting_executor_runner_{board}/arm_executor_runner"
    assert (Path(workspace.environment["EXECUTORCH_ROOT"]) / runner).read_bytes() == b"elf"
    first = Path(workspace.environment["PATH"].split(":")[0])
    assert (first / model).is_file()


def test_a_missing_elf(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no ELF"):
        prepare(SUITES["cortex-m"], tmp_path / "none")


_DIES = """
import os, pytest
@pytest.mark.parametrize("n", range(12))
def test_number(n): os._exit(1)
"""
_NO_WORKER = "import os; 'PYTEST_XDIST_WORKER' in os.environ and os._exit(1)\n"


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (
            "ops/test_own.py",
            _DIES,
            r"\d+ tests never ran, for example ops/test_own.py::test_number",
        ),
        ("conftest.py", _NO_WORKER, "no worker collected the tests"),
    ],
    ids=["dies", "no-worker"],
)
def test_what_pytest_leaves_out_is_not_passed_over(
    workspace: SuiteWorkspace, file: str, text: str, said: str
) -> None:
    """pytest-xdist gives up after some dead workers, and ends as after tests that failed."""
    (workspace.root / file).write_text(text)
    with pytest.raises(InfraError, match=said):
        run(workspace, Selection())
