"""``hil bundle`` and ``replay``: options and help; the work is done elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli.progress import progress_shown
from harness.cli.verb import echo, limit_factor_option, require_confinement_option, verb
from harness.errors.verdict import ExitCode

_MIB = 1 << 20


@click.command()
@click.argument("run_dir", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write it (default: the run's name with .tar.zst, in the current directory).",
)
@click.option(
    "--keep-paths",
    is_flag=True,
    help="Leave paths of this machine, the user's and the host's name in it, where they are.",
)
@verb
def bundle(
    run_dir: Path, out: Path | None, keep_paths: bool, as_json: bool
) -> tuple[Any, ExitCode]:
    """Make one file of a run, to run it again elsewhere with `hil replay`.

    It holds program, firmware, inputs, expectations, outputs, console, record and repro.sh. Two
    bundles of one run have the same bytes. Nothing of this machine is in it: paths lose their
    folders, and a run that cannot be freed of them is refused.

    \b
    Examples:
      hil bundle .hil/runs/20260101-120000-ds_cnn-1a2b3c
      hil bundle .hil/runs/20260101-120000-ds_cnn-1a2b3c -o bug-17.tar.zst
    """
    from harness.bundle.pack import pack

    made = pack(run_dir, out or Path(f"{run_dir.absolute().name}.tar.zst"), keep_paths=keep_paths)
    if not as_json:
        echo(f"{made.path}: {made.manifest.case}, {made.manifest.verdict} on "
             f"{made.manifest.simulator}, {made.bytes} bytes")  # fmt: skip
    return {
        "bundle": str(made.path),
        "bytes": made.bytes,
        "case": made.manifest.case,
        "verdict": made.manifest.verdict,
        "simulator": made.manifest.simulator,
        "files": {name: vars(content) for name, content in made.manifest.files.items()},
    }, ExitCode.PASSED


@click.command()
@click.argument("bundle_file", metavar="BUNDLE", type=click.Path(exists=True, path_type=Path))
@click.option("--any-version", is_flag=True, help="Run it on another version of its simulator.")
@click.option(
    "--bundled-target",
    is_flag=True,
    help="Take the bundle's own description of its target, when it is unknown or another one here.",
)
@click.option(
    "--most-mib",
    type=click.IntRange(1, 1 << 20),
    default=1024,
    show_default=True,
    help="The most that it may unpack to.",
)
@limit_factor_option
@require_confinement_option
@verb
def replay(
    bundle_file: Path, any_version: bool, bundled_target: bool, most_mib: int,
    limit_factor: float | None, require_confinement: bool | None, as_json: bool,
) -> tuple[Any, ExitCode]:  # fmt: skip
    """Run what is in BUNDLE again, here, and compare verdict, outputs and figures.

    BUNDLE is a file of `hil bundle`, or the folder that it was unpacked to. It is taken to be a
    stranger's: its program is confined as every guest is, and where that cannot be had it is not
    run, unless you say --no-require-confinement.

    Ends with 0 only for a PASS that is the same here; a failure that is reproduced is one (1).

    \b
    Examples:
      hil replay bug-17.tar.zst
      hil replay bug-17.tar.zst --any-version --json
    """
    from harness.bundle.replay import ReplayOptions
    from harness.bundle.replay import replay as run_again

    options = ReplayOptions(
        any_version=any_version,
        bundled_target=bundled_target,
        most=most_mib * _MIB,
        limit_factor=limit_factor,
        require_confinement=True if require_confinement is None else require_confinement,
    )
    with progress_shown(as_json) as progress:
        found = run_again(bundle_file, options, progress)
    if not as_json:
        from harness.report.console import Terminal
        from harness.report.replay import print_replay

        print_replay(Terminal(), found)
    return found.summary(), found.exit_code
