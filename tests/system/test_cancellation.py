"""Ctrl-C and SIGTERM end a process whose pools still run, with every child; nothing
queued begins."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.processes import ends

CHILD = """\
import sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from harness.system.cancellation import cancelling, signals_cancel
from harness.system.process import Bounds, run

folder, how = Path(sys.argv[1]), sys.argv[2]

def work(n):
    script = f"echo $$ > {folder}/{n}.part; mv {folder}/{n}.part {folder}/{n}.pid; exec sleep 600"
    run(["sh", "-c", script], cwd=folder, environment={"PATH": "/usr/bin:/bin"},
        console=folder / f"{n}.log", bounds=Bounds(600, 600))

try:
    with signals_cancel():
        with ThreadPoolExecutor(2) as pool, cancelling(pool):
            futures = [pool.submit(work, n) for n in range(8)]
            if how == "stuck":
                pool.submit(time.sleep, 600)
            [future.result() for future in futures]
except KeyboardInterrupt:
    (folder / "unwound").touch()
    sys.exit(130)
"""
STUCK = CHILD.replace("def work(n):", "def work(n):\n    if n: time.sleep(600)")

# A signal while the command is looked up: before its module, and in an import that makes another
# exception of it.
EARLY = """\
import importlib, os, signal, sys
from harness.cli import main as cli

def interrupted(*_, **__):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt as error:
        raise {raised} from error

{place} = interrupted
cli.main(["targets", "--json"])
"""


@pytest.mark.parametrize(
    ("place", "raised"),
    [
        ("cli.main.make_context", "error"),
        ("importlib.import_module", "error"),
        ("importlib.import_module", "ImportError('numpy')"),
    ],
)
def test_a_signal_while_the_command_is_looked_up_is_obeyed(place: str, raised: str) -> None:
    code = EARLY.format(place=place, raised=raised)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr.split("\n")[-2:] == ["hil: interrupted", ""]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("stuck", [False, True])
def test_a_signal_ends_all(number: signal.Signals, stuck: bool, tmp_path: Path) -> None:
    """``stuck``: a thread that watches nothing; then the timer ends the process."""
    code = STUCK if stuck else CHILD
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), ""])
    running = 1 if stuck else 2
    while len(list(tmp_path.glob("*.pid"))) < running:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait(60) == 130
    assert (tmp_path / "unwound").exists() != stuck
    started = list(tmp_path.glob("*.pid"))
    assert len(started) == running, "what was queued has begun"
    assert all(ends(int(file.read_text())) for file in started)
