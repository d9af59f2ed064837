"""Protects the definitions of float operators: bit for bit what the kernels compute, on the runner
itself, and within rounding what torch does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kernels.conftest import run_on_host
from tests.kernels.kernel_program import Activation, Case, Constant, build, plain, resolve
from tests.late import Late

__all__ = ["run_on_host"]

torch = Late("torch")
float_definitions = Late("tools.float_definitions")  # imports torch


def cases() -> Iterator[Case]:
    generator = torch.Generator().manual_seed(3)

    def draw(*shape: int) -> Any:
        return torch.randn(shape, generator=generator)

    image = draw(2, 4, 9, 7)
    for tensor in (image, image.to(memory_format=torch.channels_last)):
        options = ([2, 1], [1, 0], [1, 2], False, [0, 0], 2)
        arguments = (Activation(tensor), Constant(draw(6, 2, 3, 3)), Constant(draw(6)), *options)
        yield Case("conv2d", "aten.convolution", arguments)
        statistics = Constant(draw(4)), Constant(draw(4).abs() + 0.1)
        norm = (Activation(tensor), Constant(draw(4)), None, *statistics, 0.1, 1e-3)
        yield Case("batch_norm", "aten._native_batch_norm_legit_no_training", norm)
    line = Activation(draw(2, 40, 30))
    plain_options = ([3], [4], [1], False, [0], 1)
    yield Case("conv1d", "aten.convolution", (line, Constant(draw(5, 40, 7)), None, *plain_options))
    yield Case("bmm", "aten.bmm", (line, Activation(draw(2, 30, 11))))
    yield Case("softmax", "aten._softmax", (Activation(100 * draw(2, 30, 11)), 1, False))
    yield Case("sigmoid", "aten.sigmoid", (Activation(20 * image),))
    for weight in (None, Constant(draw(30))):
        arguments = (line, [30], weight, weight, 1e-5)
        for output in range(3):
            yield Case(f"layer_norm {output}", "aten.native_layer_norm", arguments, output=output)


def by_definition(case: Case) -> Any:
    values = [plain(argument) for argument in case.arguments]
    operator = resolve(case.operator)
    result = float_definitions.as_the_runner(
        case.operator.replace(".", "::"), operator(*values), *values
    )
    return result[case.output] if isinstance(result, tuple) else result


def test_the_runner_gives_each_bit_of_them(run_on_host: Callable[..., Any], tmp_path: Path) -> None:
    wanted = list(cases())
    program = build(wanted)
    result = run_on_host(program.pte, program.inputs, len(wanted), tmp_path)
    assert result.status == 0, result.log
    rounded = 0
    for case, raw, torchs in zip(wanted, result.outputs, program.expected, strict=True):
        defined = by_definition(case)
        order = defined.dim_order()
        assert defined.permute(order).contiguous().numpy().tobytes() == raw, case.name
        rounded += raw != torchs
        floats = (torch.frombuffer(bytearray(data), dtype=torch.float32) for data in (raw, torchs))
        assert torch.allclose(*floats, rtol=1e-4, atol=1e-4), case.name
    assert rounded > 3, "torch gives the same bits: nothing was tried"


def test_a_transposed_convolution_stays_as_torch_has_it() -> None:
    like = torch.zeros(1)
    x = torch.ones(1, 1, 2, 2)
    given = float_definitions.as_the_runner(
        "aten::convolution", like, x, x, None, [1], [0], [1], True, [0], 1
    )
    assert given is like


def test_a_definition_that_is_more_than_rounded_otherwise_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a runner with the same mistake would be exact."""
    x, y = torch.rand(1, 3, 4), torch.rand(1, 4, 2)
    torchs = torch.bmm(x, y)
    assert torch.allclose(float_definitions.as_the_runner("aten::bmm", torchs, x, y), torchs)
    wrong = {"aten::bmm": lambda like, *_: like * 1.001}
    monkeypatch.setattr("tools.float_definitions.DEFINITIONS", wrong)
    with pytest.raises(ValueError, match="not only rounded otherwise"):
        float_definitions.as_the_runner("aten::bmm", torchs, x, y)
