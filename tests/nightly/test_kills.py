"""Protects a night that is killed at any moment: every case once, none twice, none half, and in the
end the verdicts of a night that nobody disturbed.

``HIL_KILLS`` says at how many moments (CI: few), ``HIL_SEED`` which ones.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path

import pytest

from harness.history.database import open_history
from harness.history.model import last_tries
from tests.history import postgresql

TARGET = "corstone-300-m55"
MODELS = ("add", "softmax", "linear")
KILLS = int(os.environ.get("HIL_KILLS", "2"))
SEED = int(os.environ.get("HIL_SEED", "5"))
MARK = "HIL_TEST_NIGHT"

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_kills_lose_nothing_and_double_nothing(
    database: str, tmp_path: Path, shared_hil_home: str, request: pytest.FixtureRequest
) -> None:
    """One night: killed again and again, gone on with, and at last left alone."""
    print(f"seed {SEED}, {KILLS} kills")
    draw = random.Random(f"{SEED} {database}")
    url = f"sqlite:///{tmp_path}/h.db"
    if database == "postgresql":
        server: postgresql.Server = request.getfixturevalue("pg_server")
        url = server.new_database(f"t{uuid.uuid4().hex[:12]}")
    suite = tmp_path / "suite.yaml"
    suite.write_text(f"cases:\n  - {{targets: [{TARGET}], models: [{', '.join(MODELS)}]}}\n")
    began = time.monotonic()
    assert run(suite, url, "undisturbed", shared_hil_home).wait(600) == 0
    whole = time.monotonic() - began
    killed = 0
    for number in range(KILLS):
        night = f"night-{number // 3}"  # each is killed up to three times
        one = run(suite, url, night, shared_hil_home)
        time.sleep(draw.uniform(0.1, 1.1) * whole)
        killed += one.poll() is None
        one.kill()
        one.wait(60)
        assert gone(night), "something of a killed night is still at work"
    for number in range((KILLS + 2) // 3):
        assert run(suite, url, f"night-{number}", shared_hil_home).wait(600) == 0
    print(f"{killed} of {KILLS} kills met a running night")
    history = open_history(url)
    expected = {f"{TARGET}/{model}": "PASS" for model in MODELS}
    for night in history.nights():
        rows = history.rows([night.id])
        assert {c: r.verdict.name for c, r in last_tries(rows).items()} == expected
        assert max(Counter((r.case, r.attempt) for r in rows).values()) == 1
        assert history.ended(night)
    history.close()


def run(suite: Path, url: str, night: str, home: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "harness", "nightly", str(suite), "--night", night,
         "--history", url],
        env={**os.environ, "HIL_HOME": home, MARK: night},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def gone(night: str) -> bool:
    """Whether nobody is left who inherited the night's environment; they may take a moment."""
    wanted = f"{MARK}={night}".encode()
    for _ in range(100):
        if not any(wanted in environment(entry) for entry in Path("/proc").glob("[0-9]*")):
            return True
        time.sleep(0.1)
    return False


def environment(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []
