"""Every operator gives the bytes of its Python definition, on the host and on Helium.

Protects the kernels' arithmetic: rounding ties, clamps, padding, ragged sizes, dim orders,
and that the scalar and the vector paths agree.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kernel_cases import MAKERS, cases
from kernel_program import KernelProgram, build

SEED = 20260822


@functools.cache
def program(group: str) -> KernelProgram:
    """The group's calls as one program; exported once for both runners."""
    return build(list(cases(group, SEED)))


def check(run: Callable[..., Any], group: str, work: Path) -> None:
    """Runs the group's program and compares every output byte."""
    print(f"seed {SEED}")
    wanted = program(group)
    result = run(wanted.pte, wanted.inputs, len(wanted.expected), work)
    assert result.status == 0, result.log
    assert len(result.outputs) == len(wanted.expected), result.log
    wrong = [
        f"{name}: {sum(a != b for a, b in zip(got, want, strict=False))} of {len(want)} bytes"
        for name, got, want in zip(wanted.names, result.outputs, wanted.expected, strict=True)
        if got != want
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("group", MAKERS)
def test_host_gives_the_bytes_of_the_definition(
    group: str, run_on_host: Callable[..., Any], tmp_path: Path
) -> None:
    check(run_on_host, group, tmp_path)


@pytest.mark.parametrize("group", MAKERS)
def test_helium_gives_the_bytes_of_the_definition(
    group: str, run_on_qemu: Callable[..., Any], tmp_path: Path
) -> None:
    check(run_on_qemu, group, tmp_path)


def test_a_wrong_byte_is_noticed(run_on_host: Callable[..., Any], tmp_path: Path) -> None:
    """The comparison itself can fail: a changed input changes an output."""
    wanted = program("dequantize")
    changed = [bytes(b ^ 1 for b in data) for data in wanted.inputs]
    result = run_on_host(wanted.pte, changed, len(wanted.expected), tmp_path)
    assert result.status == 0, result.log
    assert result.outputs != wanted.expected
