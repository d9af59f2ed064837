"""``hil prune``: options and help; the work is done elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from typing import Any

import click

from harness.cli.history_options import history_option, opened
from harness.cli.verb import echo, verb
from harness.core.verdict import ExitCode
from harness.system.settings import BYTES, SECONDS, quantity

_MIB = 1 << 20


def _quantity(units: Mapping[str, float]) -> Callable[..., float | None]:
    """Of an option: a number with one of these units."""

    def read(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
        number = None if value is None else quantity(value, units)
        if value is not None and number is None:
            message = f"{value!r} is not a number with one of the units {', '.join(units)}."
            raise click.BadParameter(message, ctx, param)
        return number

    return read


@click.command()
@click.option(
    "--cache-max",
    callback=_quantity(BYTES),
    metavar="SIZE",
    help="Bring what can be made again below this (default: cache_max of the settings, 10GiB).",
)
@click.option(
    "--runs-older-than",
    "older",
    callback=_quantity(SECONDS),
    metavar="AGE",
    help="Remove runs not used for so long (default: runs_keep of the settings, 30d).",
)
@click.option(
    "--nights-older-than",
    "nights_age",
    callback=_quantity(SECONDS),
    metavar="AGE",
    help="Also remove nights of the history that began so long ago (default: none, ever).",
)
@history_option
@click.option("--dry-run", is_flag=True, help="Say what would go, and leave it.")
@verb
def prune(
    cache_max: float | None,
    older: float | None,
    nights_age: float | None,
    url: str | None,
    dry_run: bool,
    as_json: bool,
) -> tuple[Any, ExitCode]:
    """Make .hil smaller: old runs, and what was not used for longest of programs, firmware, builds.

    What another process uses stays, whatever the bound; a builder or exporter at work is not
    disturbed. What goes is made again when it is wanted; only runs are gone for good. The same
    is done without being asked, once an hour at most, after `hil run` and a pytest session, within
    cache_max and runs_keep of [tool.hil]. `hil doctor` says how much there is.

    \b
    Examples:
      hil prune --dry-run
      hil prune --cache-max 2GiB --runs-older-than 7d
      hil prune --cache-max 0B --runs-older-than 0h
      hil prune --nights-older-than 90d
    """
    from harness.run.prune import Bounds, bounds
    from harness.run.prune import prune as bring_within

    default = bounds()
    within = Bounds(
        default.cache if cache_max is None else int(cache_max),
        default.runs if older is None else older,
    )
    nights = None if nights_age is None else _prune_nights(nights_age, url, dry_run=dry_run)
    done = bring_within(within, dry_run=dry_run)
    if not as_json:
        would = "would remove" if dry_run else "removed"
        counts = Counter(entry.kind for entry in done.gone)
        what = ", ".join(f"{number} of {kind}" for kind, number in sorted(counts.items()))
        echo(f"{would} {done.bytes / _MIB:.1f} MiB: {what or 'nothing'}")
        if done.kept:
            echo(f"in use, and kept: {len(done.kept)}")
        if nights is not None:
            echo(f"{would} {nights[0]} nights with {nights[1]} rows of the history")
        echo(f"left in the cache: {done.left / _MIB:.1f} MiB of {within.cache / _MIB:.1f}")
    return {
        "dry_run": dry_run,
        "bounds": asdict(within),
        "bytes": done.bytes,
        "gone": [{"kind": e.kind, "path": str(e.path), "bytes": e.bytes} for e in done.gone],
        "in_use": [str(entry.path) for entry in done.kept],
        "cache_bytes_left": done.left,
        "nights": None if nights is None else {"nights": nights[0], "rows": nights[1]},
    }, ExitCode.PASSED


def _prune_nights(age: float, url: str | None, *, dry_run: bool) -> tuple[int, int]:
    """How many nights and rows are older."""
    before = (datetime.now(timezone.utc) - timedelta(seconds=age)).isoformat(timespec="seconds")
    with opened(url) as database:
        return database.prune(before, dry_run=dry_run)
