"""Every operator gives the bytes of its Python definition, on the host and with
Helium, DSP and scalar instructions.

Protects the kernels' arithmetic: rounding ties, clamps, padding, ragged sizes, dim orders,
and that all builds agree.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from executorch.backends.cortex_m.library import cmsis_nn

from tests.kernels.kernel_cases import MAKERS, cases
from tests.kernels.kernel_program import KernelProgram, build_each

SEED = 20260822


# The fixture that runs a program, and how its scratch is planned.
BUILDS = {
    "host": ("run_on_host", "MVE"),
    "helium": ("run_on_qemu", "MVE"),
    "dsp": ("run_on_m33", "DSP"),
    "scalar": ("run_on_m0plus", "SCALAR"),
}


@functools.cache
def programs(group: str) -> dict[str, KernelProgram]:
    """The group's calls as one program, for each backend with scratch as CMSIS-NN wants it."""
    names = tuple(dict.fromkeys(backend for _, backend in BUILDS.values()))
    backends = [getattr(cmsis_nn.Backend, name) for name in names]
    calls = list(cases(group, SEED))
    built = build_each(calls, backends, keep_views=group == "view_copy")
    return dict(zip(names, built, strict=True))


def check(run: Callable[..., Any], wanted: KernelProgram, work: Path) -> None:
    """Runs a program and compares every output."""
    print(f"seed {SEED}")
    result = run(wanted.pte, wanted.inputs, len(wanted.expected), work)
    assert result.status == 0, result.log
    assert len(result.outputs) == len(wanted.expected), result.log
    wrong = wanted.wrong(result.outputs)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("build", BUILDS)  # the faster one: a group's programs are built once
@pytest.mark.parametrize("group", MAKERS)
def test_every_build_gives_the_bytes_of_the_definition(
    group: str, build: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    fixture, backend = BUILDS[build]
    check(request.getfixturevalue(fixture), programs(group)[backend], tmp_path)


@pytest.mark.parametrize("group", ["conv2d", "depthwise", "transpose_conv", "batch_matmul"])
def test_scratch_too_small_for_the_fast_path_changes_no_byte(
    group: str, run_unchecked: Callable[..., Any], tmp_path: Path
) -> None:
    """A program planned for a scalar core has less scratch; the Helium kernels must not use what
    is not there when nothing compares the sizes."""
    check(run_unchecked, programs(group)["SCALAR"], tmp_path)


def test_a_wrong_byte_is_noticed(run_on_host: Callable[..., Any], tmp_path: Path) -> None:
    """The comparison itself can fail: a changed input changes an output."""
    wanted = programs("dequantize")["MVE"]
    changed = [bytes(b ^ 1 for b in data) for data in wanted.inputs]
    result = run_on_host(wanted.pte, changed, len(wanted.expected), tmp_path)
    assert result.status == 0, result.log
    assert result.outputs != wanted.expected
