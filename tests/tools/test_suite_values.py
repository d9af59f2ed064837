"""Protects the comparison of all values of a suite's model: one that is wrong must be seen, and
one that is not there must not count as right."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from harness.formats.pte import CuttableProgram
from tests.kernels.conftest import run_on_host
from tests.kernels.kernel_program import Activation, Case, build
from tests.late import Late

__all__ = ["run_on_host"]

torch = Late("torch")
suite_values = Late("tools.suite_values")  # imports torch and ExecuTorch


@dataclass(frozen=True)
class Ran:
    """A program of a relu, a split, a copy, and a full of one value without a dimension; the values
    of its graph; the runner's console."""

    program: CuttableProgram
    values: list[suite_values.Value]
    console: bytes

    def compared(
        self, values: list[suite_values.Value] | None = None, console: bytes | None = None
    ) -> suite_values.Compared:
        return suite_values.compare(self.program, values or self.values, console or self.console)


@pytest.fixture(scope="module")
def ran(run_on_host: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Ran:
    x = torch.arange(-12, 12, dtype=torch.float32).reshape(1, 4, 2, 3)
    image = x.to(memory_format=torch.channels_last)
    cases = [
        Case("relu", "aten.relu", (Activation(image),)),
        Case("split", "aten.split_with_sizes_copy", (Activation(x), [1, 3], 1)),
        Case("copy", "aten.clone", (Activation(x[:, :1]),)),
        Case("full", "aten.full", ([], 7), {"dtype": torch.int8}),
    ]
    program, folder = build(cases), tmp_path_factory.mktemp("values")
    result = run_on_host(program.pte, program.inputs, len(program.expected), folder)
    assert result.status == 0, result.log
    values = [
        suite_values.Value("aten::relu", (torch.relu(x),)),
        suite_values.Value("aten::split_with_sizes_copy", (x[:, :1], x[:, 1:])),
        suite_values.Value("dim_order_ops::_clone_dim_order", (x[:, :1],)),
        suite_values.Value("aten::full", (torch.full((), 7, dtype=torch.int8),)),
    ]
    return Ran(CuttableProgram(folder / "model.pte"), values, result.log.encode())


def test_values_are_compared_in_the_programs_memory_order(ran: Ran) -> None:
    compared = ran.compared()
    assert compared == suite_values.Compared(4, (), 1, (), (True, False))
    assert compared.exact
    assert str(compared) == "4 of 4 values exact, 1 constant; the last is exact, constant"


@pytest.mark.parametrize(
    ("index", "tensors", "wrong"),
    [
        (0, lambda v: (v.tensors[0] + 1,), "(aten::relu.out)"),
        (1, lambda v: (v.tensors[0], -v.tensors[1]), "(aten::split_with_sizes_copy.out)"),
        (3, lambda v: (v.tensors[0] - 1,), "(aten::full.out)"),
    ],
)
def test_one_wrong_value_is_seen(
    ran: Ran, index: int, tensors: Callable[[suite_values.Value], tuple[Any, ...]], wrong: str
) -> None:
    values = list(ran.values)
    values[index] = replace(values[index], tensors=tensors(values[index]))
    compared = ran.compared(values)
    (place,) = compared.wrong
    assert place.endswith(wrong)
    assert not compared.exact
    assert compared.last[0] is (index != 3)
    assert f"3 of 4 values exact, 1 constant; the last is {'' if index != 3 else 'not '}exact" in (
        str(compared)
    )


def test_a_value_that_the_console_or_the_graph_lacks_is_not_exact(ran: Ran) -> None:
    crc = zlib.crc32(ran.values[3].tensors[0].numpy().tobytes())
    cut = re.sub(rb".*%08x\n" % crc, b"", ran.console)
    assert len(cut) < len(ran.console)
    assert ran.compared(console=cut).wrong
    compared = ran.compared(ran.values[:3])
    assert [place.partition(" ")[2] for place in compared.missing] == ["(aten::full.out)"]
    assert not compared.exact
    assert "not in the graph: " in str(compared)


def test_values_that_are_all_constant_prove_nothing() -> None:
    assert not suite_values.Compared(2, (), 2, (), (True, False)).exact
    assert suite_values.Compared(2, (), 1, (), (True, False)).exact


def test_a_run_that_did_not_end_well_is_not_exact() -> None:
    compared = suite_values.Compared(0, (), 0, (), trouble="did not end well")
    assert not compared.exact
    assert str(compared) == "did not end well"


def test_a_nan_of_either_sign_is_the_one_of_arm() -> None:
    """An attention of which everything is masked is -inf less -inf throughout: the conformer's."""
    made = torch.tensor([0x7FC00000, -0x400000], dtype=torch.int32).view(torch.float32)
    assert suite_values.in_memory(made, (0,)) == bytes.fromhex("0000c07f" * 2)
    assert suite_values.in_memory(torch.tensor([-1.0, -0.0]), (0,)) == bytes.fromhex(
        "000080bf00000080"
    )


def test_nan_throughout_does_not_vary() -> None:
    nan = torch.full((3,), float("nan"))
    assert not suite_values.Value("aten::_softmax", (nan,)).varies
    assert suite_values.Value("aten::_softmax", (torch.cat([nan, torch.zeros(1)]),)).varies
    assert not suite_values.Value("aten::full", (torch.full((4,), 7, dtype=torch.int8),)).varies
