"""Protects that no stream takes more than there is: each ends with the limit that it meets, before
anything is allocated for it. In processes of their own, whose largest size the system says."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.thorough import cases
from tools.clone import project_root

MOST = 1 << 20  # KiB beyond what Python and the model take by themselves
HANG = 240  # seconds, for all of a product: a guard and no measure


@pytest.mark.parametrize("product", cases("u85", thorough=("u55", "u65")))
def test_a_planted_stream_meets_a_limit_and_says_which(product: str) -> None:
    argv = [sys.executable, "-m", "tests.npu.planted", product]
    done = subprocess.run(
        argv, cwd=project_root(), capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    ended = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(ended) >= 13
    for name, says, said, most in ended:
        assert most < MOST, f"{name}: {most} KiB"
        if says is None:
            assert said is None, (name, said)
        else:
            assert said is not None, f"{name} was done"
            assert says in said, (name, said)
