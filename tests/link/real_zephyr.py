"""`west build` of the sample of zephyr_plants.py in a real Zephyr workspace, the one ZEPHYR_BASE
names. CI has none: there the logs that such builds wrote are judged (tests/link/zephyr_logs)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.link.zephyr_plants import FILES

BOARD = "mps3/corstone300/an547"
BASE = os.environ.get("ZEPHYR_BASE", "")
REAL = Path(BASE, "scripts", "kconfig", "kconfiglib.py").is_file() and bool(BASE)
needs_zephyr = pytest.mark.skipif(not REAL, reason="ZEPHYR_BASE names no real Zephyr workspace")


def write_sample(source: Path, edits: Mapping[str, str]) -> None:
    """The sample's folder as ``edits`` make it: what changes is written, what was there before and
    is not of it goes."""
    wanted = {**FILES, **edits}
    for file in [p for p in source.rglob("*") if p.is_file()]:
        if str(file.relative_to(source)) not in wanted:
            file.unlink()
    for name, text in wanted.items():
        file = source / name
        if not file.is_file() or file.read_text() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    if "scale.c" in wanted:
        abi = wanted["scale.c"].split()[1]
        compiler = ["arm-none-eabi-gcc", "-mcpu=cortex-m55", "-mthumb", abi, "-Os", "-c"]
        subprocess.run([*compiler, "scale.c", "-o", "scale.o"], cwd=source, check=True)


def west_build(
    source: Path,
    tree: Path,
    options: Sequence[str] = (),
    *,
    board: str = BOARD,
    environment: Mapping[str, str] = os.environ,
) -> tuple[str, int]:
    """What it said, and its status. West is that of PATH: Zephyr's scripts need its Python."""
    west = shutil.which("west") or "west"
    done = subprocess.run(
        [
            west,
            "build",
            "-c",
            "-b",
            board,
            "-d",
            str(tree),
            str(source),
            *(["--", *options] if options else []),
        ],
        cwd=BASE,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout, done.returncode
