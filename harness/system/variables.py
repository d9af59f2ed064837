"""The environment variables that users may set; each is stronger than the settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

VARIABLES: Final[dict[str, str]] = {
    "HIL_PROJECT": "the settings' file or its folder, in place of the next one above",
    "HIL_HOME": "the state directory: cached programs and firmware, run directories",
    "HIL_REFERENCES": "the folder of accepted references",
    "HIL_REQUIRE_CONFINEMENT": "1: no run of a guest that cannot be confined; 0: also in CI",
    "HIL_HISTORY": "the database of nights, as --history: sqlite:///FILE or postgresql://...",
    "HIL_FVP_DIR": "folders in which Arm's FVPs are installed, separated by colons",
    "EXECUTORCH_ROOT": "a checkout of ExecuTorch, for --firmware executorch and both",
    "ZEPHYR_BASE": "the workspace in which the zephyr-* targets are built",
    "HIL_PYTHON": "the interpreter that ./hil in a clone makes its environment with",
    "HIL_NO_SYSTEM_PACKAGES": "1: ./hil never calls apt",
    "CI": "set: missing FVPs fail, guests have to be confined, tolerances are the reviewed ones, "
    "and a program or a size without its accepted reference fails",
}


def is_on(value: str) -> bool:
    """As CI systems set a variable: empty, 0, false and no are off."""
    return value.lower() not in ("", "0", "false", "no")


def in_ci(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this is CI, where nobody looks on and defaults are the strict ones."""
    return is_on(environ.get("CI", ""))
