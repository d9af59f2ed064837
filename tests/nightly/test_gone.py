"""Protects a night whose database goes away in the middle: nothing is lost, and it is told."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from harness.nightly.history.database import Recorder, open_history
from tests.cli.conftest import Hil
from tests.nightly.history import postgresql

TARGET = "corstone-300-m55"
MODELS = ("add", "softmax", "linear")


@pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
def test_results_wait_on_disk_and_come_later(
    pg_server: postgresql.Server, hil: Hil, shared_hil_home: str, tmp_path: Path
) -> None:
    """The night is held while its server is stopped, so that the rest of it meets no database."""
    url = pg_server.new_database(f"t{uuid.uuid4().hex[:12]}")
    suite = tmp_path / "suite.yaml"
    suite.write_text(f"cases:\n  - {{targets: [{TARGET}], models: [{', '.join(MODELS)}]}}\n")
    night = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "harness",
            "nightly",
            str(suite),
            "-j",
            "1",
            "--night",
            "tonight",
            "--history",
            url,
        ],
        env={**os.environ, "HIL_HOME": shared_hil_home},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert night.stderr is not None
    said = next(line for line in night.stderr if " 1/3 " in line)
    os.killpg(night.pid, signal.SIGSTOP)
    try:
        pg_server.stop()
        os.killpg(night.pid, signal.SIGCONT)
        said += night.stderr.read()
        assert night.wait(300) == 3, said
    finally:
        pg_server.start()
    assert f"{len(MODELS)}/{len(MODELS)} " in said  # it went on
    assert "the history at postgresql" in said
    assert "results wait in" in said
    shown = hil("history", f"{TARGET}/{MODELS[-1]}", "--history", url)
    assert shown.code == 0
    history = open_history(url)
    rows = history.rows(["tonight"])
    assert sorted(r.case for r in rows) == sorted(f"{TARGET}/{m}" for m in MODELS)
    (night,) = history.nights()
    assert history.unfinished(night) == []
    assert Recorder(history).waiting() == 0
    history.close()
