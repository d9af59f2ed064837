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
def made(shared_hil_home: str) -> list[Path]:
    """Folders of the shared cache: programs and firmware of the cases, and what a run needs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIL_HOME", shared_hil_home)
        records = run_cases([Case(*case.split("/")) for case in CASES], RunOptions(strict=False))
    files = []
    for record in records:
        assert record.program is not None, record.cause
        assert record.firmware is not None, record.cause
        files += [record.program.pte, record.firmware.elf]
    cache = Path(shared_hil_home) / "cache"
    # A folder without its entry is one that another test is filling just now.
    others = [
        e.parent for kind in ("npu-kernel", "schemas") for e in cache.glob(f"{kind}/*/{ENTRY}")
    ]
    return [*(Path(file).parent for file in files), *others]


@pytest.mark.parametrize(
    "how",
    cases("kill-run", "kill-part", thorough=("kill-pytest", "pause")),
)
def test_interruptions(how: str, tmp_path: Path, made: list[Path]) -> None:
    cache = tmp_path / ".hil" / "cache"
    for folder in made:
        shutil.copytree(folder, cache / folder.parent.name / folder.name, symlinks=True)
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
