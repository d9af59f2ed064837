"""ExecuTorch's sample for Zephyr of a real checkout, in a real workspace: where $EXECUTORCH_ROOT
and $ZEPHYR_BASE name them, and the checkout or the settings have the parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Hil
from tests.cli.conftest import hil as hil
from tests.firmware.executorch.conftest import Source
from tests.link.workspace import needs_real_zephyr

TARGETS = ("zephyr-corstone-300", "zephyr-corstone-300-u55-128", "zephyr-corstone-320-u85-256")


@needs_real_zephyr
@pytest.mark.parametrize("target", TARGETS)
def test_a_model_is_exact(
    target: str, real: Source, hil: Hil, tmp_path: Path, shared_hil_home: str
) -> None:
    parts = [f"--part={name}={folder}" for name, folder in real.parts.items()]
    words = ("--simulator", "qemu", "--json", "--executorch", str(real.root), *parts)
    done = hil("run", target, "add", *words, HIL_HOME=shared_hil_home, CI="")
    assert done.code == 0, done
    assert done.json["verdict"] == "PASS"
    assert done.json["metrics"]["method_allocator_used"] > 0
