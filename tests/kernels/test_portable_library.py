"""Every operator of ExecuTorch's portable library and of quantized_decomposed, call by call, as the
wheel's runtime computes it."""

from __future__ import annotations

import functools
import itertools
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.config.loading import load_target
from harness.firmware.sources.bundled import SOURCE
from harness.system.artifact_cache import locked
from harness.system.paths import cache_dir
from tests.kernels.portable_draw import Draw, draw_call, element_types
from tests.kernels.portable_hints import APPROXIMATE, SUMMED, hint_of
from tests.kernels.portable_program import (
    ABORTED,
    Call,
    Given,
    Made,
    Outcome,
    differ,
    of_ours,
    of_the_wheel,
    program_of,
)
from tests.kernels.portable_schemas import LISTS, full_name, names, schemas
from tests.late import Late
from tests.thorough import amount, cases
from tools.cpp import build_kernel_calls

torch = Late("torch")

CALLS = amount(daily=30, thorough=100)  # of an operator: 20,000 of all when everything is tried
IMPOSSIBLE = {  # see docs/reference/operators.md
    "aten::_conj_physical.out",
    "aten::rand.out",
    "aten::randn.out",
    "aten::view_as_real_copy.out",
    "et_copy::_d2h_copy.out",
    "et_copy::_h2d_copy.out",
}
PORTABLE, QUANTISED = map(names, LISTS)
EVERY = [*PORTABLE, *QUANTISED]
OFTEN = frozenset({"aten::add.out", "aten::mul.out", "aten::sub.out"})
PAIRED = OFTEN | {  # of two tensors; a shift by more bits than there are is left open by C++
    f"aten::{name}"
    for name in (
        *("atan2.out", "div.out", "div.out_mode", "floor_divide.out", "maximum.out", "minimum.out"),
        *("fmod.Tensor_out", "pow.Tensor_Tensor_out", "remainder.Tensor_out"),
        *("bitwise_and.Tensor_out", "bitwise_or.Tensor_out", "bitwise_xor.Tensor_out"),
        *("logical_and.out", "logical_or.out", "logical_xor.out"),
        *(f"{name}.Tensor_out" for name in ("eq", "ge", "gt", "le", "lt", "ne")),
    )
}


@pytest.fixture(scope="module")
def runner() -> Path:
    """With AddressSanitizer and UndefinedBehaviorSanitizer."""
    import executorch.kernels.quantized  # noqa: F401  the wheel's quantized_decomposed

    torch.set_num_threads(1)  # the wheel's runtime runs in children
    with locked(cache_dir("cpp") / "portable"):
        built = build_kernel_calls(sys.stdout)
    assert built is not None
    return built


@functools.cache
def schema_of(operator: str) -> torch._C.FunctionSchema:
    found = (schema for path in LISTS for schema in schemas(path))
    return next(schema for schema in found if full_name(schema) == operator)


def drawn_calls(operator: str, count: int) -> list[Call]:
    draw = Draw(zlib.crc32(operator.encode()))
    calls = []
    for _ in range(count):
        draw.begin(whole=operator in SUMMED)
        calls.append(draw_call(draw, schema_of(operator), hint_of(operator)))
    return calls


def calls_of_every_pair(operator: str) -> list[Call]:
    """Two tensors of any two element types, into the common type, float32 and bool."""
    draw = Draw(zlib.crc32(operator.encode()))
    draw.begin(whole=True)
    types = list(dict.fromkeys(element_types()))
    calls = []
    for first, second in itertools.product(types, types):
        common = torch.promote_types(first, second)
        tensors = {"self": draw.tensor((2, 3, 2), first), "exponent": draw.tensor((3, 1), second)}
        known = {**tensors, "other": tensors["exponent"], "alpha": 1, "rounding_mode": "floor"}
        for out in dict.fromkeys([common, torch.float32, torch.bool]):
            made = {"out": Made((2, 3, 2), out, (0, 1, 2))}
            given = schema_of(operator).arguments
            arguments = tuple((known | made)[argument.name] for argument in given)
            calls.append(Call(operator, arguments, tuple(str(a.type) for a in given)))
    return calls


def test_what_there_is_no_kernel_of_is_known() -> None:
    missing = SOURCE.without_kernel(EVERY, load_target("host"))
    assert set(missing) == IMPOSSIBLE
    assert len(PORTABLE) - len(IMPOSSIBLE) >= 203


@pytest.mark.parametrize("operator", sorted({*EVERY} - IMPOSSIBLE))
def test_calls_are_what_the_wheel_makes_of_them(
    operator: str, runner: Path, tmp_path: Path
) -> None:
    compare(operator, drawn_calls(operator, CALLS), runner, tmp_path)


@pytest.mark.parametrize("operator", cases(*sorted(OFTEN), thorough=sorted(PAIRED - OFTEN)))
def test_every_pair_of_element_types_is_taken_as_the_wheel_takes_it(
    operator: str, runner: Path, tmp_path: Path
) -> None:
    compare(operator, calls_of_every_pair(operator), runner, tmp_path)


def compare(operator: str, calls: Sequence[Call], runner: Path, tmp_path: Path) -> None:
    """Fails for a call whose result or refusal is not the wheel's."""
    pte = program_of(calls)
    (tmp_path / "calls.pte").write_bytes(pte)
    wheel = of_the_wheel(pte, calls)
    ours, logs = of_ours(runner, [tmp_path / "calls.pte"])
    valid = sum(outcome.code == 0 for outcome in wheel)
    print(f"{operator}: {valid} of {len(calls)} calls are valid")
    assert valid > 0
    found = [
        f"{call}: {difference}"
        for call, theirs, mine in zip(calls, wheel, ours, strict=True)
        if (difference := differ(call, theirs, mine, APPROXIMATE.get(operator, 0.0)))
    ]
    assert not found, "\n".join(found)
    assert all(log for mine, log in zip(ours, logs, strict=True) if mine.code)


def call_of_one() -> Call:
    given = Given(torch.ones(2), (0,))
    return Call("aten::abs.out", (given, Made((2,), torch.float32, (0,))), ("Tensor", "Tensor"))


def floats(*values: float) -> Outcome:
    return Outcome(0, (torch.tensor(values, dtype=torch.float32).numpy().tobytes(),))


def test_differences_are_noticed() -> None:
    call = call_of_one()
    assert not differ(call, floats(1, 2), floats(1, 2))
    assert not differ(call, floats(1, float("nan")), floats(1, float("nan")))
    assert differ(call, floats(1, 2), floats(1, 3))
    assert differ(call, floats(1, 2), floats(1, 2.000001))
    assert not differ(call, floats(1, 2), floats(1, 2.000001), 8.0)
    assert differ(call, floats(1, 2), Outcome(0x12))
    assert differ(call, Outcome(0x12), Outcome(0x10))
    assert differ(call, Outcome(ABORTED), floats(1, 2))
    assert not differ(call, Outcome(ABORTED), Outcome(0x12))


def test_a_call_tells_what_it_is() -> None:
    assert str(call_of_one()) == "aten::abs.out(float32[2], ->float32[2])"
