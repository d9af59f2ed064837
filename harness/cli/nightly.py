"""``hil nightly``: options and help."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.history import (
    DefaultGroup,
    history_option,
    html_option,
    junit_option,
    known_night,
    opened,
    packages_of,
    show_night,
)
from harness.cli.options import executorch_option, limit_factor_option, part_option
from harness.cli.verb import (
    EXISTING,
    FILE,
    FOLDER,
    PATH,
    Answer,
    echo,
    print_failure,
    progress_shown,
    verb,
)
from harness.core.errors import InfraError, UsageError
from harness.core.verdict import ExitCode, exit_code
from harness.firmware.choice import FirmwareChoice, choose, named_root
from harness.firmware.names import firmware_words
from harness.firmware.source import source_named
from harness.nightly.history.compare import compare
from harness.nightly.history.repository import base_branch, origin_of
from harness.nightly.pool import LocalPool, Pool
from harness.nightly.suite import FollowUp, NightSuite, default_suite, load_suite, parse_shard
from harness.report.notify import announce
from harness.report.page.render import write_index
from harness.run.pipeline import RunOptions
from harness.system.progress import Progress
from harness.system.settings import place, settings

if TYPE_CHECKING:
    from harness.nightly.history.database import Recorder
    from harness.nightly.history.nights import Night, Row
    from harness.nightly.history.store import History


@click.group(cls=DefaultGroup, default="run")
def nightly() -> None:
    """Run a suite of cases, keep the results, and report what is new since the last night.

    \b
    Examples:
      hil nightly                        the default matrix
      hil nightly suite.yaml
      hil nightly suite.yaml --resume    after a kill: finished cases are not run again
      hil nightly suite.yaml --shard 1/4 --night $GITHUB_RUN_ID
      hil nightly suite.yaml --scheduler tcp://farm:8786 --store /mnt/farm/hil
      hil nightly merge shard-1 shard-2 shard-3 shard-4
      hil nightly page -o night.html     the last night, to look at
      hil nightly page --index pages     all nights: which case failed when

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
class NightOptions:
    """The options of the command line, except the history, the page's files and ``--json``."""

    suite: Path | None
    jobs: int | None
    scheduler: str | None
    store: str | None
    shard: str
    night: str | None
    resume: bool
    base: str | None
    firmware: str | None
    executorch: Path | None
    parts: tuple[str, ...]
    bundles: Path | None
    limit_factor: float | None

    def validate(self) -> None:
        """Raise UsageError for options that contradict each other, before any work."""
        if self.suite is not None and self.firmware is not None:
            raise UsageError("--firmware is for the default matrix; the suite names its own")
        if self.resume and self.night is not None:
            raise UsageError("--resume and --night both name the night to continue")
        if self.scheduler is not None and self.jobs is not None:
            raise UsageError(
                "--jobs is for this machine, and --scheduler has workers of its own",
                hint="leave one of the two out",
            )
        if self.scheduler is not None and self.shared_store() is None:
            raise UsageError(
                "--scheduler needs a store, through which its workers share programs and firmware",
                hint='name one with --store URL, or with store = "URL" under [tool.hil]',
            )

    def shared_store(self) -> str | None:
        """``--store``, else that of the settings; a folder by its absolute path."""
        return settings().store if self.store is None else place(Path.cwd(), self.store)

    def run_options(self, suite: NightSuite) -> RunOptions:
        """Find the checkout that the suite's cases need, before any work starts."""
        choice = FirmwareChoice()
        names = {name for job in suite.jobs for name in job.sources}
        if any(source_named(name).needs_checkout for name in names):
            choice = choose("both", self.executorch, self.parts)
            choice.checkout()
        return RunOptions(limit_factor=self.limit_factor, firmware=choice)

    def pool(self, suite: NightSuite, progress: Progress) -> Pool:
        """Return the workers, after a look at the store. Raises what is wrong with either."""
        store = self.shared_store()
        if store is not None:
            from harness.nightly.store import Store

            Store(store).require()
        if self.scheduler is None or store is None:
            return LocalPool(self.jobs or len(os.sched_getaffinity(0)), store)
        with packages_of("--scheduler"):
            from harness.nightly.dask_pool import DaskPool
        pool = DaskPool(self.scheduler, store, suite.jobs, progress)
        progress(f"{pool.workers} workers at {self.scheduler}")
        return pool


