"""Protects which arithmetic a runner is known to follow: what it was built with, or the default."""

from __future__ import annotations

import pytest

from harness.config.loading import load_target
from harness.core.errors import BuildError
from harness.firmware.source import Arithmetic, build_options, built_with
from harness.firmware.sources.bundled import build


def test_a_firmware_follows_what_it_was_built_with() -> None:
    assert built_with({}) is Arithmetic.CMSIS_NN
    for one in Arithmetic:
        assert built_with(build_options(one)) is one
    assert build_options(None) == {}


def test_another_word_is_refused_when_it_is_built() -> None:
    with pytest.raises(BuildError, match="HIL_ARITHMETIC is 'fast', and can be cmsis-nn or python"):
        build(load_target("host"), options={"HIL_ARITHMETIC": "fast"})
