"""Protects the blame after a MISMATCH on a CPU: which operator is wrong, and whose fault that is.

Runner and graph are functions here: zeros are right, 1 is none of the graph's values, 2 is one but
for its last bits. A real runner with a planted kernel is in tests/run/test_second_opinion.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.config.models import find_model
from harness.core.judgement import Reason
from harness.export.batch import export
from harness.export.process import ExportProcess
from harness.export.program import Program
from harness.export.request import ExportRequest
from harness.firmware.source import source_named
from harness.formats.pte import CuttableProgram, Instruction
from harness.judge.executorch_defects import ProgramDefect
from harness.run.cpu_blame import Found, blame_on_cpu
from harness.run.cut_runs import CutRuns

ADD = "cortex_m::quantized_add.out"


class Graph:
    def __init__(self, _: Path) -> None: ...

    def have(self, value: Any, *, exactly: bool = False) -> bool:
        raw = value.view("u1")
        return not (raw.any() if exactly else (raw == 1).any())


@dataclass
class Runner:
    """``wrong``: results of these instructions; ``read``: what one reads; ``lost``: where
    the program does not come to. ``known``: the oracle's arguments of delegates."""

    program: Program
    wrong: Sequence[int] = ()
    read: int = 0
    lost: Sequence[int] = ()
    known: Mapping[int, tuple[int, bytes]] = field(default_factory=dict)
    steps: tuple[Instruction, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.steps = CuttableProgram(self.program.pte_path).instructions()

    def first(self, operator: str = ADD) -> int:
        return next(step.number for step in self.steps if step.operator == operator)

    def results(self, runs: CutRuns, step: Instruction) -> tuple[bytes, ...] | None:
        if step.number in self.lost:
            return None
        filled = bytes([step.number in self.wrong])
        return tuple(filled * runs.spec(number).nbytes for number in step.values)

    def values(self, runs: CutRuns, _: Instruction, numbers: Sequence[int]) -> tuple[bytes, ...]:
        return tuple(bytes([self.read]) * runs.spec(number).nbytes for number in numbers)


Blamed = Callable[..., Found]


@pytest.fixture
def blamed(monkeypatch: pytest.MonkeyPatch) -> Blamed:
    monkeypatch.setattr("harness.run.cpu_blame.GraphValues", Graph)

    def get(runner: Runner, source: str = "bundled", pte: Path | None = None) -> Found:
        monkeypatch.setattr(CutRuns, "results", lambda runs, step: runner.results(runs, step))
        monkeypatch.setattr(CutRuns, "values", lambda *given: runner.values(*given))
        monkeypatch.setattr(CutRuns, "of_delegates", runner.known)
        firmware: Any = SimpleNamespace(source=source_named(source))
        chosen: Any = None
        program = runner.program
        runs = CutRuns(chosen, firmware, program, pte or program.pte_path, 0)
        return blame_on_cpu(runs, program.outputs[0].name)

    return get


@pytest.fixture
def planted(exported: Callable[..., Program]) -> Runner:
    """Wrong from the first sum on."""
    runner = Runner(exported("resnet8"))
    return replace_(runner, wrong=range(runner.first(), len(runner.steps)))


def replace_(runner: Runner, **changes: Any) -> Runner:
    names = ("program", "wrong", "read", "lost", "known")
    fields = {name: getattr(runner, name) for name in names}
    return Runner(**{**fields, **changes})


@pytest.mark.parametrize(
    ("source", "culprit"),
    [("bundled", "the bundled runner's kernel"), ("executorch", "ExecuTorch's kernel")],
)
def test_a_wrong_kernel(source: str, culprit: str, planted: Runner, blamed: Blamed) -> None:
    place, blame = blamed(planted, source)
    assert place == (
        f"instruction {planted.first()} ({ADD}), after cortex_m::quantized_conv2d.out, where all "
        "is right"
    )
    assert blame is not None
    assert blame.text == f"{culprit}, not your model: what the operator reads is right"
    assert blame.facts == {"culprit": culprit, "instruction": planted.first(), "operator": ADD}


def test_a_wrong_pass(planted: Runner, blamed: Blamed) -> None:
    """What the operator reads is not what was written: a view, or memory that is used twice."""
    place, blame = blamed(replace_(planted, read=1))
    assert place.startswith(f"instruction {planted.first()} ({ADD})")
    assert blame is not None
    assert blame.text == (
        "the exported program (ExecuTorch's passes), not your model: what the operator reads was "
        "right when it was written"
    )


def test_another_program_file(planted: Runner, blamed: Blamed, tmp_path: Path) -> None:
    pte = tmp_path / "edited.pte"
    pte.write_bytes(planted.program.pte_path.read_bytes())
    _, blame = blamed(planted, pte=pte)
    assert blame is not None
    assert blame.text.startswith(f"the program file {pte}, or the bundled runner's kernel, not")


def test_a_delegate(exported: Callable[..., Program], blamed: Blamed) -> None:
    runner = Runner(exported("add", "ethos-u55-128"))
    delegate = next(step.number for step in runner.steps if step.is_delegate)
    _, blame = blamed(replace_(runner, wrong=range(delegate, 99)), "executorch")
    assert blame is not None
    assert blame.culprit == "ExecuTorch's backend"


def test_an_output_of_a_delegate_is_not_right_because_another_value_is_the_same(
    exported: Callable[..., Program], blamed: Blamed
) -> None:
    """Zeros are in the graph, and they are not what the oracle has for this output. The same of
    what a delegate reads: then nobody is blamed who read rightly."""
    runner = Runner(exported("add", "ethos-u55-128"))
    call = next(step for step in runner.steps if step.is_delegate)
    spec = CutRuns(None, None, runner.program, runner.program.pte_path, 0).spec  # type: ignore[arg-type]
    output = {call.values[0]: (99, b"\3" * spec(call.values[0]).nbytes)}
    later = range(call.number + 1, 99)
    place, blame = blamed(replace_(runner, known=output, wrong=later), "executorch")
    assert place.startswith(f"instruction {call.number} (delegate EthosUBackend)")
    assert blame is not None
    assert blame.culprit == "ExecuTorch's backend"
    given = call.arguments[0]
    source = next(step for step in runner.steps if given in step.values)
    read = {given: (call.number, b"\3" * spec(given).nbytes)}
    place, blame = blamed(replace_(runner, known=read, wrong=range(call.number, 99)))
    assert place.startswith(f"instruction {source.number} ({source.operator})")


def test_a_known_defect(planted: Runner, blamed: Blamed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a view, where what is read is wrong; of a kernel of ExecuTorch's, where it ran; never of
    another instruction."""

    def named(defect: str, number: int, source: str = "bundled", read: int = 0) -> str | None:
        found = ProgramDefect(defect, number, ADD, "[2] in order [0]")
        monkeypatch.setattr("harness.run.cpu_blame.defects_in", lambda _: (found,))
        _, blame = blamed(replace_(planted, read=read), source)
        assert blame is not None
        name: str | None = blame.facts.get("defect")
        return name

    view, cat, first = "view-of-channels-last", "cat-of-channels-last", planted.first()
    assert named(view, first, read=1) == view
    assert named(view, first) is None
    assert named(cat, first, "executorch") == cat
    assert named(cat, first) is None
    assert named(cat, first, read=1) is None
    assert named(cat, first + 1, "executorch") is None


def test_nobody_is_blamed_for_what_is_not_known(planted: Runner, blamed: Blamed) -> None:
    step = planted.steps[planted.first()]
    place = f"instruction {step.number} ({ADD})"
    after = f"{place}, after cortex_m::quantized_conv2d.out, where all is right"
    close = f"{after}; what it reads differs in the last bits of floats"
    assert blamed(replace_(planted, read=2)) == (close, None)
    source = next(s.number for s in planted.steps if step.arguments[0] in s.values)
    lost = blamed(replace_(planted, lost=[source]))
    assert lost == (f"{place}; what it reads could not be compared", None)
    nothing = "not found: each instruction gives what the exported graph has"
    assert blamed(Runner(planted.program)) == (nothing, None)
    unknown = "not found: the graph of this lowering was not run"
    assert blamed(Runner(replace(planted.program, values=""))) == (unknown, None)


def test_a_program_that_cannot_be_cut(planted: Runner, blamed: Blamed, tmp_path: Path) -> None:
    (tmp_path / "no.pte").write_bytes(bytes(64))
    place, blame = blamed(planted, pte=tmp_path / "no.pte")
    assert place.startswith("not found: ")
    assert blame is None


ROUNDING = """
import torch
class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv1d(3, 4, 3)
    def forward(self, x):
        y = self.conv(x)
        return y + y
ModelUnderTest = Network().eval()
ModelInputs = (torch.arange(24.0).reshape(1, 3, 8) / 24,)
"""
FLOAT, QUANTISE = "aten::convolution.out", "cortex_m::quantize_per_tensor.out"


@dataclass
class Rounding(Runner):
    """A float convolution whose last bits differ (bytes of 2), before a quantisation that gives
    ``quantised``; what follows is wrong as well."""

    quantised: int = 0

    def results(self, runs: CutRuns, step: Instruction) -> tuple[bytes, ...] | None:
        first = [s.number for s in self.steps if s.operator == FLOAT][-1]
        if step.number < first:
            filled = 0
        elif step.operator == FLOAT:
            filled = 2
        else:
            filled = self.quantised if step.operator == QUANTISE else 1
        return tuple(bytes([filled % 256]) * runs.spec(number).nbytes for number in step.values)

    def values(
        self, runs: CutRuns, after: Instruction, numbers: Sequence[int]
    ) -> tuple[bytes, ...]:
        return self.results(runs, replace(after, values=tuple(numbers))) or ()


@pytest.fixture
def rounding(
    hil_export_process: ExportProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Rounding:
    """A number that is no value of the graph is wrong, as 1 is in the other tests."""
    (tmp_path / "rounding.py").write_text(ROUNDING)
    request = ExportRequest(find_model(str(tmp_path / "rounding.py")), "cortex-m55")
    (result,) = export([request], process=hil_export_process)
    monkeypatch.setattr(Graph, "have", lambda _, value, exactly=False: _known(value, exactly))
    return Rounding(result.unwrap())


def _known(value: Any, exactly: bool) -> bool:
    raw = value.view("u1")
    return not raw.any() or ((raw == 2).all() and not exactly)


def _zero_point(runner: Rounding) -> int:
    """To which the float of four bytes of 2, 9.5e-38, is rounded."""
    call = [step for step in runner.steps if step.operator == QUANTISE][-1]
    value = CuttableProgram(runner.program.pte_path).values[call.arguments[2]].get("val")
    assert value is not None
    number: int = value.get("int_val")
    return number


def test_last_bits_of_floats_that_a_quantisation_rounds(rounding: Rounding, blamed: Blamed) -> None:
    rounding.quantised = _zero_point(rounding)
    place, blame = blamed(rounding)
    convolution = rounding.first(FLOAT)
    assert place.startswith(f"instruction {convolution + 1} ({QUANTISE}), after {FLOAT}")
    assert blame is not None
    assert blame.reason is Reason.FLOAT_ROUNDING
    assert blame.text.startswith(
        f"no operator's: instruction {convolution} ({FLOAT}) adds floats up in another order than "
        f"the oracle, and instruction {convolution + 1} ({QUANTISE}) rounds what comes"
    )
    assert blame.facts["operator"] == FLOAT
    assert blame.facts["rounded_by"] == QUANTISE


def test_a_wrong_quantisation_of_such_floats_is_not_called_rounding(
    rounding: Rounding, blamed: Blamed
) -> None:
    rounding.quantised = _zero_point(rounding) + 1
    place, blame = blamed(rounding)
    assert place.endswith("what it reads differs in the last bits of floats")
    assert blame is None