@nightly.command("run")
@click.argument("suite", required=False, type=PATH, metavar="[SUITE.yaml]")
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(1, 256),
    help="Worker processes (default: one for each core).",
)
@click.option(
    "--scheduler",
    metavar="URL",
    help="Run the cases on the workers of this scheduler "
    "of dask.distributed, as tcp://host:8786; needs a store.",
)
@click.option(
    "--store",
    metavar="URL",
    help="Where programs and firmware are shared with other machines: a folder that all of them "
    "see, or a bucket as s3://BUCKET/FOLDER (default: store of the settings, else none).",
)
@click.option(
    "--shard",
    "shard",
    default="1/1",
    metavar="i/n",
    help="Run the i-th of n parts, which are of equal length by the history's times.",
)
@click.option(
    "--night",
    metavar="ID",
    help="The id of the night, the same for all its shards; one that the history has is "
    "continued (default: a new one).",
)
@click.option(
    "--resume", is_flag=True, help="Continue the last night of this suite that did not end."
)
@click.option(
    "--base",
    metavar="BRANCH",
    help="Compare with the last night of this branch that this one started from (default: with "
    "that of this branch; of a pull request in CI, with its target).",
)
@history_option
@click.option(
    "--firmware",
    type=click.Choice(firmware_words()),
    help="The firmware to test, if there is no SUITE to say it (default: bundled).",
)
@executorch_option
@part_option
@click.option(
    "--bundles",
    type=FOLDER,
    metavar="DIR",
    help="Write a bundle of each failure there, as `hil bundle` does.",
)
@limit_factor_option
@html_option
@junit_option
@verb
def run_(url: str | None, html: Path | None, junit: Path | None, **words: Any) -> Answer:
    """Run SUITE.yaml, or without one the default matrix.

    Each result is in the history as soon as it is known. INFRA is tried once more, and both tries
    are kept. A failure in quarantine does not count until its last day is over.

    \b
    On other machines with the same harness, the suite's files at the same place, and a folder
    (NFS) or bucket that all of them see:
      dask scheduler
      dask worker tcp://farm:8786 --nthreads 1     on each, once for each core
      hil nightly suite.yaml --scheduler tcp://farm:8786 --store /mnt/farm/hil
    """
    options = NightOptions(**words)
    options.validate()
    today = datetime.now(timezone.utc).date()
    if options.suite is None:
        suite, folder = default_suite(options.firmware or "bundled"), Path.cwd()
    else:
        suite, folder = load_suite(options.suite, today), options.suite.absolute().parent
    run_options, shard = options.run_options(suite), parse_shard(options.shard)
    if shard.count > 1 and not (options.night or options.resume):
        raise UsageError("--shard needs the --night that it is of, the same for all shards")
    base = base_branch(os.environ) if options.base is None else options.base
    origin = origin_of(folder, os.environ)
    rows: list[Row] = []
    with opened(url) as history, progress_shown() as progress:
        from harness.nightly.history.database import Recorder
        from harness.nightly.night import NightRequest, begin, culprits, run_night, unfinished

        request = NightRequest(shard, options.night, options.resume, folder, origin, base)
        left = unfinished(suite, history, origin)
        if left is not None and not options.resume and left.id != options.night:
            echo(f"hil: the night {left.id} did not end; --resume continues it", err=True)
        for quarantine in suite.expired:
            progress(f"a quarantine is over: {quarantine}")
        recorder, pool = Recorder(history), options.pool(suite, progress)
        try:
            night = begin(suite, history, request)
            mine = {planned.case for planned in night.of_shard(shard.number)}
            progress(f"night {night.id}: {suite.name}, {len(mine)} cases")
            on_row = partial(_print_row, rows)
            run_night(suite, night, shard, run_options, pool, recorder, on_row)
        finally:
            pool.close()
        if recorder.error is not None:
            summary, code = _undelivered(night, recorder, rows)
        else:
            only = mine if shard.count > 1 else None  # removed cases belong to no shard
            minutes = suite.follow_up.minutes if rows else 0.0
            root = named_root(options.executorch) if minutes else None
            if root is not None:  # the commits of the first new failures
                firmware = choose("executorch", root, options.parts)
                new = compare(history, night, mine)
                history.blame(night.id, dict(culprits(new, firmware, minutes, progress)))
            summary, code = show_night(history, night, html, junit, only=only)
            if rows and only is None:
                code = _notify(history, night, suite.follow_up, code)
    return {**summary, **_bundled(rows, options.bundles)}, code


def _notify(history: History, night: Night, follow_up: FollowUp, code: ExitCode) -> ExitCode:
    """One message, and GitHub's issues: of a night that has ended, and of no pull request.

    Where they do not arrive, a night in which all passed is not green."""
    comparison = compare(history, night)
    if night.origin.pull_request or not comparison.ended or not follow_up.tells:
        return code
    try:
        with packages_of("notify:"):
            for line in announce(comparison, follow_up, os.environ):
                echo(f"hil: {line}", err=True)
    except InfraError as error:
        print_failure(error, as_json=False)
        return code or ExitCode.INFRASTRUCTURE
    return code


def _bundled(rows: list[Row], folder: Path | None) -> dict[str, list[str]]:
    """Bundles of what failed now, not of what was judged before a kill."""
    if folder is None:
        return {}
    from harness.nightly.night import pack_failures

    made: list[str] = []
    for case, bundle in pack_failures(rows, folder):
        if isinstance(bundle, Path):
            made.append(str(bundle))
        else:
            echo(f"hil: no bundle of {case}: {bundle}", err=True)
    return {"bundles": made}


