"""Runs killed or paused at any moment: no wrong verdict, no orphan, nothing left.

2 of each here, one of each case; HIL_INTERRUPTIONS=200 makes it two hundred of each.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.run.pipeline import RunOptions, run_cases
from harness.system.artifact_cache import ENTRY
from tests.thorough import cases
from tools.clone import project_root

from .interruptions import CASES

COUNT = int(os.environ.get("HIL_INTERRUPTIONS", "2"))
SEED = int(os.environ.get("HIL_INTERRUPTIONS_SEED", "1"))


@pytest.fixture(scope="module")
def made(shared_hil_home: str) -> Path:
    """The cache with programs and firmware of the cases."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIL_HOME", shared_hil_home)
        run_cases([Case(*case.split("/")) for case in CASES], RunOptions(strict=False))
    return Path(shared_hil_home) / "cache"


@pytest.mark.parametrize(
    "how",
    cases("kill-run", "kill-part", thorough=("kill-pytest", "pause")),
)
def test_interruptions(how: str, tmp_path: Path, made: Path) -> None:
    cache = tmp_path / ".hil" / "cache"
    cache.mkdir(parents=True)
    for kind in ("programs", "firmware", "npu-kernel", "schemas"):
        # A folder without its entry is one that another test is filling just now.
        for entry in (made / kind).glob(f"*/{ENTRY}"):
            shutil.copytree(entry.parent, cache / kind / entry.parent.name, symlinks=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(project_root()),
        "HIL_HOME": str(tmp_path / ".hil"),
    }
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.run.interruptions",
            how,
            str(COUNT),
            str(SEED),
            str(tmp_path),
        ],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    print(f"seed {SEED}: {done.stdout}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["runs"] == COUNT
