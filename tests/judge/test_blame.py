"""Whose fault a wrong result is: three computations, and what each combination says.

The compiler is really wrong here (a defect of Vela 5.1.0), the program file is really another
one, and the runner's outputs are what it would have written.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.config.models import ModelSource
from harness.export.localise import SmallestPart, smallest_part
from harness.export.process import ExportProcess
from harness.export.program import Program
from harness.judge.blame import Culprit, NpuBlame, explain
from tests.npu.assembling import run

Get = Callable[..., Program]
Write = Callable[..., ModelSource]
TARGET = "ethos-u55-128"
SLICED = """
import torch
class Product(torch.nn.Module):
    def forward(self, x, y):
        return torch.bmm(x[:, 1:3], y)
torch.manual_seed(1)
ModelUnderTest = Product()
ModelInputs = (torch.rand(2, 4, 8), torch.rand(2, 8, 5))
"""


@pytest.fixture
def wrong(exported: Get, user_model: Write) -> Program:
    return exported(user_model(SLICED), TARGET)


@pytest.fixture
def imported_once(monkeypatch: pytest.MonkeyPatch, hil_export_process: ExportProcess) -> None:
    """A fork of the session's process reduces."""
    monkeypatch.setattr(
        "harness.judge.blame.ExportProcess", lambda: nullcontext(hil_export_process)
    )


def as_the_stream_does(program: Program) -> Callable[[int, int], list[bytes]]:
    def produced(number: int, input_set: int) -> list[bytes]:
        delegate = program.delegates[number]
        names = delegate.sets[input_set].inputs
        inputs = [(program.directory / name).read_bytes() for name in names]
        blob = (program.directory / delegate.blob).read_bytes()
        return [bytes(output) for output in run(blob, inputs, strict=False)[0]]

    return produced


def unknown_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(*arguments: Any, **options: Any) -> SmallestPart | None:
        part = smallest_part(*arguments, **options)
        return None if part is None else replace(part, defect="")

    monkeypatch.setattr("harness.judge.blame.smallest_part", search)


def blamed(program: Program, pte: Path, **more: object) -> NpuBlame:
    found = explain(program, pte, as_the_stream_does(program), **more)  # type: ignore[arg-type]
    assert found is not None
    return found[1]


@pytest.mark.usefixtures("imported_once")
def test_a_known_defect_is_the_compiler_s(wrong: Program) -> None:
    blame = blamed(wrong, wrong.pte_path)
    assert (blame.culprit, blame.defect) == (Culprit.COMPILER, "slice-before-matmul")
    assert blame.operators == ("SLICE", "MATMUL")
    assert blame.same_bytes is True
    text = str(blame)
    assert text.startswith("the compiler (Vela 5.1.0), not your model: known defect `slice-before-")
    assert "the runner gives the same bytes as this stream in process" in text
    assert text.endswith(f"hil npu reduce {wrong.pte_path}")
    assert blame.facts["culprit"] == "compiler"
    assert blame.facts["defect"] == "slice-before-matmul"


@pytest.mark.usefixtures("imported_once")
def test_a_defect_that_nobody_knows_may_be_the_model_s_of_the_npu(
    wrong: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until another NPU, such as an FVP's, gives the same bytes."""
    unknown_defect(monkeypatch)
    blame = blamed(wrong, wrong.pte_path)
    assert blame.culprit is Culprit.COMPILER_OR_NPU_MODEL
    assert "or the harness's model of the NPU, not your model: its stream does not" in str(blame)
    assert blamed(wrong, wrong.pte_path, independent=True).culprit is Culprit.COMPILER


@pytest.mark.usefixtures("imported_once")
def test_a_runner_that_gives_yet_other_bytes_is_not_taken_for_proof(
    wrong: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown_defect(monkeypatch)
    zeros = [bytes(output.nbytes) for output in wrong.delegates[0].outputs]
    found = explain(wrong, wrong.pte_path, lambda *_: zeros, independent=True)
    assert found is not None
    assert found[1].culprit is Culprit.COMPILER_OR_NPU_MODEL
    assert "the runner gives yet other bytes than this stream" in str(found[1])
    for unknown in (None, [zeros[0] * 2]):  # not come to, or in another layout
        nothing = explain(wrong, wrong.pte_path, lambda *_, given=unknown: given)
        assert nothing is not None
        assert nothing[1].same_bytes is None


def test_a_stream_that_is_right_leaves_the_runner(exported: Get) -> None:
    program = exported("add", TARGET)
    place, blame = explain(program, program.pte_path, lambda *_: None) or ("", None)
    assert "every delegate computes what TOSA does" in place
    assert blame is not None
    assert blame.culprit is Culprit.RUNNER
    assert str(blame).startswith("the runner, not the compiler (Vela 5.1.0) and not your model")


@pytest.mark.usefixtures("imported_once")
def test_a_program_file_that_is_not_the_exported_one(exported: Get, tmp_path: Path) -> None:
    """One bit of its stream's constants is another: the exported stream is right."""
    program = exported("linear", TARGET)
    pte = bytearray(program.pte_path.read_bytes())
    at = pte.index(b"weight_data") + 40
    pte[at] ^= 0x10
    changed = tmp_path / "changed.pte"
    changed.write_bytes(pte)
    _, blame = explain(program, changed, lambda *_: None) or ("", None)
    assert blame is not None
    assert blame.culprit is Culprit.PROGRAM_FILE
    assert str(blame) == (
        f"the program file {changed}: its stream is not the exported one, which is right"
    )


def test_nothing_on_the_npu_nothing_to_blame(exported: Get) -> None:
    program = replace(exported("add", TARGET), delegates=())
    assert explain(program, program.pte_path, lambda *_: None) is None


@pytest.mark.thorough
def test_two_explanations_at_once_leave_the_report_its_output(wrong: Program) -> None:
    """Two mismatches of one command: what torch and Vela print goes elsewhere, and the standard
    output and error of the harness are the same all the time."""
    before = [(os.fstat(n).st_dev, os.fstat(n).st_ino) for n in (1, 2)]
    streams = sys.stdout, sys.stderr
    changed = []
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(blamed, wrong, wrong.pte_path) for _ in range(2)]
        while not all(future.done() for future in both):
            now = [(os.fstat(n).st_dev, os.fstat(n).st_ino) for n in (1, 2)]
            if now != before or (sys.stdout, sys.stderr) != streams:
                changed.append(now)
            wait(both, timeout=0.01)
    assert changed == []
    assert [future.result().defect for future in both] == ["slice-before-matmul"] * 2
    assert [(os.fstat(n).st_dev, os.fstat(n).st_ino) for n in (1, 2)] == before
