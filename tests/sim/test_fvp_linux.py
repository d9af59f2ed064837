"""The FVP that boots Linux. None was ever started."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.loading import load_target, target_directories
from harness.core.errors import UsageError
from harness.sim.simulator import Job, pick


def test_it_is_not_run_yet_and_says_how_to_start_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rather than a run that nobody ever saw work."""
    model = tmp_path / "FVP_Corstone-1000-A320"
    model.write_text("#!/bin/sh\n")
    model.chmod(0o755)
    monkeypatch.setenv("HIL_FVP_DIR", str(tmp_path))
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    target = load_target("corstone-1000-a320", target_directories({}))
    chosen = pick(target, "fvp")
    job = Job(tmp_path / "elf", ("executor_runner",), tmp_path / "work", target.limits)
    with pytest.raises(UsageError, match="console and memory card are not served") as caught:
        chosen.simulator.launch(target, chosen.require(), job)
    assert "meta-arm" in str(caught.value.hint)
    assert pick(target).name == "qemu"  # an installed one is no reason to fail
