"""Protects the linker model: on random link jobs it takes the same archive members, leaves the
same symbols undefined and finds the same duplicates as the real linker.

300 jobs; HIL_LINK_JOBS=10000 for the long run, HIL_LINK_SEED for another set of jobs.
"""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

from harness.link.smaller.candidate import NewSymbol, write_object
from tests.link.linkjobs import LINKER, Outcome, linked, modelled, random_job

JOBS = int(os.environ.get("HIL_LINK_JOBS", "300"))
SEED = int(os.environ.get("HIL_LINK_SEED", "0"))


def test_random_jobs_end_as_the_linker_ends_them(tmp_path: Path) -> None:
    print(f"seeds {SEED} to {SEED + JOBS - 1}")
    seen = set()
    for number in range(JOBS):
        directory = tmp_path / str(number % 50)
        directory.mkdir(exist_ok=True)
        job = random_job(random.Random(SEED + number), directory)
        outcome = linked(job.argv, directory)
        assert modelled(job.job) == outcome, f"seed {SEED + number}: {job.argv}"
        seen.add((outcome.links, bool(outcome.members), bool(outcome.undefined),
                  bool(outcome.duplicates)))  # fmt: skip
    assert len(seen) >= 8, "the jobs are too much alike to prove anything"


def test_a_wrong_prediction_would_be_noticed(tmp_path: Path) -> None:
    """The comparison is of the outcome's every part."""
    (tmp_path / "a.o").write_bytes(write_object([NewSymbol("wanted", "undef")]))
    outcome = linked(("a.o",), tmp_path)
    assert outcome == Outcome(False, (), ("wanted",), ())


def test_objects_written_here_are_those_of_the_assembler(tmp_path: Path) -> None:
    """A job whose objects come from the assembler ends as the one with our own objects."""
    (tmp_path / "a.s").write_text(".data\n.word strong\n.weak maybe\n.word maybe\n.word none\n")
    (tmp_path / "b.s").write_text(".globl strong\n.data\nstrong: .word 0\n.comm shared,4\n")
    for name in ("a", "b"):
        subprocess.run(["arm-none-eabi-as", f"{name}.s", "-o", f"{name}.o"], cwd=tmp_path,
                       check=True)  # fmt: skip
    subprocess.run(["arm-none-eabi-ar", "rcs", "lib1.a", "b.o"], cwd=tmp_path, check=True)
    ours = [
        [NewSymbol("strong", "undef"), NewSymbol("maybe", "undefweak"), NewSymbol("none", "undef")],
        [NewSymbol("strong", "def"), NewSymbol("shared", "common")],
    ]
    (tmp_path / "own").mkdir()
    for name, symbols in zip("ab", ours, strict=True):
        (tmp_path / "own" / f"{name}.o").write_bytes(write_object(symbols))
    subprocess.run(["arm-none-eabi-ar", "rcs", "lib1.a", "b.o"], cwd=tmp_path / "own", check=True)
    assert linked(("a.o", "lib1.a"), tmp_path) == linked(("a.o", "lib1.a"), tmp_path / "own")
    assert linked(("a.o", "lib1.a"), tmp_path).undefined == ("none",)
    assert LINKER in subprocess.run([LINKER, "--help"], capture_output=True, text=True,
                                    check=True).stdout  # fmt: skip
