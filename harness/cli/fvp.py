"""``hil fvp``: for who has one of Arm's FVPs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from harness.cli.verb import FILE, Answer, echo, progress_shown, verb
from harness.core.verdict import exit_code
from harness.run.fvp_check import check_fvps
from harness.system.files import disk_errors, write_whole


@click.group()
def fvp() -> None:
    """Try the FVPs that are installed here.

    \b
    Examples:
      hil fvp check
      hil fvp check FVP_Corstone_SSE-320 -o fvp.json
    """


@fvp.command()
@click.argument("name", required=False)
@click.option("-o", "--output", type=FILE, default=Path("fvp-check.json"), show_default=True)
@verb
def check(name: str | None, output: Path) -> Answer:
    """Ask each FVP, or NAME, for its version and parameters, and run three small models on it.

    Writes one file: versions, parameter names, consoles, exit states and times. Paths and the name
    of this machine are replaced. No FVP was available to this project: please send the file
    (docs/how-to/fvp.md).
    """
    with progress_shown() as progress:
        file = check_fvps(name, progress)
    with disk_errors("writing the file"):
        write_whole(output, json.dumps(asdict(file), indent=1) + "\n")
    for each in file.fvps:
        whose = " (stand-in)" if each.stand_in else ""
        echo(f"{each.name}{whose}: {len(each.parameters)} parameters")
        for run in each.runs:
            seconds = "" if run.ending is None else f" in {run.ending.seconds:.1f} s"
            why = f": {run.cause}: {run.text}" if run.cause else ""
            again = "" if run.replay()[0] is run.verdict else " (the file alone shows less)"
            echo(f"  {run.target}/{run.model}: {run.verdict}{seconds}{why}{again}")
    echo(f"wrote {output}")
    verdicts = (run.verdict for each in file.fvps for run in each.runs)
    return {"file": str(output), **asdict(file)}, exit_code(verdicts)
