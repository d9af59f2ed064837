"""Runs killed or paused at any moment: no wrong verdict, no orphan, nothing left.

3 of each here; HIL_INTERRUPTIONS=200 makes it two hundred of each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.system import paths

COUNT = int(os.environ.get("HIL_INTERRUPTIONS", "3"))
SEED = int(os.environ.get("HIL_INTERRUPTIONS_SEED", "1"))


@pytest.mark.parametrize("how", ["kill-run", "kill-pytest", "pause"])
def test_interruptions(how: str, tmp_path: Path, shared_hil_home: str) -> None:
    cache = tmp_path / ".hil" / "cache"
    cache.mkdir(parents=True)
    for kind in ("programs", "firmware", "tools", "schemas"):
        source = Path(shared_hil_home) / "cache" / kind
        if source.is_dir():
            subprocess.run(["cp", "-r", "--reflink=auto", source, cache], check=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(paths.project_root()),
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
