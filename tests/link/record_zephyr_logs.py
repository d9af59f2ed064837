"""Writes tests/link/zephyr_logs: what real builds of our sample say, shortened.

    python -m tests.link.record_zephyr_logs [NAME...]

With ZEPHYR_BASE naming a real workspace, and its west on PATH. Paths become /zephyrproject and
/home/user; steps that went well go.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from tests.link.real_zephyr import BASE, west_build, write_sample
from tests.link.zephyr_plants import PLANTS
from tests.link.zephyr_stops import STOPS

LOGS = Path(__file__).parent / "zephyr_logs"
_KEPT = re.compile(r"^-- (?:Application|Zephyr version|Board): ")
_DROPPED = re.compile(
    r"^-- |^\[\d+/\d+\] (?!Linking C\w* executable)|^CMake Warning at \S+/zephyr/CMakeLists|"
    r"^  (?:ZEPHYR_BASE=\S+ doesn't|please specify '-DBUILD_VERSION)|^See also |^\s+\|"
)
_WIDEST, _LINK = 1200, re.compile(r" -o zephyr/zephyr_\w+\.elf ")


def shortened(log: str, source: Path, tree: Path) -> str:
    for path, name in (
        (str(tree), "/home/user/build"),
        (str(source), "/home/user/probe"),
        (str(Path(BASE).parent), "/zephyrproject"),
    ):
        log = log.replace(path, name)
    log = re.sub(r"\S*/bin/python3?\b", "/usr/bin/python3", log)
    lines, named = [], 0
    for line in log.splitlines():
        named = named + 1 if re.fullmatch(r"\s*[\w-]+", line) else 0
        if named > 3 or (_DROPPED.match(line) and not _KEPT.match(line)):
            continue
        if len(line) > _WIDEST and not _LINK.search(line):
            line = f"{line[:300]}, {line[-300:]}"
        lines.append(re.sub(r"  +-W[\w,=.+-]*(?=  )", "", line) if _LINK.search(line) else line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines).strip()) + "\n"


def main(names: list[str]) -> None:
    LOGS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        for plant in PLANTS:
            if not names or plant.name in names:
                write_sample(root / "probe", plant.wrong)
                _record(plant.name, root, west_build(root / "probe", root / "build")[0])
        for stop in STOPS:
            if not names or stop.name in names:
                shutil.rmtree(root / "build", ignore_errors=True)
                write_sample(root / "probe", stop.wrong)
                said, _ = west_build(
                    root / "probe",
                    root / "build",
                    stop.options,
                    board=stop.board,
                    environment={**os.environ, **stop.environment},
                )
                _record(stop.name, root, said)


def _record(name: str, root: Path, log: str) -> None:
    text = shortened(log, root / "probe", root / "build")
    (LOGS / f"{name}.log").write_text(text)
    print(name, len(text))


if __name__ == "__main__":
    main(sys.argv[1:])
