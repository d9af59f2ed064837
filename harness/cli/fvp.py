"""``hil fvp``: for who has one of Arm's FVPs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from harness.cli.progress import progress_shown
from harness.cli.verb import FILE, Answer, echo, verb
from harness.core.verdict import exit_code
from harness.run.fvp_check import check_fvps, verdicts, write_fvp_file
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
        write_whole(output, write_fvp_file(file))
    for each in file.fvps:
        whose = " (stand-in)" if each.stand_in else ""
        echo(f"{each.name}{whose}: {len(each.parameters)} parameters")
        for run in each.runs:
            seconds = "" if run.ending is None else f" in {run.ending.seconds:.1f} s"
            why = f": {run.cause}: {run.text}" if run.cause else ""
            echo(f"  {run.target}/{run.model}: {run.verdict}{seconds}{why}")
    echo(f"wrote {output}")
    return {"file": str(output), **asdict(file)}, exit_code(verdicts(file))