def _print_row(rows: list[Row], row: Row, done: int, total: int) -> None:
    """And keeps it in ``rows``."""
    rows.append(row)
    why = "" if row.cause is None else f" {row.cause.kind}"
    again = "" if row.settled else "; once more"
    seconds = row.seconds.get("total", 0.0)
    line = f"{done}/{total} {row.case}: {row.verdict}{why} ({seconds:.1f} s){again}"
    echo(f"hil: {line}", err=True)


def _undelivered(night: Night, recorder: Recorder, rows: list[Row]) -> Answer:
    """Warn that the database was gone at the end: nothing is lost, and nothing can be compared."""
    assert recorder.error is not None
    echo(f"hil: error: {recorder.error.message}", err=True, fg="red")
    echo(
        f"hil: {recorder.waiting()} results wait in {recorder.outbox}; the next `hil nightly` or "
        "`hil history` with this database delivers them",
        err=True,
    )
    summary = {
        "night": night.id,
        "waiting": str(recorder.outbox),
        "cases": [{"case": r.case, "verdict": r.verdict, "attempt": r.attempt} for r in rows],
    }
    code = exit_code(row.verdict for row in rows)
    return summary, ExitCode.INFRASTRUCTURE if code is ExitCode.PASSED else code


@nightly.command("merge")
@click.argument("folders", nargs=-1, required=True, type=EXISTING, metavar="DIR...")
@history_option
@html_option
@junit_option
@verb
def merge_(
    folders: tuple[Path, ...], url: str | None, html: Path | None, junit: Path | None
) -> Answer:
    """Make one night of shards that ran on machines of their own.

    DIR is the state directory of a shard, or a folder with one, or with the SQLite file that
    `hil history copy --to` wrote. A shard that is missing or did not end, and a case that more than
    one has run, are failures of the infrastructure.

    \b
    Example:
      hil nightly merge shard-1/.hil shard-2/.hil --history sqlite:///night.db
    """
    with opened(url) as history:
        from harness.nightly.night import merge

        night, missing, doubled = merge(folders, history)
        summary, code = show_night(history, night, html, junit)
    for shard in missing:
        echo(f"hil: shard {shard} is missing, or did not end", err=True, fg="red")
    for case in doubled:
        echo(f"hil: {case}: more than one shard ran it; the first is kept", err=True, fg="red")
    if (missing or doubled) and code is ExitCode.PASSED:
        code = ExitCode.INFRASTRUCTURE
    shards = {"missing_shards": list(map(str, missing)), "doubled_cases": doubled}
    return {**summary, **shards}, code


@nightly.command("page")
@click.argument("night", required=False, metavar="[NIGHT]")
@click.option(
    "-o",
    "out",
    type=FILE,
    help="Where to write it (default: night.html; with --index or --tell not at all).",
)
@click.option(
    "--index",
    type=FOLDER,
    metavar="DIR",
    help="Write DIR/index.html, a table of the last 30 nights that the night is compared with, "
    "every case in each of them, and the page of the night next to it. Its links lead to the pages "
    "that are in DIR: keep DIR, and publish it as it is, with GitHub Pages or any server of files.",
)
@click.option(
    "--tell",
    type=PATH,
    metavar="SUITE.yaml",
    help="Send the message of the night, and bring GitHub's issues up to date, as `notify:` and "
    "`issues:` of SUITE.yaml say. `hil nightly SUITE.yaml` does it at its end; a night of several "
    "shards wants it after they are together.",
)
@junit_option
@history_option
@verb
def page_(
    night: str | None,
    out: Path | None,
    index: Path | None,
    tell: Path | None,
    junit: Path | None,
    url: str | None,
) -> Answer:
    """Write a night as one HTML page: what broke, since when, what changed, how to see it.

    NIGHT is an id (default: the newest). The page needs no network and no other file, so that it
    can be opened from a disk or kept as an artefact of CI. GitHub Actions also gets
    a summary of the step and annotations.

    \b
    Examples:
      hil nightly page
      hil nightly page 20260101-020000-1a2b3c -o night.html
      hil nightly page --index pages
      hil nightly page --tell suite.yaml
    """
    follow_up = None if tell is None else _follow_up_of(tell)
    if index is None and follow_up is None and out is None:
        out = Path("night.html")
    code, pages = ExitCode.PASSED, [out] if out is not None else []
    with opened(url) as history:
        night_ = known_night(history, night)
        summary: dict[str, Any] = {"night": night_.id}
        if out is not None or junit is not None:
            summary, _ = show_night(history, night_, out, junit)
        if index is not None:
            pages.append(write_index(history, night_, index))
        if follow_up is not None:
            code = _notify(history, night_, follow_up, code)
    for page in pages:
        echo(str(page))
    return {**summary, "page": str(pages[0]) if pages else None}, code


def _follow_up_of(suite: Path) -> FollowUp:
    follow_up = load_suite(suite, datetime.now(timezone.utc).date()).follow_up
    if not follow_up.tells:
        raise UsageError(f"{suite} has neither notify: nor issues:", hint="name a service there")
    return follow_up
