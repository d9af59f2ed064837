"""Protects a night that is killed at any moment: every case once, none twice, none half, and in the
end the verdicts of a night that nobody disturbed.
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
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import pytest

from harness.nightly.history.database import open_history
from harness.nightly.history.nights import last_tries
from tests.nightly.history import postgresql
from tests.thorough import amount, cases

TARGET = "corstone-300-m55"
MODELS = ("add", "softmax", "linear", "mul", "qadd", "qlinear", "qadd2", "ds_cnn")
KILLS = amount(1, 50)  # moments
WRITERS = 2  # shards that write into one PostgreSQL at a time; SQLite has one
SEED = 5
MARK = "HIL_TEST_NIGHT"

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.mark.parametrize("database", cases("sqlite", thorough=["postgresql"]))
def test_kills_lose_nothing_and_double_nothing(
    database: str, tmp_path: Path, shared_hil_home: str, request: pytest.FixtureRequest
) -> None:
    """Nights that are killed again and again, gone on with, and at last left alone. Each of the
    writers is killed at a moment of its own."""
    draw = random.Random(f"{SEED} {database}")
    url, writers = f"sqlite:///{tmp_path}/h.db", 1
    if database == "postgresql":
        server: postgresql.Server = request.getfixturevalue("pg_server")
        url, writers = server.new_database(f"t{uuid.uuid4().hex[:12]}"), WRITERS
    models = MODELS[: max(writers, 2)]
    print(f"seed {SEED}, {KILLS} kills, {writers} writers of {len(models)} cases")
    suite = tmp_path / "suite.yaml"
    suite.write_text(f"cases:\n  - {{targets: [{TARGET}], models: [{', '.join(models)}]}}\n")
    night = Nights(suite, url, writers, shared_hil_home)
    began = time.monotonic()
    assert night.whole("undisturbed") == [0] * writers
    whole = time.monotonic() - began
    rounds = -(-KILLS // writers)
    killed = 0
    for number in range(rounds):
        moments = [draw.uniform(0.1, 1.1) * whole for _ in range(writers)]
        killed += night.killed(f"night-{number // 3}", moments)
    for number in range(-(-rounds // 3)):  # each was killed up to three times
        assert night.whole(f"night-{number}") == [0] * writers
    print(f"{killed} of {rounds * writers} kills met a running night")
    history = open_history(url)
    expected = {f"{TARGET}/{model}": "PASS" for model in models}
    assert len(history.nights()) == 1 + -(-rounds // 3)
    for one in history.nights():
        rows = history.rows([one.id])
        assert {c: r.verdict.name for c, r in last_tries(rows).items()} == expected
        assert max(Counter((r.case, r.attempt) for r in rows).values()) == 1
        assert history.unfinished(one) == []
    history.close()


@dataclass(frozen=True)
class Nights:
    """A suite run by ``writers`` processes at a time, a shard each."""

    suite: Path
    url: str
    writers: int
    home: str

    def whole(self, night: str) -> list[int]:
        """Left alone: how each of them ended."""
        return [one.wait(600) for one in self._begun(night, jobs=1)]

    def killed(self, night: str, moments: Sequence[float]) -> int:
        """One is killed at each of these seconds; how many were at work then."""
        began, found = time.monotonic(), 0
        nights = self._begun(night, jobs=2 if self.writers == 1 else 1)
        for moment, one in sorted(zip(moments, nights, strict=True), key=itemgetter(0)):
            time.sleep(max(began + moment - time.monotonic(), 0))
            found += one.poll() is None
            one.kill()
            one.wait(60)
        assert gone(night), "something of a killed night is still at work"
        return found

    def _begun(self, night: str, jobs: int) -> list[subprocess.Popen[bytes]]:
        return [
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "harness",
                    "nightly",
                    str(self.suite),
                    "--night",
                    night,
                    "--history",
                    self.url,
                    "--shard",
                    f"{number}/{self.writers}",
                    "-j",
                    str(jobs),
                ],
                env={**os.environ, "HIL_HOME": self.home, MARK: night},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            for number in range(1, self.writers + 1)
        ]


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
