"""Protects that a program which another version of ExecuTorch would refuse or misread is known
before it runs, and that no other program is."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.models import find_model
from harness.export.batch import export
from harness.export.process import ExportProcess
from harness.export.request import ExportRequest
from harness.run.version_skew import arguments_in, declared, first_misfit
from harness.system.paths import executorch_package

OPERATORS = "backends/cortex_m/ops/operators.yaml"
ADD = "cortex_m::quantized_add.out"


@pytest.fixture(scope="module")
def qadd(hil_export_process: ExportProcess) -> Path:
    return (
        export([ExportRequest(find_model("qadd"))], process=hil_export_process)[0].unwrap().pte_path
    )


def version(folder: Path, old: str = "", new: str = "") -> Path:
    """A version whose operators are the wheel's, but for one piece of text."""
    text = (executorch_package() / OPERATORS).read_text()
    assert text.count(old) >= 1
    (folder / OPERATORS).parent.mkdir(parents=True)
    (folder / OPERATORS).write_text(text.replace(old, new, 1))
    return folder


def test_the_wheel_reads_what_it_exports(qadd: Path) -> None:
    own = declared(executorch_package())
    calls = dict(arguments_in(qadd))
    assert ADD in calls
    assert len(calls[ADD]) == len(own[ADD]) + 1, "the returned value once more"
    assert first_misfit(qadd, own, own) is None


def test_types_of_every_form(tmp_path: Path) -> None:
    """Of ExecuTorch's own files; names without a namespace are aten's."""
    own = declared(executorch_package())
    assert own["dim_order_ops::_empty_dim_order.out"] == ("int[]", "int[]?", "Tensor")
    assert own["aten::bitwise_left_shift.Tensor_Scalar_out"] == ("Tensor", "Scalar", "Tensor")
    assert own["cortex_m::quantized_linear.out"][:4] == ("Tensor", "Tensor", "Tensor?", "Tensor?")
    place = tmp_path / "kernels/quantized/quantized.yaml"
    place.parent.mkdir(parents=True)
    place.write_text(
        "- func: a::b.out(Tensor?[] x, int[2] s=[1, 1], *, str? m=None, Tensor(a!) o, "
        "Tensor(b!) p) -> (Tensor(a!), Tensor(b!))\n- func: c::d() -> ()\n- op: e.out\n"
    )
    assert declared(tmp_path) == {
        "a::b.out": ("Tensor?[]", "int[]", "str?", "Tensor", "Tensor"),
        "c::d": (),
    }


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("int self_shift, ", "", "takes 13 arguments there, and the program gives it 14"),
        (
            "int activation_max, *, Tensor(a!) out",
            "int activation_max, Tensor? scratch, *, Tensor(a!) out",
            "takes 15 arguments there, and the program gives it 14",
        ),
        (
            "Tensor other, int other_zero_point",
            "int[] other, int other_zero_point",
            "takes int[] as argument 5 there, and the program gives it Tensor",
        ),
        (f"func: {ADD}", "func: cortex_m::quantized_sum.out", "is not declared there"),
    ],
)
def test_what_does_not_fit_is_named(
    qadd: Path, tmp_path: Path, old: str, new: str, text: str
) -> None:
    read = declared(version(tmp_path, old, new))
    assert first_misfit(qadd, declared(executorch_package()), read) == (ADD, text)


def test_other_operators_may_differ(qadd: Path, tmp_path: Path) -> None:
    read = declared(
        version(tmp_path, "cortex_m::softmax.out(Tensor input", "cortex_m::softmax.out(int x")
    )
    assert first_misfit(qadd, declared(executorch_package()), read) is None


def test_nobody_knows_an_operator_that_no_version_declares(qadd: Path, tmp_path: Path) -> None:
    """It is somebody's own, and the linked runner says whether it is there."""
    read = declared(version(tmp_path, f"func: {ADD}", "func: cortex_m::quantized_sum.out"))
    assert first_misfit(qadd, {}, read) is None


def test_what_is_not_a_program_has_no_calls(qadd: Path, tmp_path: Path) -> None:
    for damaged in (b"", b"not a program", qadd.read_bytes()[:40]):
        (tmp_path / "bad.pte").write_bytes(damaged)
        assert arguments_in(tmp_path / "bad.pte") == []
