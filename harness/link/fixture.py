"""The pytest fixture behind ``hil link check``: assert that a hook is a hook."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.link.check import Checked, check


def assert_overridable(elf_or_build: Path, *symbols: str) -> Checked:
    """Fail, with every finding, unless all symbols can be overridden in every program."""
    checked = check(elf_or_build, symbols, lambda _message: None)
    assert checked.holds, checked.text()
    return checked


@pytest.fixture
def overridable() -> Callable[..., Checked]:
    """``overridable(build_dir, "arm_ethos_io_memcpy")``."""
    return assert_overridable
