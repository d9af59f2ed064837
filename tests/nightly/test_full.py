"""Protects a night whose disk is full, before it begins and in the middle of it: it is told, and
nothing is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.nightly.history.database import open_history

TARGET = "corstone-300-m55"
MODELS = ("add", "softmax", "linear")
BYTES = 400 << 10  # room for the tables and some rows
# $1: the disk. Only a STOPped night surely does not write while the disk is being filled.
SCRIPT = """
cp new.db "$1/h.db"
fill() { cat /dev/zero > "$1/filler" 2>/dev/null || true; }
hil() { exec "$PYTHON" -m harness "$@" --history "sqlite:///$disk/h.db"; }
disk=$1
fill "$1"
(hil nightly suite.yaml --night never 2> before.txt) || echo "before: $?"
rm "$1/filler"
mkfifo told
hil nightly suite.yaml -j 1 --night tonight 2> told &
night=$!
while read -r line; do
  echo "$line"
  case $line in *" 1/3 "*) kill -STOP $night; fill "$1"; kill -CONT $night ;; esac
done < told > middle.txt
wait $night || echo "middle: $?"
rm "$1/filler"
(hil history "$CASE" > after.txt) || echo "after: $?"
cp "$1/h.db" end.db
"""


@pytest.mark.skipif(
    not all(map(shutil.which, ("arm-none-eabi-gcc", "qemu-system-arm", "bwrap"))),
    reason="needs arm-none-eabi-gcc, qemu-system-arm and bwrap",
)
def test_results_wait_until_there_is_room(tmp_path: Path, shared_hil_home: str) -> None:
    """The disk is a small one of the test's own, and really full."""
    open_history(f"sqlite:///{tmp_path}/new.db").close()
    models = ", ".join(MODELS)
    (tmp_path / "suite.yaml").write_text(
        f"cases:\n  - {{targets: [{TARGET}], models: [{models}]}}\n"
    )
    (tmp_path / "disk").mkdir()
    home = tmp_path / "home"
    home.mkdir()
    (home / "cache").symlink_to(Path(shared_hil_home) / "cache")
    done = subprocess.run(
        [
            "bwrap",
            "--dev-bind",
            "/",
            "/",
            "--size",
            str(BYTES),
            "--tmpfs",
            tmp_path / "disk",
            "sh",
            "-euc",
            SCRIPT,
            "sh",
            tmp_path / "disk",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env={
            **os.environ,
            "HIL_REQUIRE_CONFINEMENT": "0",
            "HIL_HOME": str(home),
            "PYTHON": sys.executable,
            "CASE": f"{TARGET}/{MODELS[-1]}",
        },
    )
    said = {file.stem: file.read_text() for file in tmp_path.glob("*.txt")}
    assert done.returncode == 0, (done.stderr, said)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("bef", "mid", "aft"))]
    assert lines == ["before: 3", "middle: 3"], said
    assert "cannot be used: disk I/O error" in said["before"]  # SQLite cannot make its files
    assert "look whether its disk has room" in said["before"]
    assert "cannot be used: database or disk is full" in said["middle"]
    assert "Traceback" not in "".join(said.values())
    assert "3/3 " in said["middle"]  # it went on
    assert "results wait in" in said["middle"]
    history = open_history(f"sqlite:///{tmp_path}/end.db")
    rows = history.rows(["tonight"])
    assert sorted(r.case for r in rows) == sorted(f"{TARGET}/{m}" for m in MODELS)
    (night,) = history.nights()
    assert history.unfinished(night) == []
    history.close()
    assert "tonight" in said["after"]
