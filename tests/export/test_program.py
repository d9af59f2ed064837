"""A Program as data: reading one costs nothing that a warm run must not pay."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["numpy", "torch", "flatbuffers"])
def test_importing_it_imports_nothing_heavy(module: str) -> None:
    code = f"import sys, harness.export.program; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
