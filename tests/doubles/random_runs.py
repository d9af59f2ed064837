"""Runs of doubles chosen at random, one worker's share; prints what was wrong as JSON.

Usage: python tests/doubles/random_runs.py COUNT SEED. Under two workers start two of them.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from harness.config.case import Case
from harness.config.loading import load_target, target_directories
from harness.config.target import Limits
from harness.run.pipeline import RunOptions, run_case
from harness.sim.simulator import pick
from harness.suites.standin.command_line import load_fvp_model
from tools.doubles import double_firmware, double_program, endings, install_double

FVP = "FVP_Corstone_SSE-300_Ethos-U55"
SLOW = {"floods_for_ever", "spins"}  # they take the host's deadline; chosen less often
LIMITS = Limits(host=8.0, stall=2.0, model=60.0, simulated=60.0)


def main(count: int, seed: int) -> int:
    rng = random.Random(seed)
    report: dict[str, object] = {"seed": seed, "runs": count, "wrong": []}
    with tempfile.TemporaryDirectory(prefix="hil-random-") as scratch:
        folder = Path(scratch)
        os.environ["HIL_HOME"] = str(folder / ".hil")
        os.environ["HIL_REFERENCES"] = str(folder / "references")
        wrong = list(_run(folder, rng, count, report))
        report["left_in_scratch"] = sorted(
            p.name
            for p in folder.iterdir()
            if p.name not in (".hil", "doubles", "program", "firmware.elf")
        )
        report["orphans"] = _processes_of(folder)
    report["wrong"] = wrong
    print(json.dumps(report))
    return 1 if wrong or report["left_in_scratch"] or report["orphans"] else 0


def _run(
    folder: Path, rng: random.Random, count: int, report: dict[str, object]
) -> Iterator[list[object]]:
    program, firmware = double_program(folder / "program"), double_firmware(folder)
    board = load_target("corstone-300-m55", target_directories({}))
    target = replace(board, limits=LIMITS)
    table = endings()
    names = [n for n in table for _ in range(1 if n in SLOW else 5)]
    for number in range(count):
        ending = rng.choice(names)
        installed = folder / "doubles" / ending
        if not installed.exists():
            install_double(installed, FVP, ending, load_fvp_model(FVP).parameters)
        os.environ["HIL_FVP_DIR"] = str(installed)
        chosen = pick(target, "fvp")
        record = run_case(Case(target.name, "add"), chosen, program, firmware, RunOptions())  # type: ignore[arg-type]
        cause = record.cause
        seen = (record.verdict.name, cause and cause.kind)
        if seen != table[ending]:
            yield [ending, *seen, cause and cause.text]
        if record.run_dir is not None:
            shutil.rmtree(record.run_dir)
        if number in (count // 10, count - 1):
            key = "memory_kb_at_end" if number == count - 1 else "memory_kb_early"
            report[key] = _resident_kb()
    report["peak_kb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _resident_kb() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1024


def _processes_of(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in command and int(process.name) != os.getpid():
            found.append(command.decode("utf-8", "replace"))
    return found


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
