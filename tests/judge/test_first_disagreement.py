"""A wrong delegate is found and its first wrong element named. No torch, no Vela: recorded cases.

``tests/npu/data/cases.npz`` has streams of Vela with what the TOSA reference model answers.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.core.errors import ExportError, HarnessError
from harness.export.process import ExportProcess
from harness.export.program import Delegate, InputSet, Program, TensorSpec
from harness.judge.blame import Disagreement, first_disagreement, name_operator

CASES = Path(__file__).parents[1] / "npu" / "data" / "cases.npz"
NAMES = ("padded_average-0-ethos-u55-128", "convolution-1-ethos-u85-256")


class Process(ExportProcess):
    """An export process that gives one answer."""

    def __init__(self, answer: dict[str, Any] | HarnessError | None) -> None:
        super().__init__()
        self._answer = answer

    def call(self, function: str, *arguments: object, task: str, on_stage: object = None) -> Any:
        if isinstance(self._answer, HarnessError):
            raise self._answer
        return self._answer


def localise(
    program: Program,
    answer: dict[str, Any] | HarnessError | None = None,
    pte: Path | None = None,
) -> Disagreement | None:
    wrong = first_disagreement(program, pte=pte)
    return None if wrong is None else name_operator(program, wrong, Process(answer), pte)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Two delegates that run in the order 0, 1 and lie in the file in the order 1, 0."""
    with np.load(CASES) as arrays:
        delegates = tuple(_delegate(tmp_path, i, n, arrays) for i, n in enumerate(NAMES))
    blobs = [(tmp_path / d.blob).read_bytes() for d in delegates]
    (tmp_path / "program.pte").write_bytes(b"ET12" + blobs[1] + b"----" + blobs[0])
    return Program(
        directory=tmp_path,
        model="made up",
        compile_target="ethos-u55-128",
        pte="program.pte",
        pte_sha256="",
        oracle="",
        inputs=(),
        outputs=(),
        sets=(),
        operators=(),
        versions={},
        delegates=delegates,
    )


def _delegate(folder: Path, index: int, name: str, arrays: dict[str, np.ndarray]) -> Delegate:
    (folder / f"{index}.vela").write_bytes(arrays[f"{name}/0/blob"].tobytes())
    specs: dict[str, list[TensorSpec]] = {"in": [], "out": []}
    for kind, found in specs.items():
        while (key := f"{name}/0/{kind}{len(found)}") in arrays:
            value, file = arrays[key], f"{index}-{kind}{len(found)}"
            (folder / file).write_bytes(value.tobytes())
            order = tuple(range(value.ndim))
            found.append(TensorSpec(file, str(value.dtype), value.shape, order))
    files = InputSet(tuple(s.name for s in specs["in"]), tuple(s.name for s in specs["out"]))
    return Delegate(
        1 - index,
        f"{index}.vela",
        "none.tosa",
        tuple(specs["in"]),
        tuple(specs["out"]),
        (files, files),
    )


def spoil(program: Program, delegate: int, element: tuple[int, ...]) -> int:
    """Change what the oracle is said to have computed; gives the true value."""
    spec = program.delegates[delegate].outputs[0]
    file = program.directory / program.delegates[delegate].sets[0].expected[0]
    value = spec.decode(file.read_bytes()).copy()
    true = int(value[element])
    value[element] = true ^ 1
    file.write_bytes(value.tobytes())
    return true


def test_nothing_to_find(program: Program) -> None:
    assert localise(program) is None
    assert localise(program, pte=program.pte_path) is None


