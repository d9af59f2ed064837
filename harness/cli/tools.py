"""``hil targets``, ``models``, ``doctor`` and ``prune``: what exists, and what can be removed."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from typing import Any

import click

from harness.cli.history import history_option, opened
from harness.cli.options import read_by
from harness.cli.verb import Answer, echo, terminal, verb
from harness.config.loading import load_target, load_targets
from harness.config.models import known_models, unavailable
from harness.config.target import Target
from harness.core.verdict import ExitCode
from harness.firmware.zephyr.examine import Finding, examine
from harness.report.safe_console import Terminal, columns
from harness.run.prune import CacheBounds, bounds, size_on_disk
from harness.run.prune import prune as bring_within
from harness.sim.board import what_board_lacks
from harness.sim.simulator import available_simulators
from harness.system.paths import state_dir
from harness.system.settings import BYTES, SECONDS, quantity
from harness.system.toolchain import Inspected, inspect_tools

_MIB, _DAY = 1 << 20, 86400


@click.command()
@click.argument("names", nargs=-1, metavar="[TARGET]...")
@verb
def targets(names: tuple[str, ...]) -> Answer:
    """List the targets and their simulators; of named ones, all that is known.

    \b
    Examples:
      hil targets
      hil targets corstone-300-u55-128
    """
    rows = [_target_row(target) for target in map(load_target, names)] if names else []
    _print_named(rows)
    if not names:
        rows = [_target_row(target) for target in load_targets()]
        _print_targets(rows)
    return {"targets": rows}, ExitCode.PASSED


@click.command()
@verb
def models() -> Answer:
    """List the models, and why some that ExecuTorch names are not among them."""
    available = [{"name": m.name, "description": m.description} for m in known_models().values()]
    others = [{"name": name, "reason": why} for name, why in unavailable().items()]
    _print_models(available, "what it is")
    terminal().print("\nnamed by ExecuTorch, not available here:", style="dim")
    _print_models(others, "why not")
    return {"models": available, "unavailable": others}, ExitCode.PASSED


def _print_models(rows: Sequence[Mapping[str, str]], head: str) -> None:
    table = columns("model", head)
    for row in rows:
        table.add_row(*row.values())
    terminal().print(table)


@click.command()
@verb
def doctor() -> Answer:
    """Show each tool, its version, and how to get what is missing (FVPs included).

    Where ZEPHYR_BASE is set, what its workspace lacks, too; what is missing to drive each board;
    and how much is in .hil, which `hil prune` makes smaller.
    """
    targets = load_targets()
    fvps = [t.simulators.fvp for t in targets if t.simulators.fvp is not None]
    usable = {fvp.executable: fvp.package for fvp in fvps}
    tools = inspect_tools(usable)
    zephyr = examine()
    missing = [t.name for t in tools if t.required and t.path is None]
    missing += [f"Zephyr's {f.name}" for f in zephyr if f.required and f.state is None]
    kept, limits = size_on_disk(state_dir()), bounds()
    _print_tools(tools)
    if zephyr:
        _print_workspace(zephyr)
    runnable = _runnable(targets)
    words = (f"{able} of {every} on {name}" for name, (able, every) in runnable.items() if able)
    installed = ", ".join(f"{t.name} {t.version}" for t in tools if t.name in usable and t.path)
    terminal().print(f"targets: {'; '.join(words)}; FVP: {installed or 'none'}")
    with_board = (t for t in targets if t.simulators.board is not None)
    boards = {target.name: what_board_lacks(target) for target in with_board}
    for name, lacks in boards.items():
        terminal().print(f"board {name}: {'; '.join(lacks) or 'nothing is missing'}")
    if missing:
        terminal().print(f"missing: {', '.join(missing)}", style="red")
    _print_state(kept, limits)
    return {
        "tools": [asdict(tool) for tool in tools],
        "zephyr": [asdict(finding) for finding in zephyr],
        "targets": runnable,
        "boards": boards,
        "missing": missing,
        "state": {
            "path": str(state_dir()),
            "cache_max": limits.cache,
            "runs_keep_seconds": limits.runs,
            "bytes": kept,
        },
    }, ExitCode.INFRASTRUCTURE if missing else ExitCode.PASSED


def _runnable(targets: Sequence[Target]) -> dict[str, tuple[int, int]]:
    """By simulator: how many targets it can run here, and how many it could."""
    every = Counter(name for target in targets for name in target.simulators.names)
    able = Counter(name for target in targets for name in available_simulators(target))
    return {str(name): (able[name], count) for name, count in sorted(every.items())}


def _print_targets(rows: list[dict[str, Any]]) -> None:
    """Print a line each; the description as far as there is room."""
    console = terminal(highlight=False)
    cells = [(r["name"], r["marker"], _simulators(r), r["description"]) for r in rows]
    cells.insert(0, ("target", "marker", "simulators (*)", "what it is"))
    _print_table(console, cells, no_wrap=True, overflow="ellipsis")
    console.print(
        "* = installed. `hil targets TARGET` lists memory modes, and what QEMU lacks of the board.",
        style="dim",
    )


def _print_table(console: Terminal, rows: Sequence[Sequence[str]], **wrapping: Any) -> None:
    """Print four columns, the first row as their heads."""
    widths = [max(len(row[column]) for row in rows) + 2 for column in range(3)]
    for number, row in enumerate(rows):
        line = "".join(f"{text:{width}}" for text, width in zip(row, (*widths, 0), strict=True))
        console.print(line, style="" if number else "bold", **wrapping)


def _simulators(row: Mapping[str, Any]) -> str:
    return ", ".join(word + "*" * ok for word, ok in row["simulators"].items())


def _print_named(rows: list[dict[str, Any]]) -> None:
    console = terminal(highlight=False)
    for row in rows:
        console.print(row["name"], style="bold")
        lines = [row["description"], f"pytest -m {row['marker']}"]
        lines += [f"simulators (* = installed): {_simulators(row)}"]
        modes = " ".join(f"@{mode}" for mode in row["memory_modes"])
        lines += [f"memory modes (the first is the default): {modes}"] if modes else []
        lines += [f"lowering @{name}: {text}" for name, text in row["lowerings"].items()]
        for simulator, differences in row["differences"].items():
            lines += [f"on {simulator}: {difference}" for difference in differences]
        for line in lines:
            console.print(f"  {line}", soft_wrap=True)


def _target_row(target: Target) -> dict[str, Any]:
    usable = available_simulators(target)
    return {
        "name": target.name,
        "marker": target.marker,
        "compile_target": target.compile_target,
        "description": target.description,
        "simulators": {name: name in usable for name in target.simulators.names},
        "memory_modes": [] if target.npu is None else list(target.npu.memory_modes),
        "lowerings": {name: each.description for name, each in target.lowerings.items()},
        "differences": {
            name: list(differences)
            for name in target.simulators.names
            if (differences := target.differences(name))
        },
    }


def _print_tools(tools: Sequence[Inspected]) -> None:
    """Print the tools found, a line each, then the missing ones by advice. Cuts no path."""
    console = terminal(highlight=False)
    rows = [("tool", "for", "version", "where")]
    rows += [(t.name, t.purpose, str(t.version), t.path) for t in tools if t.path is not None]
    _print_table(console, rows, soft_wrap=True)
    absent: dict[tuple[bool, str, str], list[str]] = {}
    for tool in tools:
        if tool.path is None:
            key = (not tool.required, tool.purpose, tool.how_to_get)
            absent.setdefault(key, []).append(tool.name)
    last_head = ""
    for (optional, purpose, how), names in sorted(absent.items()):
        head = f"\n{'not installed (optional)' if optional else 'missing'}, for {purpose}:"
        if head != last_head:
            console.print(head, style="bold" if optional else "bold red")
            last_head = head
        for line in wrapped(f"{', '.join(names)}: {how}", console.width):
            console.print(line, soft_wrap=True)
    for tool in tools:
        if tool.note:
            console.print(f"{tool.name}: {tool.note}", style="dim")


def wrapped(text: str, width: int) -> list[str]:
    """Within ``width`` where words allow it: no path, package or address is cut."""
    return textwrap.wrap(
        text,
        width,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _print_state(kept: int, limits: CacheBounds) -> None:
    """How much is in the state directory, and to what it is held."""
    bounded = f"the cache is held to {limits.cache / _MIB:.0f} MiB"
    runs = f"runs stay {limits.runs / _DAY:g} days (hil prune)"
    text = f"{state_dir()}: {kept / _MIB:.1f} MiB; {bounded}, {runs}"
    terminal().print(text, style="dim", highlight=False)


def _print_workspace(findings: Sequence[Finding]) -> None:
    table = columns("Zephyr workspace", "state", "what for, or how to get it")
    for finding in findings:
        absent = "missing" if finding.required else "not there (optional)"
        table.add_row(finding.name, finding.state or absent, finding.text)
    terminal().print()
    terminal().print(table)


def _quantity(units: Mapping[str, float]) -> Callable[..., float | None]:
    """Return an option's value: a number with one of these units."""

    def read(text: str) -> float:
        if (number := quantity(text, units)) is None:
            raise ValueError(f"{text!r} is not a number with one of the units {', '.join(units)}.")
        return number

    return read_by(read)


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
@click.option("--dry-run", is_flag=True, help="List what would be removed, and remove nothing.")
@verb
def prune(
    cache_max: float | None,
    older: float | None,
    nights_age: float | None,
    url: str | None,
    dry_run: bool,
) -> Answer:
    """Make .hil smaller: old runs, and what was not used for longest of programs, firmware, builds.

    Files that another process uses stay, whatever the bound. Programs, firmware and builds are
    made again when they are needed; runs are not. The same
    is done without being asked, once an hour at most, after `hil run` and a pytest session, within
    cache_max and runs_keep of [tool.hil]. `hil doctor` says how much there is.

    \b
    Examples:
      hil prune --dry-run
      hil prune --cache-max 2GiB --runs-older-than 7d
      hil prune --cache-max 0B --runs-older-than 0h
      hil prune --nights-older-than 90d
    """
    default = bounds()
    within = CacheBounds(
        default.cache if cache_max is None else int(cache_max),
        default.runs if older is None else older,
    )
    nights = None
    if nights_age is not None:
        before = datetime.now(timezone.utc) - timedelta(seconds=nights_age)
        with opened(url) as database:
            nights = database.prune(before.isoformat(timespec="seconds"), dry_run=dry_run)
    done = bring_within(within, dry_run=dry_run)
    would = "would remove" if dry_run else "removed"
    counts = Counter(entry.kind for entry in done.gone)
    what = ", ".join(f"{number} of {kind}" for kind, number in sorted(counts.items()))
    echo(f"{would} {done.bytes / _MIB:.1f} MiB: {what or 'nothing'}")
    if done.kept:
        echo(f"in use, and kept: {len(done.kept)}")
    if nights is not None:
        echo(f"{would} {nights[0]} nights with {nights[1]} rows of the history")
    echo(f"left in the cache: {done.left / _MIB:.1f} MiB of {within.cache / _MIB:.1f}")
    for path, reason in done.undeleted:
        echo(f"could not be deleted: {path} ({reason})")
    result = {"dry_run": dry_run, "bounds": asdict(within), "bytes": done.bytes, **asdict(done)}
    code = ExitCode.FAILED if done.undeleted else ExitCode.PASSED
    return {**result, "nights": nights and {"nights": nights[0], "rows": nights[1]}}, code
