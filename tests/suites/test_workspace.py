"""Where a suite finds what it needs, and which of the earlier runs may be continued."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.suites.results import Selection, StandinMissing
from harness.suites.session import run_session
from harness.suites.suites import SUITES
from harness.suites.workspace import Workspace, identify, interrupted, prepare, require_standins
from harness.system.progress import silent
from tests.suites.conftest import OWN


def test_only_the_same_run_is_resumed(workspace: Workspace, tmp_path: Path) -> None:
    identity = identify(OWN, tmp_path / "elf", Selection())
    workspace.save_identity(identity)
    run_session(workspace, Selection("number and 3"), 2, silent)
    interrupted(identity)
    (tmp_path / "elf").write_bytes(b"another")
    with pytest.raises(UsageError, match="there is no interrupted run to resume"):
        interrupted(identify(OWN, tmp_path / "elf", Selection()))
    workspace.finish()
    with pytest.raises(UsageError, match="there is no interrupted run to resume"):
        interrupted(identity)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda file: file.unlink(), "found .* on PATH"),
        (lambda file: file.chmod(0o644), "found .* on PATH"),
        (
            lambda file: file.write_text("#!/bin/sh\necho broken >&2\nexit 7\n"),
            "ends with 7: broken",
        ),
        (lambda file: file.write_text("#!/no/such/interpreter\n"), "No such file"),
    ],
)
def test_a_stand_in_that_cannot_be_started_is_an_error(
    workspace: Workspace, damage: Callable[[Path], object], said: str
) -> None:
    """The suite would expect every test to fail, and the run would end with exit 0."""
    require_standins(workspace)
    damage(workspace.directory / "bin" / "FVP_Corstone_SSE-320")
    with pytest.raises(StandinMissing, match=said) as e:
        require_standins(workspace)
    assert e.value.looked_for == "FVP_Corstone_SSE-320"
    assert e.value.exit_code == 3


@pytest.mark.parametrize(
    ("suite", "board", "model"),
    [
        ("cortex-m", "corstone-300_cortex-m55", "FVP_Corstone_SSE-300_Ethos-U55"),
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
