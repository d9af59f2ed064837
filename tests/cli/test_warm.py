"""Protects the time of a warm run: what it imports before the simulator starts, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

# What takes long to import, and is of use only when something was found or has to be told.
LATE = (
    "pydantic", "ruamel", "rich", "numpy", "filelock", "email", "importlib.metadata", "jinja2",
    "torch", "harness.observe.reader", "harness.judge.rules", "harness.run.record",
    "harness.run.gather", "harness.run.judging", "harness.report.terminal",
    "harness.simulate.companion", "harness.guest.image", "harness.build.step",
    "harness.build.zephyr.tree", "harness.build.executorch.checkout", "harness.formats.flatbuffer",
    "harness.export.checkout.remote", "harness.link",
)  # fmt: skip
WATCHED = """
import json, sys
starts = []
def hook(event, arguments):
    if event == "subprocess.Popen":
        starts.append([list(map(str, arguments[1])), [m for m in sys.modules if m in LATE]])
sys.addaudithook(hook)
from harness.cli.main import main
try:
    main()
finally:
    sys.stderr.write("STARTS " + json.dumps(starts) + "\\n")
"""


def hil(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("words", [("run", "corstone-300-m55", "add", "--simulator", "qemu")])
def test_what_is_imported_before_the_simulator_starts(words: tuple[str, ...]) -> None:
    """One process is started, the simulator; everything that judges is imported beside it."""
    code = f"LATE = {LATE!r}\n{WATCHED}"
    for _ in range(2):  # export and build, and what else is asked once
        done = hil(code, *words)
        assert done.returncode == 0, done.stderr
    (line,) = [one for one in done.stderr.splitlines() if one.startswith("STARTS ")]
    starts = json.loads(line.removeprefix("STARTS "))
    assert [any("qemu-system" in word for word in argv) for argv, _ in starts] == [True], starts
    assert starts[0][1] == []


def test_the_end_of_the_process_loses_nothing() -> None:
    """Buffered output, what somebody registered for the end, and the exit code arrive."""
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('registered'))\n"
        "from harness.cli import main\n"
        "main.main = lambda: (print('x' * 100_000), sys.exit({}))\n"
        "from harness.cli.entry import entry\n"
        "entry()\n"
    )
    for said, status in (("3", 3), ("None", 0), ("", 0), ("'words'", 1)):
        done = hil(code.format(said))
        assert done.returncode == status
        assert done.stdout == "x" * 100_000 + "\nregistered\n"
    assert done.stderr == "words\n"


def test_whoever_still_runs_at_the_end_is_waited_for() -> None:
    code = (
        "import sys, threading, time\n"
        "from harness.cli import main\n"
        "def last(): time.sleep(0.3); print('last')\n"
        "main.main = lambda: (threading.Thread(target=last).start(), sys.exit(1))\n"
        "from harness.cli.entry import entry\n"
        "entry()\n"
    )
    done = hil(code)
    assert (done.returncode, done.stdout) == (1, "last\n")


def test_an_end_that_cannot_be_told_is_not_a_success() -> None:
    """Python says so itself, with exit code 120."""
    code = (
        "import sys\n"
        "from harness.cli import main\n"
        "main.main = lambda: (print('x'), sys.exit(0))\n"
        "from harness.cli.entry import entry\n"
        "entry()\n"
    )
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, check=False,
            env={k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"},
        )  # fmt: skip
    assert done.returncode != 0
