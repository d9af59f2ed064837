"""Any call drawn by hypothesis gives the definition's bytes in every build.

Protects against what the fixed cases of test_kernels.py happen not to draw. A run
of all that is thorough draws others each time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kernels.kernel_cases import MAKERS
from tests.kernels.kernel_cases_portable import PORTABLE
from tests.kernels.kernel_draw import Draw
from tests.kernels.kernel_program import Plan, build_each
from tests.thorough import amount, is_thorough

GROUPS = sorted(set(MAKERS) - {"view_copy", *PORTABLE})  # all builds have these
CALLS = 12

Runners = dict[str, Callable[..., Any]]


@pytest.fixture(scope="session")
def runners(
    run_on_host: Callable[..., Any],
    run_on_qemu: Callable[..., Any],
    run_on_m33: Callable[..., Any],
    run_on_m0plus: Callable[..., Any],
) -> list[tuple[str, Runners]]:
    """The builds, by the backend their programs are planned for."""
    return [
        ("MVE", {"host": run_on_host, "Helium": run_on_qemu}),
        ("DSP", {"DSP": run_on_m33}),
        ("SCALAR", {"scalar": run_on_m0plus}),
    ]


@settings(
    max_examples=amount(3, 100),
    derandomize=not is_thorough(),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(
    drawn=st.lists(
        st.tuples(st.sampled_from(GROUPS), st.integers(0, 2**32 - 1)),
        min_size=CALLS,
        max_size=CALLS,
    )
)
def test_every_build_gives_the_bytes_of_the_definition(
    drawn: list[tuple[str, int]],
    runners: list[tuple[str, Runners]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    cases = [MAKERS[group][0](Draw(seed)) for group, seed in drawn]
    plans = [Plan(backend) for backend, _ in runners]
    for wanted, (_, builds) in zip(build_each(cases, plans), runners, strict=True):
        for name, run in builds.items():
            work: Path = tmp_path_factory.mktemp(name)
            result = run(wanted.pte, wanted.inputs, len(wanted.expected), work)
            assert result.status == 0, result.log
            differ = wanted.wrong(result.outputs)
            assert not differ, (name, differ)
