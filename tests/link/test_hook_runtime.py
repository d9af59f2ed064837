"""Protects that an override of the Ethos-U backend's copy is really called: the counting build,
run on QEMU with the functional NPU, counts exactly the calls and bytes that the program's tensors
need, in every bare-metal configuration, and its results stay right."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.system.confine import what_lacks
from tests.link.conftest import BareRunner
from tests.link.delegate_program import Copies, needed_copies
from tests.link.recorded_programs import PROGRAMS, counted
from tests.link.runner_build import ELF, built
from tests.link.test_runner_hook import COUNTING, DOORBELL, FAST_SCRATCH, UNOPTIMISED
from tools.clone import project_root

BUILDS = {
    "no_fast_scratch": COUNTING,
    "fast_scratch": (*COUNTING, FAST_SCRATCH),
    "unoptimised": (*COUNTING, UNOPTIMISED),
}


@pytest.mark.parametrize(
    ("build", "name"),
    [
        pytest.param(b, p, marks=() if b == "fast_scratch" else pytest.mark.thorough)
        for b in BUILDS
        for p in PROGRAMS
        if not PROGRAMS[p].fast or b == "fast_scratch"
    ],
)
def test_the_override_sees_every_copy(
    build: str, name: str, bare_runner: BareRunner, tmp_path: Path
) -> None:
    what = PROGRAMS[name]
    run = what.run(bare_runner(*BUILDS[build]) / ELF, tmp_path / "w")
    assert run.status == 0, run.console
    needed = needed_copies(what.program())
    assert len(needed) == len(what.cases)
    assert counted(run.console) == 2 * needed, run.console  # once for each set of inputs
    assert run.outputs == (what.expected(),) * 2


def test_what_is_needed_is_not_always_the_same() -> None:
    """A count that were constant, or one per tensor, would not pass."""
    needed = {name: needed_copies(what.program()) for name, what in PROGRAMS.items()}
    assert needed["padded_output"] == [Copies(1 + 25, 5 * 9 * 8 + 25 * 3)]
    assert needed["two_inputs"] == [Copies(3, 5 + 5 * 20 + 20)]
    assert len({tuple(each) for each in needed.values()}) >= 9


@pytest.mark.skipif(bool(what_lacks()), reason=str(what_lacks()))
def test_a_copy_that_bypasses_the_hook_is_noticed(tmp_path: Path) -> None:
    source = project_root() / "targets" / "runner" / "ethosu" / "io_layout.cpp"
    text = source.read_text()
    used = "arm_ethos_io_memcpy(to, tensor.data, tensor.nbytes)"
    assert used in text
    direct = text.replace(used, used.replace("arm_ethos_io_memcpy", "std::memcpy"))
    planted = tmp_path / source.name
    planted.write_text("#include <cstring>\n" + direct)
    what = PROGRAMS["two_inputs"]
    build = built(tmp_path, *COUNTING, FAST_SCRATCH, planted=(planted, source))
    run = what.run(build / ELF, tmp_path / "w")
    assert run.status == 0, run.console
    assert counted(run.console) == [Copies(1, 20)] * 2  # the output's only
    assert needed_copies(what.program()) != [Copies(1, 20)]


def test_without_the_override_nothing_is_counted(bare_runner: BareRunner, tmp_path: Path) -> None:
    what = PROGRAMS["u55"]
    run = what.run(bare_runner(*DOORBELL) / ELF, tmp_path / "w")
    assert run.status == 0, run.console
    assert counted(run.console) == []
    assert run.outputs == (what.expected(),) * 2
