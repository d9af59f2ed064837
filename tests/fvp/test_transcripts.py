"""Each file of `hil fvp check` that was sent is judged again as its runs were.

`stand-in.json` is a stand-in's: no file of an Arm model has come yet.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.fvp import models_file
from harness.run.fvp_check import FORMAT, FvpRun
from tests.fvp import read_fvp_file

FILES = sorted(Path(__file__).parent.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_replays_to_its_verdicts(path: Path) -> None:
    file = read_fvp_file(path)
    assert file.format == FORMAT
    runs = [run for fvp in file.fvps for run in fvp.runs]
    assert [run.replay() for run in runs] == [(run.verdict, run.cause) for run in runs]
    assert len(runs) >= 3


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_says_whose_it_is(path: Path) -> None:
    known = {model["executable"] for model in models_file().data.values()}
    for fvp in read_fvp_file(path).fvps:
        assert fvp.name in known
        assert fvp.stand_in is ("stand-in" in path.stem)


@pytest.fixture
def passed() -> FvpRun:
    file = read_fvp_file(Path(__file__).with_name("stand-in.json"))
    return next(run for fvp in file.fvps for run in fvp.runs if run.verdict == "PASS")


def test_a_replay_can_fail(passed: FvpRun) -> None:
    assert passed.ending is not None
    cut = replace(passed, console=passed.console.replace("Program complete", "Program"))
    other = replace(passed, outputs=(("0" * 64,),))
    status = replace(passed, ending=replace(passed.ending, exit_status=1))
    silent = replace(passed, console="In instance x: unknown parameter\n")
    assert [run.replay() for run in (cut, other, status, silent)] == [
        ("NO_VERDICT", "no_end_marker"),
        ("MISMATCH", "outputs_differ"),
        ("FAULT", "exit_status"),
        ("INFRA", "not_started"),
    ]
