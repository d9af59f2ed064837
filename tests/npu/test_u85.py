"""Operations of the U85: what each gives, and those that nobody has verified, which are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.npu.errors import Unsupported
from harness.npu.job import INT8, INT16, INT32
from harness.npu.stream import Registers
from harness.npu.u85 import _clamp
from tests.npu.assembling import INPUT, U85_256, blob, cop1, pool, run, words


@pytest.mark.parametrize(
    ("operation", "register"),
    [(("POOL", 6), "POOL.pooling_mode"), (("ELEMENTWISE", 12), "ELEMENTWISE.elementwise_mode")],
)
def test_unverified_u85_operations_are_named(operation: tuple[str, int], register: str) -> None:
    items = [*pool()[:-2], operation, ("STOP", 0)]
    with pytest.raises(Unsupported) as caught:
        run(blob(cop1(U85_256, words("u85", *items))), [INPUT])
    assert caught.value.register == register


# As ``pool``, but results go to memory in the U85's way of saying so.
FIELDS = {**dict(pool()[:-2]), "OFM_PRECISION": 0x0101}
VALUES = np.frombuffer(INPUT, np.int8).reshape(4, 4, 16).astype(np.int64)


def ran(*items: tuple[str, int]) -> np.ndarray:
    stream = words("u85", *FIELDS.items(), *items, ("STOP", 0))
    (found,), _ = run(blob(cop1(U85_256, stream)), [INPUT])
    return np.frombuffer(found, np.int8).reshape(4, 4, 16)


def clipped(values: np.ndarray) -> np.ndarray:
    return np.clip(values, -128, 127).astype(np.int8)


def test_halfway_between_two_the_nearest_is_the_next() -> None:
    """Positions 1/2, 3/2, 5/2 and 7/2; behind the last there is none."""
    fields = {"KERNEL_HEIGHT_M1": 3, "KERNEL_WIDTH_M1": 3, "OFM_SCALE": 1 | 16 << 32}
    for axis in "XY":
        fields |= {f"RESIZE_{axis}_SCALE_N_M1": 1, f"RESIZE_{axis}": 1 << 32}
        fields |= {f"RESIZE_{axis}_OFFSET": 1}
    places = [1, 2, 3, 3]
    assert (ran(*fields.items(), ("RESIZE", 2)) == VALUES[places][:, places]).all()


@pytest.mark.parametrize("step", [7, 8, 15])
def test_a_resize_may_skip_many_rows_and_columns(step: int) -> None:
    """The whole part of a step has four bits."""
    fields = {"KERNEL_HEIGHT_M1": 3, "KERNEL_WIDTH_M1": 3, "OFM_SCALE": 1 | 16 << 32}
    for axis in "XY":
        fields |= {f"RESIZE_{axis}_SCALE_N_M1": 0, f"RESIZE_{axis}": step << 32}
        fields |= {f"RESIZE_{axis}_OFFSET": 0}
    places = [0, 3, 3, 3]
    assert (ran(*fields.items(), ("RESIZE", 2)) == VALUES[places][:, places]).all()


@pytest.mark.parametrize("order", [1 << 9 | 2 << 11, 2 << 14 | 1 << 9, 2 << 14 | 1 << 11])
def test_two_orders_of_a_result_are_refused(order: int) -> None:
    """A transpose, a reversed axis or a chaining buffer: Vela emits one of them at most."""
    with pytest.raises(Unsupported) as caught:
        ran(("OFM_PRECISION", 0x0101 | order), ("POOL", 0))
    assert caught.value.register == "OFM_PRECISION"


@pytest.mark.parametrize("scalar", [3, -3])
def test_a_scalar_has_a_sign(scalar: int) -> None:
    fields = {"IFM_BROADCAST": 0, "IFM_SCALE": 1, "IFM2_SCALE": 1, "IFM2_ZERO_POINT": 0}
    fields |= {"IFM2_BROADCAST": 8, "IFM2_PRECISION": 3 << 14 | 1, "OP_SCALAR": scalar}
    assert (ran(*fields.items(), ("ELEMENTWISE", 1)) == clipped(VALUES + scalar)).all()


def test_sums_that_are_kept_are_what_the_next_operation_starts_from() -> None:
    found = ran(("ACC_FORMAT", 1 << 6), ("POOL", 0), ("ACC_FORMAT", 1 << 4), ("POOL", 0))
    assert (found == clipped(2 * VALUES)).all()


def test_sums_of_another_size_are_not_what_an_operation_starts_from() -> None:
    smaller = ("OFM_HEIGHT_M1", 1), ("OFM_HEIGHT0_M1", 1)
    with pytest.raises(Unsupported, match="nothing was kept"):
        ran(("ACC_FORMAT", 1 << 6), ("POOL", 0), *smaller, ("ACC_FORMAT", 1 << 4), ("POOL", 0))


@pytest.mark.parametrize(("mode", "half"), [(1, 1), (5, 0)])
def test_the_rounding_says_whether_a_half_goes_up(mode: int, half: int) -> None:
    """NATURAL rounds it up, TRUNCATE_TO_LOWER drops it."""
    found = ran(("OFM_SCALE", 1 | 1 << 32 | mode << 45), ("POOL", 0))
    assert (found == VALUES + half >> 1).all()


@pytest.mark.parametrize(
    ("dtype", "low", "high", "clamp"),
    [
        (INT8, 0xFF80, 0xFFFD, (-128, -3)),
        (INT16, 0x8000, 0xFFFD, (-32768, -3)),
        (INT16, 0xFFF0, 0x7FFF, (-16, 32767)),
        (INT32, 0, 0xFFFD, (0, 0xFFFD)),  # only there it has no sign
    ],
)
def test_the_bounds_of_a_clamp_have_a_sign(
    dtype: np.dtype[Any], low: int, high: int, clamp: tuple[int, int]
) -> None:
    values = {"ACTIVATION": 0, "ACTIVATION_MIN": low, "ACTIVATION_MAX": high}
    assert _clamp(Registers(values, 0), dtype) == clamp
