"""``hil standin``: options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli.verb import echo, verb
from harness.core.verdict import ExitCode
from harness.suites.standin.install import install


@click.group()
def standin() -> None:
    """The FVP's command line on top of QEMU, where there is no FVP."""


@standin.command("install")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@verb
def install_(directory: Path, as_json: bool) -> tuple[dict[str, Any], ExitCode]:
    """Writes commands with the names of Arm's models into DIR.

    They take the models' options and run the program on QEMU's mps3-an547 (Corstone-300 with a
    Cortex-M55) with a functional model of the NPU. They say that they are no FVP.

    \b
    Example:
      hil standin install /tmp/fvp && PATH=/tmp/fvp:$PATH run_fvp.sh --elf=...
    """
    written = install(directory)
    if not as_json:
        for path in written:
            echo(path)
    return {"commands": [str(path) for path in written]}, ExitCode.PASSED
