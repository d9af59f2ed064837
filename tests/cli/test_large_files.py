"""Files of gigabytes, which cost nothing when they are sparse: each verb refuses them in a line,
and takes no memory for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.core.verdict import ExitCode
from harness.system.paths import data_root
from tests.thorough import amount, cases

SIZE = 8 << 30
MOST_KB = 200 << 10
MOST_SECONDS = 20  # of a processor
BOARD = "corstone-300-m55"
OLD = data_root() / "examples" / "sizes" / "old.pte"
# Where each large file begins as one of its kind does.
HEADS = {
    "zeros": b"",
    "pte": OLD.read_bytes(),
    "elf": Path("/bin/true").read_bytes(),
    "log": b"a.o: in function `main':\na.c:1: undefined reference to `foo'\n",
    "suite.yaml": b"cases:\n  - {targets: [host], models: [add]}\n",
    "model.py": b"import torch\n",
    "build/libl.a": b"!<arch>\n",
}
NINJA = """\
rule link
  command = gcc $in -o $out
build a.elf: link main.o libl.a
"""
DAILY = (
    ("size", "zeros"),
    ("npu", "disasm", "zeros"),
    ("exec", BOARD, "good.pte", "-i", "zeros"),
    ("judge", "zeros"),
    ("link", "explain", "build"),
    ("run", BOARD, "model.py"),
)
MORE = (
    ("size", "pte"),
    ("size", "elf"),
    ("size", "good.pte", "pte"),
    ("size", "/bin/true", "--map", "zeros"),
    ("npu", "run", "pte", "-i", "zeros"),
    ("npu", "run", "good.pte", "-i", "zeros"),
    ("npu", "stats", "pte"),
    ("npu", "reduce", "pte"),
    ("exec", BOARD, "pte"),
    ("run", BOARD, "add", "--pte", "pte"),
    ("run", "suite.yaml", "add"),
    ("judge", "log", "--elf", "elf"),
    ("link", "explain", "zeros"),
    ("link", "explain", "log"),
    ("link", "reduce", "build", "-o", "reduced"),
    ("link", "check", "elf"),
    ("nightly", "suite.yaml"),
    ("replay", "zeros"),
    ("suite", "cortex-m", "--elf", "elf"),
)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    (folder / "build").mkdir()
    for name, head in HEADS.items():
        (folder / name).write_bytes(head)
        os.truncate(folder / name, SIZE)
    (folder / "good.pte").write_bytes(OLD.read_bytes())
    (folder / "build" / "build.ninja").write_text(NINJA)
    (folder / "build" / "main.c").write_text("int foo(void);\nint main(void) { return foo(); }\n")
    subprocess.run(["gcc", "-c", "main.c"], cwd=folder / "build", check=True)
    return folder


@pytest.mark.parametrize("words", cases(*DAILY, thorough=MORE), ids="-".join)
def test_a_file_of_gigabytes_is_refused_in_a_line(words: tuple[str, ...], large: Path) -> None:
    status, text, used = hil(words, large)
    (line,) = [line for line in text.splitlines() if "more than " in line]
    assert status == ExitCode.USAGE, text
    assert any(Path(name).name in line for name in HEADS), text
    assert "Errno" not in line
    assert used.kilobytes <= MOST_KB
    assert used.seconds < MOST_SECONDS, "it was read"


def test_a_map_of_one_line_is_not_decoded(tmp_path: Path) -> None:
    (tmp_path / "one.map").touch()
    os.truncate(tmp_path / "one.map", 600 << 20)
    status, text, used = hil(("size", "/bin/true", "--map", "one.map"), tmp_path)
    assert (status, len(text.splitlines())) == (ExitCode.USAGE, 1)
    assert "the linker map one.map: more than 67108864 bytes" in text
    assert used.kilobytes <= MOST_KB


def test_a_log_of_many_errors_takes_no_more_memory(tmp_path: Path) -> None:
    """The first 20,000 are read, and the last line says that there are others."""
    with (tmp_path / "many.log").open("w") as log:
        for n in range(amount(80_000, 400_000)):
            log.write(f"ld: m{n}.o: in function `f{n}': x.c:{n}: undefined reference to `s_{n}'\n")
        log.write("collect2: error: ld returned 1 exit status\n")
    status, text, used = hil(("link", "explain", "many.log"), tmp_path)
    assert status == ExitCode.FAILED
    assert "s_0" in text
    assert text.splitlines()[-1].endswith("more; the log has others, which were not read")
    assert used.kilobytes <= MOST_KB


# Of this process's memory alone: a child's ``ru_maxrss`` begins with that of the tests' process.
_RUN = """
import runpy
try:
    runpy.run_module("harness", run_name="__main__", alter_sys=True)
finally:
    peak = open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]
    open("peak", "w").write(peak)
"""


class Used(NamedTuple):
    kilobytes: int
    seconds: float  # of a processor


def hil(words: tuple[str, ...], folder: Path) -> tuple[int, str, Used]:
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", _RUN, *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
    _, status, usage = os.wait4(process.pid, 0)
    used = Used(int((folder / "peak").read_text()), usage.ru_utime + usage.ru_stime)
    return os.waitstatus_to_exitcode(status), (folder / "said").read_text(), used
