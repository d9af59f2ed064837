"""Many runs of doubles in random order: no wrong verdict, no orphan, nothing left, memory flat."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.thorough import amount, cases
from tools.clone import project_root

COUNT = amount(30, 500)


@pytest.mark.parametrize("seed", cases(1, thorough=[2]))
def test_random_endings(seed: int, tmp_path: Path) -> None:
    script = Path(__file__).with_name("random_runs.py")
    environment = {**os.environ, "PYTHONPATH": str(project_root()), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(script), str(COUNT), str(seed)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    print(f"seed {seed}: {done.stdout}")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    growth = report["memory_kb_at_end"] - report["memory_kb_early"]
    assert growth < 100_000, report
    assert list(tmp_path.iterdir()) == []
