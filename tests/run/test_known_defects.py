"""A program that ExecuTorch computes wrongly does not pass because our runner is right.

The firmware is planted and writes its known outputs, on the real QEMU.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.config.loading import load_target, target_directories
from harness.config.models import ModelSource
from harness.core.errors import MalformedFile
from harness.core.verdict import Verdict
from harness.export.program import Program
from harness.firmware.source import BuildRequest, source_named
from harness.judge.executorch_defects import ProgramDefect
from harness.run.judging import judge_again
from harness.run.pipeline import RunOptions, run_case
from harness.run.record import RunRecord
from harness.sim.simulator import pick
from tools.doubles import double_program, planted_firmware

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
CAT = ProgramDefect(
    "cat-of-channels-last", 3, "aten::cat.out", "[1, 7, 6, 6] in order [0, 2, 3, 1]"
)
SELECT = ProgramDefect("mixed-dim-orders", 1, "aten::select_copy.int_out", "[2] in order [0]")


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    monkeypatch.setenv("HIL_REFERENCES", str(tmp_path / "references"))


Run = Callable[..., RunRecord]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    return partial(_run, tmp_path, monkeypatch)


def _run(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    *defects: ProgramDefect | MalformedFile,
    right: bool = True,
    accept: str = "",
) -> RunRecord:
    """``right``: whether what the firmware writes is what is expected."""
    program = double_program(folder / source / str(right))
    monkeypatch.setattr("harness.run.judging.defects_in", lambda _: _found(defects))
    monkeypatch.setattr("harness.run.pipeline.equipped", lambda firmware, *_: firmware)
    monkeypatch.setattr("harness.run.pipeline.require_fit", lambda *_: ())
    if not right:
        for one in program.sets:
            for name in one.expected:
                (program.directory / name).write_bytes(bytes(16))
    target = load_target("corstone-300-m55", target_directories({}))
    options = RunOptions(accept_known_defects=(accept,) if accept else ())
    firmware = planted_firmware(folder, "PASSES", source)
    return run_case(Case(target.name, "add"), pick(target, "qemu"), program, firmware, options)  # type: ignore[arg-type]


def _found(defects: tuple[ProgramDefect | MalformedFile, ...]) -> tuple[object, ...]:
    for defect in defects:
        if isinstance(defect, MalformedFile):
            raise defect
    return defects


def test_what_executorch_computes_wrongly_is_not_a_pass(run: Run) -> None:
    record = run("bundled", CAT)
    assert record.verdict is Verdict.MISMATCH
    assert record.cause is not None
    assert record.cause.kind == "known_defect"
    assert record.cause.text == (
        "the outputs are right, but not those that ExecuTorch itself would give; first: "
        "instruction 3 (aten::cat.out of [1, 7, 6, 6] in order [0, 2, 3, 1]); whose fault: "
        "ExecuTorch's kernel, not your model: known defect `cat-of-channels-last`: aten::cat "
        "copies whole rows of channels-last tensors as if they were plain ones; what helps: "
        "layout: explicit in the model's YAML file, if none of its max pools has ceil_mode"
    )
    assert (record.cause.facts or {})["defect"] == "cat-of-channels-last"
    again = judge_again(Path(record.run_dir or ""))
    assert (again.verdict, again.cause) == (record.verdict, record.cause)


@pytest.mark.parametrize("source", ["bundled", "executorch"])
def test_a_program_that_nobody_could_search_is_not_a_pass(source: str, run: Run) -> None:
    record = run(source, MalformedFile("it has 2 chains, and one is needed", 0))
    assert record.verdict is Verdict.NO_VERDICT
    assert record.cause is not None
    assert record.cause.kind == "defects_unread"
    assert record.cause.text == (
        "the outputs are right, but known defects of ExecuTorch were not looked for: it has 2 "
        "chains, and one is needed (at offset 0 = 0x0)"
    )
    assert judge_again(Path(record.run_dir or "")).cause == record.cause
    wrong = run(source, MalformedFile("it has 2 chains, and one is needed", 0), right=False)
    assert wrong.verdict is Verdict.MISMATCH


def test_a_call_that_executorch_refuses_is_not_a_pass(run: Run) -> None:
    record = run("bundled", SELECT)
    assert record.cause is not None
    assert record.cause.kind == "known_defect"
    assert "ExecuTorch's kernel, which refuses what its exporter makes, not" in record.cause.text


def test_an_accepted_defect_passes_with_a_note(run: Run) -> None:
    record = run("bundled", CAT, accept="cat-of-channels-last")
    assert record.verdict is Verdict.PASS
    (note,) = (n for n in record.notes if "accepted" in n and "defect" in n)
    assert "`cat-of-channels-last` of ExecuTorch: instruction 3 (aten::cat.out of" in note


def test_an_accepted_defect_is_not_an_excuse_for_wrong_outputs(run: Run) -> None:
    record = run("bundled", CAT, right=False, accept="cat-of-channels-last")
    assert record.cause is not None
    assert record.cause.kind == "outputs_differ"
    assert "whose fault" not in record.cause.text  # our runner's kernel is another


def test_executorchs_own_runner_is_judged_by_its_outputs(run: Run) -> None:
    """A checkout in which the kernel is mended passes; one in which it is not says why."""
    assert run("executorch", CAT).verdict is Verdict.PASS
    record = run("executorch", CAT, right=False)
    assert record.cause is not None
    assert record.cause.kind == "outputs_differ"
    assert "first: not found: " in record.cause.text  # no graph of this program was run


SHUFFLED = """
import torch
torch.manual_seed(0)
class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = torch.nn.Conv2d(3, 4, 3), torch.nn.Conv2d(4, 2, 1)
    def forward(self, x):
        y = self.one(x).view(1, 2, 2, 6, 6).transpose(1, 2)
        return self.other(y.reshape(1, 4, 6, 6))
ModelUnderTest = Network().eval()
ModelInputs = (torch.randn(1, 3, 8, 8),)
"""


RESIDUAL = """
import torch
torch.manual_seed(0)
class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.line = torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.Linear(4, 4)
    def forward(self, x):
        y = self.image(x)
        return y + self.line(y.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
ModelUnderTest = Network().eval()
ModelInputs = (torch.randn(1, 3, 8, 8),)
"""


@pytest.mark.parametrize(
    ("text", "place", "defect"),
    [
        (
            SHUFFLED,
            "(cortex_m::quantized_conv2d.out of [1, 4, 6, 6] in order [0, 1, 2, 3], ",
            "plain-image",
        ),
        (
            RESIDUAL,
            "(cortex_m::quantized_add.out of [1, 4, 8, 8] in order [0, 2, 3, 1], ",
            "arithmetic-of-mixed-orders",
        ),
    ],
    ids=["shuffled", "residual"],
)
def test_what_our_runner_refuses_has_the_name_of_executorchs_defect(
    exported: Callable[..., Program],
    user_model: Callable[..., ModelSource],
    shared_hil_home: str,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    place: str,
    defect: str,
) -> None:
    """A real run. The transpose of five dimensions, which only ExecuTorch refuses, is passed; the
    sum, which ExecuTorch gets wrong without a word, is refused."""
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    source, chosen = user_model(text), pick(load_target("host"))
    program = exported(source)
    firmware = source_named("bundled").build(BuildRequest(chosen.target, chosen.name))
    record = run_case(Case("host", str(source.file)), chosen, program, firmware, RunOptions())
    assert record.verdict is Verdict.FAULT
    assert record.mismatch_at is not None
    assert place in record.mismatch_at
    assert record.blame is not None
    assert record.blame.facts["defect"] == defect
