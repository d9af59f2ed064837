"""``hil bundle``, ``replay`` and ``bisect``: a failure is run elsewhere, or its commit found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli.options import (
    exporter_option,
    limit_factor_option,
    part_option,
    simulator_option,
    tolerance_option,
)
from harness.cli.verb import EXISTING, FILE, PATH, Answer, echo, progress_shown, terminal, verb
from harness.config.case import Case
from harness.core.errors import UsageError
from harness.core.verdict import ExitCode, Verdict
from harness.firmware.choice import choose
from harness.report.terminal import print_bisection, print_replay
from harness.run import bisect as run_bisect
from harness.run.bundle import pack
from harness.run.bundle import replay as run_again
from harness.run.pipeline import RunOptions


@click.command()
@click.argument("run_dir", type=PATH)
@click.option(
    "-o",
    "out",
    type=FILE,
    help="Where to write it (default: the run's name with .tar.zst, in the current directory).",
)
@verb
def bundle(run_dir: Path, out: Path | None) -> Answer:
    """Pack a run into one file, to run it again elsewhere with `hil replay`.

    It holds program, firmware, inputs, expected outputs, outputs, console, record and repro.sh.
    Two bundles of one run have the same bytes. Folders of this machine are removed from its
    text files; a binary file that names one is listed.

    \b
    Examples:
      hil bundle .hil/runs/20260101-120000-ds_cnn-1a2b3c
      hil bundle .hil/runs/20260101-120000-ds_cnn-1a2b3c -o bug-17.tar.zst
    """
    path = out or Path(f"{run_dir.absolute().name}.tar.zst")
    manifest = pack(run_dir, path)
    echo(f"{path}: {manifest['run']}, {path.stat().st_size} bytes")
    for name in manifest["naming"]:
        echo(f"hil: {name} in it names a folder of this machine", err=True)
    return {"bundle": str(path), **manifest}, ExitCode.PASSED


@click.command()
@click.argument("bundle_file", metavar="BUNDLE", type=EXISTING)
@click.option(
    "--target-from-bundle",
    is_flag=True,
    help="Use the bundle's own description of its target if it is unknown or another one here.",
)
@limit_factor_option
@click.option(
    "--no-require-confinement",
    "trusted",
    is_flag=True,
    help="Run it also where it cannot be wholly confined: only a bundle you trust.",
)
@verb
def replay(bundle_file: Path, trusted: bool, **options: Any) -> Answer:
    """Run BUNDLE again here and compare verdict, outputs and figures.

    BUNDLE is a file made by `hil bundle`. It is treated as hostile: its program is confined as
    every guest is, and not run where that is not possible, unless you say
    --no-require-confinement. The answer names the versions of the simulator there and here.

    Ends with 0 only for a PASS that is the same here; a failure that is reproduced ends with 1.

    \b
    Examples:
      hil replay bug-17.tar.zst
      hil replay bug-17.tar.zst --json
    """
    with progress_shown() as progress:
        replayed = run_again(bundle_file, progress, require_confinement=not trusted, **options)
    print_replay(terminal(), replayed)
    return replayed.summary(), replayed.exit_code


@click.command()
@click.argument("target")
@click.argument("model")
@click.option("--good", metavar="REV", help="An older revision that passes.")
@click.option("--bad", metavar="REV", help="One that fails.  [default: HEAD]")
@click.option(
    "--fixed",
    is_flag=True,
    help="Find the commit that fixed it: --bad is the older revision, --good the newer one "
    "(default: HEAD).",
)
@exporter_option
@click.option(
    "-C",
    "--executorch",
    type=PATH,
    metavar="DIR",
    help="Your checkout of ExecuTorch; default: as for `hil run --firmware executorch`.",
)
@part_option
@click.option(
    "--count-bad",
    multiple=True,
    type=click.Choice([verdict.value for verdict in run_bisect.UNDECIDED]),
    help="Count a revision that ends so as bad, not as skipped; may be repeated.",
)
@simulator_option
@tolerance_option
@limit_factor_option
@verb
def bisect(
    target: str,
    model: str,
    good: str | None,
    bad: str | None,
    fixed: bool,
    executorch: Path | None,
    parts: tuple[str, ...],
    count_bad: tuple[str, ...],
    **options: Any,
) -> Answer:
    """Find the commit of a checkout from which on MODEL fails on TARGET.

    Steps through `git bisect`: each revision is built and run as `hil run --executorch` does. PASS
    is good, a failure of the product is bad, and INFRA or a failed build is skipped. --good and
    --bad are run first. Hundreds of revisions take about
    ten runs.

    It works in a git worktree of its own, in the state directory (`git worktree list` shows it).
    Your files, HEAD, index, stash and your own bisect are not touched. The worktree stays, so
    that the next bisect only builds what differs.

    \b
    Examples:
      hil bisect corstone-300-m55 ds_cnn --good v1.4.1 --bad HEAD -C ~/executorch
      hil bisect corstone-300-m55 ds_cnn --good v1.4.1 -C ~/executorch --exporter checkout
      hil bisect corstone-300-u55-128 resnet8 --good HEAD~40 -C ~/executorch --count-bad LINK_ERROR
      hil bisect corstone-300-m55 ds_cnn --fixed --bad v1.4.1 -C ~/executorch
    """
    if (older := bad if fixed else good) is None:
        name = "--bad" if fixed else "--good"
        raise UsageError(f"the older end is missing: {name} REV")
    good, bad = (good or "HEAD", older) if fixed else (older, bad or "HEAD")
    case = Case(target, model)
    counted_bad = frozenset(Verdict[name] for name in count_bad)
    run_options = RunOptions(firmware=choose("executorch", executorch, parts), **options)
    with progress_shown() as progress:
        bisection = run_bisect.bisect(
            case, good, bad, run_options, counted_bad=counted_bad, fixed=fixed, progress=progress
        )
    print_bisection(terminal(), bisection)
    code = ExitCode.FAILED if bisection.first is None else ExitCode.PASSED
    return {"case": case.id, **bisection.summary()}, code
