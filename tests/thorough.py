"""How much a run of the tests tries: what can break on a push, or everything.

``./hil test`` has a test of each kind. ``./hil test --all`` has every combination and random cases
by the thousand, in hours: it sets ``$HIL_TEST_ALL``, as whoever runs pytest may. What only such a
run has is marked ``thorough``; a test that its id, ``-k`` or ``-m`` names is run in any case.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

VARIABLE = "HIL_TEST_ALL"
SLOW_FOR_AN_NPU = "mobilenet_v1_025"  # lowering it takes 14 s; ds_cnn has its operators


def is_thorough() -> bool:
    return os.environ.get(VARIABLE, "0") not in ("", "0")


def is_named(config: pytest.Config) -> bool:
    """Whether the command line chooses tests, not whole files or folders."""
    chosen = config.option.markexpr or config.option.keyword
    return bool(chosen) or any("::" in argument for argument in config.args)


def amount(daily: int, thorough: int) -> int:
    """A number of random cases: of every run, and of one that tries everything."""
    return thorough if is_thorough() else daily


def cases(*daily: Any, thorough: Iterable[Any]) -> list[Any]:
    """Of ``pytest.mark.parametrize``, with one argument: those of every run, and the rest."""
    return [*daily, *(pytest.param(case, marks=pytest.mark.thorough) for case in thorough)]
