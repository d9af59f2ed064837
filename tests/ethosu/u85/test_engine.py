"""Operations of the U85 that nobody has verified are refused."""

from __future__ import annotations

import pytest

from harness.ethosu.errors import Unsupported
from harness.ethosu.model import run
from tests.ethosu.assembling import INPUT, U85_256, blob, cop1, pool, words


@pytest.mark.parametrize(
    ("operation", "register"),
    [(("POOL", 6), "POOL.pooling_mode"), (("ELEMENTWISE", 12), "ELEMENTWISE.elementwise_mode")],
)
def test_unverified_u85_operations_are_named(operation: tuple[str, int], register: str) -> None:
    items = [*pool()[:-2], operation, ("STOP", 0)]
    with pytest.raises(Unsupported) as caught:
        run(blob(cop1(U85_256, words("u85", *items))), [INPUT])
    assert caught.value.register == register
