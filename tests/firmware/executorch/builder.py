"""One process that builds a checkout: ``python -m tests.firmware.executorch.builder TARGET ROOT
NAME=DIR…``; says key and ELF as JSON, and "started" when it begins."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness.config.loading import load_target
from harness.core.simulator_name import SimulatorName
from harness.firmware.checkout import find_checkout, read_given
from harness.firmware.source import BuildRequest, source_named
from harness.sim.simulator import pick
from tests.firmware.executorch.conftest import Source


def start(source: Source, target: str = "corstone-300-m55") -> subprocess.Popen[str]:
    """It builds in $HIL_HOME as it is now."""
    given = [f"{name}={place}" for name, place in source.parts.items()]
    words = [sys.executable, "-m", __name__, target, str(source.root), *given]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What it said."""
    said, _ = process.communicate()
    assert process.returncode == 0
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def main(target: str, root: str, *given: str) -> None:
    told: list[str] = []
    chosen = pick(load_target(target), "qemu").target
    checkout = find_checkout(Path(root), read_given(given))
    print("started", flush=True)
    firmware = source_named("executorch").build(
        BuildRequest(chosen, SimulatorName.QEMU, checkout), told.append
    )
    facts = {"key": firmware.key, "sha256": firmware.elf_sha256, "root": root, "told": told}
    print(json.dumps(facts))


if __name__ == "__main__":
    main(*sys.argv[1:])
