"""Every operator gives the bytes of its definition, on the host and with Helium, DSP and scalar
instructions: that of ExecuTorch's C++, or of Python where the runner was built to follow it.

Protects the kernels' arithmetic: rounding ties, clamps, padding, ragged sizes, dim orders,
and that all builds agree.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.firmware.source import Arithmetic
from tests.kernels.kernel_cases import MAKERS, cases
from tests.kernels.kernel_cases_portable import PORTABLE
from tests.kernels.kernel_program import (
    KernelProgram,
    Plan,
    activations_of,
    build,
    build_each,
    memory_bytes,
)

SEED = 20260822


# Groups in which ExecuTorch's C++ and its Python definitions differ.
TWO_DEFINITIONS = ["avg_pool", "avg_pool_nhwc", "quantize", "quantize16", "decomposed_quantize"]
# Operators that ExecuTorch's wheel has kernels of its own for, compiled as the portable ones are.
OF_THE_WHEEL = [
    "floor",
    "argmax",
    "topk",
    "slice_copy",
    "squeeze_copy",
    "index",
    "nearest",
    "bilinear",
]


# The fixture that runs a program, and what it is planned for.
BUILDS = {
    "host": ("run_on_host", "MVE"),
    "helium": ("run_on_qemu", "MVE"),
    "dsp": ("run_on_m33", "DSP"),
    "scalar": ("run_on_m0plus", "SCALAR"),
}
# Where the operators of kernels/portable are tested: they have no code for a core's instructions.
PORTABLE_BUILDS = ["host", "helium"]
ROOMY = ["depthwise", "edges"]  # groups that are also planned with more scratch than is asked for


@functools.cache
def programs(group: str) -> dict[str, KernelProgram]:
    """The group's calls as one program, for each backend with scratch as CMSIS-NN wants it."""
    builds = PORTABLE_BUILDS if group in PORTABLE else list(BUILDS)
    plans = {name: Plan(name) for name in {BUILDS[build][1] for build in builds}}
    if group in TWO_DEFINITIONS:
        plans["python"] = Plan(arithmetic=Arithmetic.PYTHON)
    if group in ROOMY:
        plans["roomy"] = Plan(spare=1 << 14)
    calls = list(cases(group, SEED))
    built = build_each(calls, list(plans.values()), keep_views=group == "view_copy")
    return dict(zip(plans, built, strict=True))


def check(run: Callable[..., Any], wanted: KernelProgram, work: Path) -> None:
    """Runs a program and compares every output."""
    print(f"seed {SEED}")
    result = run(wanted.pte, wanted.inputs, len(wanted.expected), work)
    assert result.status == 0, result.log
    assert len(result.outputs) == len(wanted.expected), result.log
    wrong = wanted.wrong(result.outputs)
    assert not wrong, "\n".join(wrong)


# The build is the faster one: a group's programs are built once.
@pytest.mark.parametrize(
    ("group", "build"),
    [
        (group, build)
        for group in MAKERS
        for build in (PORTABLE_BUILDS if group in PORTABLE else BUILDS)
    ],
)
def test_every_build_gives_the_bytes_of_the_definition(
    group: str, build: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    fixture, backend = BUILDS[build]
    check(request.getfixturevalue(fixture), programs(group)[backend], tmp_path)


@pytest.mark.parametrize("group", TWO_DEFINITIONS)
def test_a_runner_that_follows_python_gives_the_bytes_of_python(
    group: str,
    run_python_on_host: Callable[..., Any],
    run_python_on_qemu: Callable[..., Any],
    tmp_path: Path,
) -> None:
    wanted, shipped = programs(group)["python"], programs(group)["MVE"]
    assert wanted.expected != shipped.expected, "the calls do not tell the two apart"
    for name, run in (("host", run_python_on_host), ("helium", run_python_on_qemu)):
        (tmp_path / name).mkdir()
        check(run, wanted, tmp_path / name)


@pytest.mark.parametrize("group", OF_THE_WHEEL)
def test_the_wheels_own_kernels_give_the_same_bytes(group: str) -> None:
    """Protects the definitions themselves: where torch leaves the order of a sum or of equal
    elements open, ours is the one of ExecuTorch's kernels. These take no other dim order."""
    from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

    plain = [
        case
        for case in cases(group, SEED)
        if all(list(t.dim_order()) == list(range(t.dim())) for t in activations_of(case))
        and all(t.numel() for t in activations_of(case))
    ]
    assert len(plain) > 8
    wanted = build(plain)
    outputs = _load_for_executorch_from_buffer(wanted.pte).run_method("forward", wanted.tensors)
    wrong = wanted.wrong([memory_bytes(t, t.dim_order()) for t in outputs])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("group", ["conv2d", "depthwise", "transpose_conv", "batch_matmul"])
def test_scratch_too_small_for_the_fast_path_changes_no_byte(
    group: str, run_unchecked: Callable[..., Any], tmp_path: Path
) -> None:
    """A program planned for a scalar core has less scratch; the Helium kernels must not use what
    is not there when nothing compares the sizes."""
    check(run_unchecked, programs(group)["SCALAR"], tmp_path)


@pytest.mark.parametrize("group", ROOMY)
def test_more_scratch_than_asked_for_changes_no_byte(
    group: str, run_unchecked: Callable[..., Any], tmp_path: Path
) -> None:
    """A fast path that is taken because there is room has to suit the call in every other way."""
    check(run_unchecked, programs(group)["roomy"], tmp_path)


def test_a_wrong_byte_is_noticed(run_on_host: Callable[..., Any], tmp_path: Path) -> None:
    """The comparison itself can fail: a changed input changes an output."""
    wanted = programs("dequantize")["MVE"]
    changed = [bytes(b ^ 1 for b in data) for data in wanted.inputs]
    result = run_on_host(wanted.pte, changed, len(wanted.expected), tmp_path)
    assert result.status == 0, result.log
    assert result.outputs != wanted.expected