@pytest.mark.parametrize("delegate", [0, 1])
def test_the_first_wrong_element(program: Program, delegate: int) -> None:
    """The later of two wrong elements is not the one that is named."""
    last = tuple(n - 1 for n in program.delegates[delegate].outputs[0].shape)
    spoil(program, delegate, last)
    element = (*last[:-1], 0)
    true = spoil(program, delegate, element)
    found = localise(program)
    assert found is not None
    assert (found.delegate, found.set, found.element) == (delegate, 0, element)
    assert (found.actual, found.expected) == (true, true ^ 1)
    assert found.operation.startswith(("CONV at byte 0x", "POOL at byte 0x", "ELEMENTWISE at"))
    assert str(found) == (
        f"delegate {delegate}, input set 0: output {found.tensor}, element {list(element)} is "
        f"{true} on the NPU and {true ^ 1} in TOSA, written by {found.operation}"
    )


def test_a_failed_search_is_said(program: Program) -> None:
    """The class of the error reaches the reader, as text and as data."""
    spoil(program, 0, (0,) * len(program.delegates[0].outputs[0].shape))
    found = localise(program, ExportError("Vela cannot compile this"))
    assert found is not None
    assert found.unnamed == "ExportError: Vela cannot compile this"
    assert found.operation  # what could be found out is still there
    assert str(found).endswith("its operator is not named: ExportError: Vela cannot compile this")


def test_a_fault_that_disappears_when_looked_at_is_not_an_error(program: Program) -> None:
    spoil(program, 0, (0,) * len(program.delegates[0].outputs[0].shape))
    found = localise(program)
    assert found is not None
    assert (found.operator, found.unnamed) == ("", "")
    assert "not named" not in str(found)


def test_a_run_that_passes_does_not_wait_for_it() -> None:
    """numpy takes 100 ms to import, a fifth of a warm run."""
    code = (
        "import sys, harness.cli.run, harness.run.pipeline, harness.report.terminal\n"
        "late = ('numpy', 'harness.judge.blame')\n"
        "print([name for name in late if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_stream_with_an_output_less_does_not_fit_its_graph(program: Program) -> None:
    """As Vela makes one of two outputs that are one value."""
    one = program.delegates[0]
    twice = replace(one, outputs=(*one.outputs, one.outputs[0]))
    found = localise(replace(program, delegates=(twice,)))
    assert found is not None
    assert found.trouble == "its stream has 1 outputs, and the graph 2"


def test_the_earlier_delegate_comes_first(program: Program) -> None:
    for delegate in (1, 0):
        spoil(program, delegate, (0,) * len(program.delegates[delegate].outputs[0].shape))
    found = localise(program)
    assert found is not None
    assert found.delegate == 0


def test_only_the_sets_asked_for(program: Program) -> None:
    spoil(program, 1, (0, 0, 0, 0))
    found = first_disagreement(program, [1])
    assert found is not None
    assert found.set == 1
    assert first_disagreement(program, []) is None


def test_a_delegate_that_does_not_run(program: Program) -> None:
    (program.directory / "1.vela").write_bytes(b"no stream")
    found = localise(program)
    assert found is not None
    assert found.delegate == 1
    assert str(found).startswith("delegate 1, input set 0: ")
    assert "block header" in found.trouble


def test_the_streams_that_really_ran(program: Program) -> None:
    """Swapped in the file, each delegate gets the other's stream."""
    blobs = [(program.directory / d.blob).read_bytes() for d in program.delegates]
    swapped = program.directory / "swapped.pte"
    swapped.write_bytes(blobs[0] + blobs[1])
    assert localise(program) is None
    assert localise(program, pte=swapped) is not None
    swapped.write_bytes(blobs[0])
    found = localise(program, pte=swapped)
    assert found == Disagreement(0, 0, trouble="the program that ran has 1 delegates, not 2")


def test_an_operator_is_named_before_its_tensor() -> None:
    found = Disagreement(0, 2, "rescale_7", (0, 3), 5, 6, "CONV2D and RESCALE")
    assert str(found) == (
        "delegate 0, input set 2: CONV2D and RESCALE (rescale_7), element [0, 3] is 6 on the NPU "
        "and 5 in TOSA"
    )
    assert str(replace(found, operator="")).count("output rescale_7") == 1
