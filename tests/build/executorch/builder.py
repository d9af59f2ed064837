"""One process that builds a checkout: ``python -m tests.build.executorch.builder TARGET ROOT
NAME=DIR…``; says key and ELF as JSON, and "started" when it begins."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness.build.executorch.checkout import find_checkout
from harness.build.executorch.firmware import build_checkout
from harness.build.executorch.parts import read_given
from harness.simulate.pick import pick
from harness.target.loading import load_target
from harness.target.model import SimulatorName
from tests.build.executorch.conftest import Source


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
    firmware = build_checkout(chosen, SimulatorName.QEMU, checkout, progress=told.append)
    facts = {"key": firmware.key, "sha256": firmware.elf_sha256, "root": root, "told": told}
    print(json.dumps(facts))


if __name__ == "__main__":
    main(*sys.argv[1:])
