"""The operators of ``kernels/portable`` refuse arguments that do not fit, and say which and why.

As test_kernel_errors.py: each row damages one argument of a good program and names the message.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kernels.kernel_damage import Other, Reshaped, Row, check_refused
from tests.kernels.kernel_program import Activation, Case, Constant, build
from tests.late import Late

torch = Late("torch")

_BATCH_NORM = "_native_batch_norm_legit_no_training"
PLACES = (2, 1, 3)  # found among the inputs by its bytes


def _matrix(shape: tuple[int, int]) -> Activation:
    return Activation(torch.ones(shape))


def good_cases() -> list[Case]:
    floats = Activation(torch.ones(1, 4, 6, 6))
    matrices = Activation(torch.ones(2, 3, 4)), Activation(torch.ones(2, 4, 5))
    places = Activation(torch.tensor(PLACES))
    vector = Activation(torch.ones(2, 8))
    eight = Constant(torch.ones(8))
    whole = Activation(torch.ones(3, dtype=torch.int8))
    return [
        Case("sigmoid", "aten.sigmoid", (floats,), tolerance=1e-6),
        Case("relu", "aten.relu", (floats,)),
        Case("elu", "aten.elu", (floats,)),
        Case("logical_not", "aten.logical_not", (floats,)),
        Case("eq", "aten.eq.Scalar", (floats, 1.0)),
        Case("full", "aten.full", ([2, 3], 7), {"dtype": torch.int8}),
        Case("scalar", "aten.scalar_tensor", (7,), {"dtype": torch.int64}),
        Case("full_like", "aten.full_like", (whole, 7)),
        Case("expand", "aten.expand_copy", (vector, [3, 2, 8])),
        Case("split", "aten.split_with_sizes_copy", (floats, [1, 3], 1)),
        Case("embedding", "aten.embedding", (Constant(torch.ones(5, 4)), places)),
        Case("bmm", "aten.bmm", matrices),
        Case("addmm", "aten.addmm", (Activation(torch.ones(5)), *map(_matrix, ((3, 4), (4, 5))))),
        Case("linear", "aten.linear", (vector, Constant(torch.ones(3, 8)), None)),
        Case("adaptive", "aten._adaptive_avg_pool2d", (floats, [3, 3])),
        Case("log_softmax", "aten._log_softmax", (floats, 1, False), tolerance=1e-6),
        Case("mean", "aten.mean.dim", (floats, [2, 3], True)),
        Case("any", "aten.any.dim", (floats, 1, True)),
        Case("norm", "aten.native_layer_norm", (vector, [8], eight, eight, 1e-5), tolerance=1e-4),
        _batch_norm(),
    ]


def _batch_norm() -> Case:
    parameters = (Constant(torch.full((4,), value)) for value in (1.5, 2.5, 3.5, 4.5))
    arguments = (Activation(torch.ones(1, 4, 5, 5)), *parameters, 0.1, 1e-5)
    return Case(
        "batch_norm", "aten._native_batch_norm_legit_no_training", arguments, tolerance=1e-5
    )


@functools.cache
def good_program() -> Any:
    return build(good_cases())


ROWS: list[Row] = [
    ("sigmoid", 0, Reshaped((144,)), "an output does not have the shape of the result"),
    ("relu", 0, Reshaped((144,)), "an output does not have the shape of the result"),
    ("logical_not", 0, Reshaped((144,)), "an output does not have the shape of the result"),
    ("eq", 0, Reshaped((144,)), "an output does not have the shape of the result"),
    ("eq", 1, None, "argument 1 is missing, has the wrong type or is too large"),
    ("full", 0, [3, 2], "out does not have the size"),
    ("full", 1, 128, "the value does not fit the element type"),
    ("scalar_tensor", 1, Reshaped((1,)), "out has dimensions"),
    ("full_like", 0, Reshaped((3, 1)), "self and out differ in shape or dim order"),
    ("expand_copy", 1, [3, 2, 7], "a dimension cannot be expanded to the size"),
    ("expand_copy", 1, [-1, 2, 8], "a dimension cannot be expanded to the size"),
    ("split_with_sizes_copy", 1, [3, 1], "an output does not have the shape of the result"),
    ("split_with_sizes_copy", 1, [4], "there is not an output for each piece"),
    ("split_with_sizes_copy", 1, [1, 2], "an output does not have the shape of the result"),
    ("split_with_sizes_copy", 1, [5, -1], "the sizes do not add up to the dimension"),
    ("split_with_sizes_copy", 1, [1, 1 << 30], "the sizes do not add up to the dimension"),
    ("split_with_sizes_copy", 2, 4, "a dimension does not exist"),
    ("embedding", 1, Other(0), "element type 6 is not supported"),
    ("embedding", 0, Reshaped((4, 5)), "an output does not have the shape of the result"),
    ("addmm", 1, Reshaped((4, 3)), "the matrices do not fit each other"),
    ("addmm", 0, Reshaped((5, 1)), "self does not broadcast to the product"),
    ("bmm", 0, Reshaped((2, 4, 3)), "the matrices do not fit each other"),
    ("_adaptive_avg_pool2d", 1, [2, 3], "an output does not have the shape of the result"),
    ("_adaptive_avg_pool2d", 0, Reshaped((4, 36)), "self is no image"),
    ("_log_softmax", 1, 4, "a dimension does not exist"),
    ("_log_softmax", 0, Reshaped((144,)), "a dimension does not exist"),
    ("linear", 1, Reshaped((8, 3)), "the matrices do not fit each other"),
    ("linear", 2, Other(0), "bias is not a vector of the outputs"),
    ("mean", 1, [2], "an output does not have the shape of the result"),
    ("mean", 1, [7], "a dimension does not exist"),
    ("any", 1, 4, "a dimension does not exist"),
    ("any", 2, False, "an output does not have the shape of the result"),
    ("native_layer_norm", 1, [2], "normalized_shape is not the end of input's shape"),
    ("native_layer_norm", 2, Other(0), "a parameter has another shape"),
    (_BATCH_NORM, 0, Reshaped((100,)), "input has no channels"),
    (_BATCH_NORM, 0, Reshaped((1, 4, 25)), "input and out differ in shape or dim order"),
    (_BATCH_NORM, 1, Other(0), "a parameter is not a vector of channels"),
    (_BATCH_NORM, 2, Other(0), "a parameter is not a vector of channels"),
    (_BATCH_NORM, 3, Other(0), "a parameter is not a vector of channels"),
    (_BATCH_NORM, 4, Other(0), "a parameter is not a vector of channels"),
]


def test_the_undamaged_program_runs(run_on_host: Callable[..., Any], tmp_path: Path) -> None:
    wanted = good_program()
    result = run_on_host(wanted.pte, wanted.inputs, len(wanted.expected), tmp_path)
    assert result.status == 0, result.log
    assert not wanted.wrong(result.outputs)


@pytest.mark.parametrize(
    ("operator", "index", "wanted", "message"), ROWS, ids=[f"{r[0]}-{r[1]}-{r[2]}" for r in ROWS]
)
def test_a_bad_argument_is_refused(
    operator: str,
    index: int,
    wanted: Any,
    message: str,
    run_on_host: Callable[..., Any],
    tmp_path: Path,
) -> None:
    row = (f"aten::{operator}", index, wanted, message)
    check_refused(run_on_host, good_program(), row, tmp_path)


@pytest.mark.parametrize("place", [5, -1, 1 << 40])
def test_a_row_beyond_the_weight_is_refused(
    place: int, run_on_host: Callable[..., Any], tmp_path: Path
) -> None:
    """It comes with the input, so that nothing can be said before the call."""
    good = good_program()
    right, wrong = (torch.tensor(p).numpy().tobytes() for p in (PLACES, (2, place, 3)))
    assert good.inputs.count(right) == 1
    inputs = [wrong if data == right else data for data in good.inputs]
    result = run_on_host(good.pte, inputs, len(good.expected), tmp_path)
    assert result.status != 0
    assert "aten::embedding.out: an index names no row of weight" in result.log


def test_a_runner_without_them_says_which_operators_are_missing(
    run_on_m33: Callable[..., Any], tmp_path: Path
) -> None:
    """They take text, so that only who needs them has them."""
    wanted = good_program()
    result = run_on_m33(wanted.pte, wanted.inputs, len(wanted.expected), tmp_path)
    assert result.status != 0
    assert "kernel 'aten::sigmoid.out' not found" in result.log
