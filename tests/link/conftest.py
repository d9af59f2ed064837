"""Runners with almost no kernels, each built once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.link.runner_build import built

BareRunner = Callable[..., Path]


@pytest.fixture(scope="session")
def bare_runner(tmp_path_factory: pytest.TempPathFactory) -> BareRunner:
    """``bare_runner(*options)``: the build directory of a bare-metal runner with these options of
    CMake."""

    @cache
    def build(*options: str) -> Path:
        return built(tmp_path_factory.mktemp("runner"), *options)

    return build
