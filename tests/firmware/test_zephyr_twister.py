"""Zephyr's own test runner builds and runs our sample, where ZEPHYR_BASE names a real workspace."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.config.loading import load_target
from harness.firmware.sources.bundled import build
from harness.system.paths import executorch_package
from tests.link.real_zephyr import BASE, needs_zephyr
from tools.clone import project_root

SAMPLE = project_root() / "targets/runner/ports/zephyr/sample"


@needs_zephyr
@pytest.mark.skipif(shutil.which("west") is None, reason="no west in PATH")
def test_twister_runs_the_sample_on_qemu_and_builds_it_for_the_fvp(tmp_path: Path) -> None:
    """By its own harness (sample.yaml), with warnings as errors, as it does for every sample."""
    boards = ("mps3/corstone300/an547", "mps3/corstone300/fvp")
    done = subprocess.run(
        [
            "west",
            "twister",
            "-T",
            str(SAMPLE),
            *(w for b in boards for w in ("-p", b)),
            "--inline-logs",
            "-O",
            str(tmp_path / "out"),
            f"-x=HIL_SCHEMA_DIR={executorch_package() / 'schema'}",
        ],
        cwd=BASE,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "out/twister.json").read_text())
    ends = {
        (s["platform"], s["name"].rsplit("/", 1)[-1]): s["status"]
        for s in report["testsuites"]
        if s["status"] != "filtered"
    }
    assert ends[boards[0], "hil.runner"] == "passed", ends
    assert ends[boards[1], "hil.runner.fvp"] in ("passed", "not run"), ends
    assert len(ends) == 2


def test_the_samples_program_passes_in_the_bundled_runner() -> None:
    """qlinear.bpte is what our exporter makes: the runner finds its expected outputs."""
    elf = build(load_target("host")).elf
    done = subprocess.run(
        [elf, "-m", SAMPLE / "qlinear.bpte"], capture_output=True, text=True, check=False
    )
    assert done.stdout.count("Test_result: PASS") == 3, done.stdout
    assert "Program complete" in done.stdout
