"""The runner as a native program of this machine."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.simulate.launch import Launch
from harness.system.toolchain import Tool


def launch(elf: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> Launch:
    machine = Tool("host", elf, f"{platform.system()} {platform.machine()}", "")
    argv = (str(elf), *arguments[1:])
    return Launch("host", machine, argv, environment=environment, readable=(elf,))
