"""``hil nightly``: options and help; the work is done elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.build.source import FIRMWARE
from harness.cli.history_options import DefaultGroup, NoPackage, history_option, opened
from harness.cli.page import Surfaces, page, surface_options
from harness.cli.progress import progress_shown
from harness.cli.verb import (
    echo,
    fvp_missing_option,
    limit_factor_option,
    require_confinement_option,
    verb,
)
from harness.errors.verdict import ExitCode

if TYPE_CHECKING:
    from harness.build.choice import FirmwareChoice
    from harness.history.model import Night, Row
    from harness.history.store import Database
    from harness.nightly.plan import Shard
    from harness.nightly.pool import Pool
    from harness.nightly.suite import Suite
    from harness.run.pipeline import RunOptions
    from harness.system.progress import Progress


class _Nightly(DefaultGroup):
    default = "run"


@click.group(cls=_Nightly)
def nightly() -> None:
    """Run a suite of cases, keep what came out, and say what is new since the last night.

    \b
    Examples:
      hil nightly                        the default matrix
      hil nightly suite.yaml
      hil nightly suite.yaml --resume    after a kill: what was judged is not run again
      hil nightly suite.yaml --shard 1/4 --night $GITHUB_RUN_ID
      hil nightly suite.yaml --scheduler tcp://farm:8786 --store sftp://hil@farm/srv/hil
      hil nightly merge shard-1 shard-2 shard-3 shard-4
      hil nightly page -o night.html     the last night, to look at

    The suite is YAML; docs/nightly.md has all of it:

    \b
      owner: ml-embedded
      cases:
        - targets: [corstone-300-m55, corstone-300-u55-128]
          models: [ds_cnn, resnet8]
          memory_modes: all
      exclude:
        - {case: "*/resnet8", reason: "too slow on QEMU"}
      quarantine:
        - {case: "corstone-300-m55/ds_cnn", reason: "bug 1234", until: "2027-01-31"}
    """


@dataclass(frozen=True)
class _Asked:
    """Of the command line."""

    shard: Shard
    night: str | None
    resume: bool
    jobs: int | None
    scheduler: str | None
    store: str | None
    options: RunOptions
    surfaces: Surfaces
    bundles: Path | None


@nightly.command("run")
@click.argument("suite", required=False, type=click.Path(path_type=Path), metavar="[SUITE.yaml]")
@click.option("-j", "--jobs", type=click.IntRange(1, 256), help="Worker processes (default: one "
              "for each core).")  # fmt: skip
@click.option("--scheduler", metavar="URL", help="Run the cases on the workers of this scheduler "
              "of dask.distributed, as tcp://host:8786; needs a store.")  # fmt: skip
@click.option("--store", metavar="URL", help="Where programs and firmware are shared with other "
              "machines: a folder, sftp://USER@HOST/FOLDER, s3://BUCKET/FOLDER (default: store of "
              "the settings, else none).")  # fmt: skip
@click.option("--shard", "shard", default="1/1", metavar="i/n", help="Run the i-th of n parts, "
              "which are of equal length by the history's times.")  # fmt: skip
@click.option("--night", metavar="ID", help="The id of the night, the same for all its shards; one "
              "that the history has is gone on with (default: a new one).")  # fmt: skip
@click.option("--resume", is_flag=True, help="Go on with the last night of this suite that did not "
              "end.")  # fmt: skip
@history_option
@click.option(
    "--firmware",
    type=click.Choice(list(FIRMWARE)),
    help="Whose firmware, without a SUITE, which says so itself (default: bundled).",
)
@click.option(
    "--executorch",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The checkout of ExecuTorch whose firmware the suite asks for, as for `hil run`.",
)
@click.option(
    "--part",
    "parts",
    multiple=True,
    metavar="NAME=DIR",
    help="As for `hil run`: where a part of the checkout's build is.",
)
@click.option("--bundles", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Write a bundle of each failure there, as `hil bundle` does.")  # fmt: skip
@limit_factor_option
@fvp_missing_option
@require_confinement_option
@verb
@surface_options
def run_(
    suite: Path | None, jobs: int | None, scheduler: str | None, store: str | None, shard: str,
    night: str | None, resume: bool, url: str | None, firmware: str | None,
    executorch: Path | None, parts: tuple[str, ...], bundles: Path | None,
    limit_factor: float | None, fvp_missing: str | None, require_confinement: bool | None,
    surfaces: Surfaces, as_json: bool,
) -> tuple[Any, ExitCode]:  # fmt: skip
    """Run SUITE.yaml, or without one the default matrix.

    Each result is in the history as soon as it is known. INFRA is tried once more, and both tries
    are kept. A failure in quarantine does not count until its last day is over.

    \b
    On other machines, with the same harness and the files that the suite names at the same place:
      dask scheduler
      dask worker tcp://farm:8786 --nthreads 1     on each, as often as it has cores
      hil nightly suite.yaml --scheduler tcp://farm:8786 --store sftp://hil@farm/srv/hil
    """
    from harness.errors import UsageError
    from harness.nightly.plan import parse_shard
    from harness.nightly.suite import default_suite, load_suite
    from harness.run.pipeline import RunOptions
    from harness.simulate.pick import missing_policy

    if suite is not None and firmware is not None:
        raise UsageError("--firmware is for the default matrix; the suite names its own")
    if resume and night is not None:
        raise UsageError("--resume and --night both say which night to go on with")
    if scheduler is not None and jobs is not None:
        raise UsageError(
            "--jobs is for this machine, and --scheduler has workers of its own",
            hint="leave one of the two out",
        )
    shared = _store(store)
    if scheduler is not None and shared is None:
        raise UsageError(
            "--scheduler needs a store, by which its workers share programs and firmware",
            hint='name one with --store URL, or with store = "URL" under [tool.hil]',
        )
    today = datetime.now(timezone.utc).date()
    wanted = default_suite(firmware or "bundled") if suite is None else load_suite(suite, today)
    options = RunOptions(
        limit_factor=limit_factor,
        fvp_missing=fvp_missing or missing_policy(),
        require_confinement=require_confinement,
        firmware=_firmware(wanted, executorch, parts),
    )
    asked = _Asked(
        parse_shard(shard), night, resume, jobs, scheduler, shared, options, surfaces, bundles
    )
    with opened(url) as history, progress_shown(as_json) as progress:
        return _run(wanted, asked, history, progress, as_json=as_json)


def _firmware(suite: Suite, executorch: Path | None, parts: tuple[str, ...]) -> FirmwareChoice:
    """With the checkout that the suite's cases need, looked at before any work."""
    from harness.build.choice import BUNDLED, choose
    from harness.build.source import FirmwareSource

    if not any(FirmwareSource.EXECUTORCH in job.sources for job in suite.jobs):
        return BUNDLED
    choice = choose("both", executorch, parts)
    choice.checkout()
    return choice


