"""``hil targets``, ``models`` and ``doctor``: options and help."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click
from rich.table import Table

from harness.cli.verb import verb
from harness.config.loading import Target, load_targets
from harness.config.models import catalogue, unavailable
from harness.core.verdict import ExitCode
from harness.firmware.zephyr.examine import Finding, examine
from harness.report.console import Terminal
from harness.run.prune import bounds, kinds
from harness.sim.pick import available_simulators
from harness.system.paths import state_dir
from harness.system.toolchain import Inspected, inspect_tools

_MIB, _DAY = 1 << 20, 86400


@click.command()
@verb
def targets(as_json: bool) -> tuple[dict[str, Any], ExitCode]:
    """List the targets and which of their simulators are installed."""
    return list_targets(show=not as_json), ExitCode.PASSED


@click.command()
@verb
def models(as_json: bool) -> tuple[dict[str, Any], ExitCode]:
    """List the models, and why some that ExecuTorch names are not among them."""
    return list_models(show=not as_json), ExitCode.PASSED


@click.command()
@verb
def doctor(as_json: bool) -> tuple[dict[str, Any], ExitCode]:
    """Show each tool, its version, and how to get what is missing (FVPs included).

    Where ZEPHYR_BASE is set, what its workspace lacks, too; and how much is in .hil, which
    `hil prune` makes smaller.
    """
    return list_tools(show=not as_json)


def list_targets(*, show: bool) -> dict[str, Any]:
    rows = [_target_row(target) for target in load_targets()]
    if show:
        _print_targets(rows)
        _print_notes(rows)
    return {"targets": rows}


def _print_targets(rows: list[dict[str, Any]]) -> None:
    """Two lines each: a column of descriptions would have no room beside the other three."""
    console = Terminal(highlight=False)
    wide = [max(len(row[key]) for row in rows) + 2 for key in ("name", "marker")]
    head = f"{'target':{wide[0]}}{'marker':{wide[1]}}simulators (* = installed)"
    console.print(head, style="bold")
    for row in rows:
        simulators = ", ".join(name + "*" * ok for name, ok in row["simulators"].items())
        console.print(f"{row['name']:{wide[0]}}{row['marker']:{wide[1]}}{simulators}")
        console.print(f"  {row['description']}", style="dim")


def _print_notes(rows: list[dict[str, Any]]) -> None:
    """What of a board QEMU does not have, memory modes and lowerings, each said once."""
    said: dict[str, list[str]] = {}
    for row in rows:
        if row["memory_modes"]:
            modes = " ".join(f"@{mode}" for mode in row["memory_modes"])
            said.setdefault(f"memory modes {modes} (the first is the default)", []).append(
                row["name"]
            )
        for name, description in row["lowerings"].items():
            said.setdefault(f"lowering @{name}: {description}", []).append(row["name"])
        for simulator, differences in row["differences"].items():
            for difference in differences:
                said.setdefault(f"on {simulator}: {difference}", []).append(row["name"])
    for text, names in said.items():
        Terminal().print(f"{text}: {', '.join(names)}", style="dim", highlight=False)


def _target_row(target: Target) -> dict[str, Any]:
    usable = available_simulators(target)
    return {
        "name": target.name,
        "marker": target.marker,
        "compile_target": target.compile_target,
        "description": target.description,
        "simulators": {name: name in usable for name in target.simulators.names},
        "memory_modes": _modes(target),
        "lowerings": {name: one.description for name, one in target.lowerings.items()},
        "differences": {
            name: list(found)
            for name in target.simulators.names
            if (found := target.differences(name))
        },
    }


def _modes(target: Target) -> list[str]:
    """The default one first."""
    if target.npu is None:
        return []
    default = target.npu.default_memory_mode
    return [default, *(mode for mode in target.npu.memory_modes if mode != default)]


def list_models(*, show: bool) -> dict[str, Any]:
    models = [{"name": m.name, "description": m.description} for m in catalogue().values()]
    others = [{"name": u.name, "reason": u.reason} for u in unavailable().values()]
    if show:
        table = _table("model", "what it is")
        for model in models:
            table.add_row(model["name"], model["description"])
        Terminal().print(table)
        Terminal().print("\nnamed by ExecuTorch, not available here:", style="dim")
        table = _table("model", "why not")
        for other in others:
            table.add_row(other["name"], other["reason"])
        Terminal().print(table)
    return {"models": models, "unavailable": others}


def list_tools(*, show: bool) -> tuple[dict[str, Any], ExitCode]:
    """The tools, and INFRASTRUCTURE when one that is required is missing."""
    fvps = [t.simulators.fvp for t in load_targets() if t.simulators.fvp is not None]
    tools = inspect_tools({fvp.executable: fvp.package for fvp in fvps})
    if show:
        _print_tools(tools)
    zephyr = examine()
    missing = [t.name for t in tools if t.required and t.path is None]
    missing += [f"Zephyr's {f.name}" for f in zephyr if f.required and f.state is None]
    for tool in tools:
        if show and tool.note:
            Terminal().print(f"{tool.name}: {tool.note}", style="dim", highlight=False)
    if show and zephyr:
        _print_workspace(zephyr)
    if show and missing:
        Terminal().print(f"missing: {', '.join(missing)}", style="red")
    kept = _state(show=show)
    rows = [
        {
            "name": t.name,
            "version": t.version,
            "path": t.path,
            "required": t.required,
            "how_to_get": t.how_to_get,
            "note": t.note,
            "purpose": t.purpose,
        }
        for t in tools
    ]
    return {
        "tools": rows,
        "zephyr": [asdict(finding) for finding in zephyr],
        "missing": missing,
        "state": kept,
    }, ExitCode.INFRASTRUCTURE if missing else ExitCode.PASSED


def _print_tools(tools: Sequence[Inspected]) -> None:
    """What is there, a line each; then what is not, the same advice once. No path is cut."""
    console = Terminal(highlight=False)
    there = [("tool", "for", "version", "where")]
    there += [(t.name, t.purpose, str(t.version), t.path) for t in tools if t.path is not None]
    wide = [max(len(row[column]) for row in there) + 2 for column in range(3)]
    for number, row in enumerate(there):
        line = "".join(f"{text:{width}}" for text, width in zip(row, (*wide, 0), strict=True))
        console.print(line, style="bold" if number == 0 else "", soft_wrap=True)
    absent: dict[tuple[bool, str, str], list[str]] = {}
    for tool in tools:
        if tool.path is None:
            key = (not tool.required, tool.purpose, tool.how_to_get)
            absent.setdefault(key, []).append(tool.name)
    said = ""
    for (optional, purpose, how), names in sorted(absent.items()):
        head = f"\n{'not installed (optional)' if optional else 'missing'}, for {purpose}:"
        if head != said:
            console.print(head, style="bold" if optional else "bold red")
            said = head
        for line in wrapped(f"{', '.join(names)}: {how}", console.width):
            console.print(line, soft_wrap=True)


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


def _state(*, show: bool) -> dict[str, Any]:
    """How much there is of what we keep, and what of it is bounded."""
    found, within = kinds(), bounds()
    if show:
        table = _table("kept in .hil", "entries", "MiB", "")
        for kind in found:
            how = "" if kind.bounded else "not bounded"
            table.add_row(kind.name, str(kind.entries), f"{kind.bytes / _MIB:.1f}", how)
        Terminal().print()
        Terminal().print(table)
        Terminal().print(
            f"{state_dir()}: {sum(kind.bytes for kind in found) / _MIB:.1f} MiB; the cache is held "
            f"to {within.cache / _MIB:.0f} MiB, runs stay {within.runs / _DAY:g} days (hil prune)",
            style="dim",
            highlight=False,
        )
    return {
        "path": str(state_dir()),
        "cache_max": within.cache,
        "runs_keep_seconds": within.runs,
        "kinds": [asdict(kind) for kind in found],
    }


def _print_workspace(findings: Sequence[Finding]) -> None:
    table = _table("Zephyr workspace", "state", "what for, or how to get it")
    for finding in findings:
        absent = "missing" if finding.required else "not there (optional)"
        table.add_row(finding.name, finding.state or absent, finding.text)
    Terminal().print()
    Terminal().print(table)


def _table(*headers: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in headers:
        table.add_column(header, overflow="fold")
    return table