def _store(said: str | None) -> str | None:
    """As the command line has it, else the settings; a folder by its whole path."""
    from harness.system.settings import place, settings

    return settings().store if said is None else place(Path.cwd(), said)


def _pool(suite: Suite, asked: _Asked, progress: Progress) -> Pool:
    """Whoever does the work, with the store looked at first. Raises what is wrong with either."""
    from harness.nightly.night import workers
    from harness.nightly.pool import LocalPool

    if asked.store is not None:
        from harness.nightly.store import Store

        Store(asked.store).require()
    if asked.scheduler is None:
        return LocalPool(workers(asked.jobs), asked.store)
    try:
        from harness.nightly.dask_pool import Cluster, DaskPool
    except ModuleNotFoundError as error:
        raise NoPackage("--scheduler", error.name) from error
    from harness.run.identity import exact_revision

    assert asked.store is not None, "it was asked for"
    cluster = Cluster(asked.scheduler, asked.store)
    pool = DaskPool(cluster, exact_revision(), suite.jobs, progress)
    progress(f"{pool.workers} workers at {asked.scheduler}")
    return pool


def _run(
    suite: Suite, asked: _Asked, history: Database, progress: Progress, *, as_json: bool
) -> tuple[Any, ExitCode]:
    from harness.errors.verdict import exit_code
    from harness.history.compare import code_of, standings
    from harness.nightly.night import Wanted, begin, run_night, unfinished
    from harness.nightly.spool import Deliverer, Spool

    left = unfinished(suite, history)
    if left is not None and not asked.resume and left.id != asked.night and not as_json:
        echo(f"hil: the night {left.id} did not end; --resume goes on with it", err=True)
    deliverer = Deliverer(history, Spool(history.url))
    for one in suite.expired:
        progress(f"a quarantine is over: {one}")
    rows: list[Row] = []
    on_row = _telling(rows, quiet=as_json)
    pool = _pool(suite, asked, progress)
    try:
        night = begin(suite, history, Wanted(asked.shard, asked.night, asked.resume))
        count = len(night.of_shard(asked.shard.number))
        progress(f"night {night.id}: {suite.name}, {count} cases")
        run_night(suite, night, asked.shard, asked.options, pool, deliverer, on_row)
    finally:
        pool.close()
    if deliverer.why is not None:
        code = exit_code(row.verdict for row in rows)
        summary, code = _undelivered(night, deliverer, rows, code, as_json)
        return {**summary, **_bundled(rows, asked.bundles, as_json)}, code
    mine = {one.case for one in night.of_shard(asked.shard.number)}
    found = [one for one in standings(history, night) if one.case in mine]
    asked.surfaces.show(history, night, mine, as_json=as_json)
    summary = _shown(night, found, as_json)
    return {**summary, **_bundled(rows, asked.bundles, as_json)}, code_of(found)


def _bundled(rows: list[Row], folder: Path | None, as_json: bool) -> dict[str, list[str]]:
    """Of what failed now, not of what was judged before a kill."""
    if folder is None:
        return {}
    from harness.bundle.failures import pack_failures

    made: list[str] = []
    for one in pack_failures(rows, folder):
        if one.path is not None:
            made.append(str(one.path))
        elif not as_json:
            echo(f"hil: no bundle of {one.case}: {one.why}", err=True)
    return {"bundles": made}


def _telling(rows: list[Row], *, quiet: bool) -> Callable[[Row, int, int], None]:
    """A line for each row, which stays, at a terminal and in a log; and what is wrong with the
    store, which costs time and no case, once."""
    from harness.nightly.work import OfStore

    told: set[str] = set()

    def tell(row: Row, done: int, total: int) -> None:
        rows.append(row)
        if quiet:
            return
        for note in row.notes:
            if isinstance(note, OfStore) and note not in told:
                told.add(note)
                echo(f"hil: {note}; what it lacks is made where it is needed", err=True)
        why = "" if row.cause is None else f" {row.cause.kind}"
        again = "" if row.settled else "; once more"
        seconds = row.seconds.get("total", 0.0)
        said = f"{done}/{total} {row.case}: {row.verdict}{why} ({seconds:.1f} s){again}"
        echo(f"hil: {said}", err=True)

    return tell


def _undelivered(
    night: Night, deliverer: Any, rows: list[Row], code: ExitCode, as_json: bool
) -> tuple[Any, ExitCode]:
    """The database was gone at the end: nothing is lost, and nobody can compare."""
    spool, error = deliverer.spool, deliverer.why
    if not as_json:
        echo(f"hil: error: {error.message}", err=True, fg="red")
        echo(f"hil: {spool.waiting()} results wait in {spool.file}; the next `hil nightly` or "
             f"`hil history` with this database delivers them", err=True)  # fmt: skip
    summary = {
        "night": night.id,
        "waiting": str(spool.file),
        "cases": [{"case": r.case, "verdict": r.verdict, "attempt": r.attempt} for r in rows],
    }
    return summary, ExitCode.INFRASTRUCTURE if code is ExitCode.PASSED else code


def _shown(night: Night, found: list[Any], as_json: bool) -> dict[str, Any]:
    from harness.report.nightly import print_night, summary_of

    if not as_json:
        from harness.report.console import Terminal

        print_night(Terminal(), night, found)
    return summary_of(night, found)


@nightly.command("merge")
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path),
                metavar="DIR...")  # fmt: skip
@history_option
@verb
@surface_options
def merge_(
    folders: tuple[Path, ...], url: str | None, surfaces: Surfaces, as_json: bool
) -> tuple[Any, ExitCode]:
    """Make one night of shards that ran on machines of their own.

    DIR is the state directory of a shard, or a folder with one, or with the JSON lines that
    `hil history export` wrote. A shard that is missing or did not end is the infrastructure's
    failure.

    \b
    Example:
      hil nightly merge shard-1/.hil shard-2/.hil --history sqlite:///night.db
    """
    with opened(url) as history:
        from harness.history.compare import code_of, standings
        from harness.nightly.merge import merge

        merged = merge(folders, history)
        found = standings(history, merged.night)
        summary = _shown(merged.night, found, as_json)
        surfaces.show(history, merged.night, as_json=as_json)
    if not as_json:
        for shard in merged.missing:
            echo(f"hil: the shard {shard} is not there, or did not end", err=True, fg="red")
        for case in merged.doubled:
            echo(f"hil: {case} was run by more than one shard; the first is kept", err=True)
    code = code_of(found)
    if merged.missing and code is ExitCode.PASSED:
        code = ExitCode.INFRASTRUCTURE
    missing = [str(shard) for shard in merged.missing]
    return {**summary, "missing_shards": missing, "doubled": list(merged.doubled)}, code


nightly.add_command(page)
