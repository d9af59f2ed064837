"""Sizes as tables, and as one self-contained page.

Tables are for a terminal, for a pull request, for GitHub's log and its summary. The page has a
treemap to zoom into, a table to search, and differences in colour. Workflow commands:
https://docs.github.com/actions/reference/workflow-commands-for-github-actions"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from harness.core.errors import NotThere
from harness.core.safe_text import grouped, plain, workflow_command
from harness.report.safe_console import columns, say
from harness.report.templates import filled
from harness.run.gate import Gate, LeftOver
from harness.size.anatomy import Anatomy, Change, Difference, Part, PartPath, group, shown
from harness.size.memory_plan import MemoryPlan
from harness.system.files import disk_errors, write_whole

_STYLES = {"added": "red", "grew": "red", "removed": "green", "shrank": "green"}


def print_anatomy(console: Console, title: str, anatomy: Anatomy, depth: int, top: int) -> None:
    """Parts down to ``depth`` names, the ``top`` largest."""
    reserved = sum(p.bytes for p in anatomy.parts if p.path[1:2] == ("reserved",))
    split = f" ({anatomy.total - reserved:,} loaded, {reserved:,} reserved)" if reserved else ""
    totals = f"{anatomy.total:,} bytes{split}, {anatomy.unknown:,} unknown"
    say(console, f"{title}: {totals}", "bold")
    _print_parts(console, anatomy.parts, anatomy.total, depth, top)
    for heading, parts in (("memory it asks for", anatomy.memory), ("dropped", anatomy.dropped)):
        if parts:
            total = sum(p.bytes for p in parts)
            console.print(f"[bold]{heading}[/]: {total:,} bytes")
            _print_parts(console, parts, total, depth, top if heading != "dropped" else 5)
    for note in anatomy.notes:
        say(console, f"note: {note}", "yellow")


def _print_parts(console: Console, parts: Sequence[Part], total: int, depth: int, top: int) -> None:
    table = columns(">bytes", ">share", "what", style="dim")
    shortened = sorted(group(parts, lambda path: path[:depth]), key=lambda p: (-p.bytes, p.path))
    for part in shortened[:top]:
        times = f"  x{part.count}" if part.count > 1 else ""
        table.add_row(
            f"{part.bytes:,}", f"{part.bytes / max(1, total):.1%}", shown(part.path) + times
        )
    rest = shortened[top:]
    if rest:
        size = sum(p.bytes for p in rest)
        table.add_row(f"{size:,}", f"{size / max(1, total):.1%}", f"{len(rest)} more (--top)")
    console.print(table, highlight=False, markup=False)


def print_plans(console: Console, plans: Sequence[MemoryPlan]) -> None:
    for plan in plans:
        for text in _peaks(plan):
            say(console, text)
        for fault in plan.faults:
            say(console, f"the memory plan is wrong: {fault.text}", "red")


def _peaks(plan: MemoryPlan) -> list[str]:
    """When each planned buffer is fullest, and of what."""
    steps = {n: f"during instruction {n} ({name})" for n, name in enumerate(plan.instructions)}
    tensors, texts = {tensor.value: tensor for tensor in plan.tensors}, []
    for buffer in plan.buffers:
        number, used = buffer.instruction, f"{max(buffer.needed):,} of {buffer.bytes:,} bytes"
        when = steps.get(number, "after the last instruction" if number > 0 else "at the start")
        largest = map(tensors.__getitem__, buffer.values[:_MOST_TENSORS])
        by = "".join(f"; {t.end - t.start:,} for {t.tensor} of {t.maker}" for t in largest)
        texts.append(f"{plan.method}, buffer {buffer.number}: {used} are needed {when}{by}")
    return texts


def print_difference(console: Console, difference: Difference, top: int) -> None:
    totals = f"{difference.old_total:,} -> {difference.new_total:,} bytes ({difference.delta:+,})"
    say(console, totals, "bold")
    _print_changes(console, difference.parts, top)
    if difference.memory:
        console.print("[bold]memory it asks for[/]")
        _print_changes(console, difference.memory, top)


def _print_changes(console: Console, changes: Sequence[Change], top: int) -> None:
    table = columns(">change", ">old", ">new", "", "what", style="dim")
    for change, row in zip([*changes[:top], None], _rows(changes, top), strict=False):
        table.add_row(*row, style=None if change is None else _STYLES.get(change.kind))
    if changes:
        console.print(table, markup=False)


def _rows(changes: Sequence[Change], top: int) -> Iterator[tuple[str, ...]]:
    """Change, old, new, kind and name of the first ``top``, and the sum of the others."""
    for c in changes[:top]:
        yield f"{c.delta:+,}", f"{c.old:,}", f"{c.new:,}", c.kind, _described(c)
    if rest := changes[top:]:
        yield f"{sum(c.delta for c in rest):+,}", "", "", "", f"{len(rest)} more (--top)"


def _described(change: Change) -> str:
    if change.old_path is None:
        return shown(change.path)
    same_name = change.old_path[-1] == change.path[-1]
    origin = shown(change.old_path) if same_name else change.old_path[-1]
    return f"{shown(change.path)} (was {origin})"


_MOST_CHANGES, _MOST_TENSORS = 20, 3


def workflow_commands(gates: Sequence[Gate | LeftOver], environ: Mapping[str, str]) -> list[str]:
    """One line per failed gate; nothing outside of GitHub Actions."""
    if environ.get("GITHUB_ACTIONS") != "true":
        return []
    return [
        workflow_command("error", g.message(), title=f"size of {g.subject}")
        for g in gates
        if g.failed
    ]


def summary(gates: Sequence[Gate], rest: Sequence[LeftOver] = ()) -> str:
    """In Markdown, for the summary of a step."""
    return _markdown("gate.md", _MOST_CHANGES, gates=gates, rest=rest)


def markdown(title: str, difference: Difference, top: int, reasons: Sequence[str] = ()) -> str:
    """For a pull request's comment."""
    values = {"title": title, "difference": difference, "reasons": reasons}
    return _markdown("difference.md", top, **values)


def _markdown(template: str, top: int, **values: Any) -> str:
    filters: dict[str, Callable[[Any], Any]] = {
        "rows": lambda changes: _rows(changes, top),
        "number": grouped,
    }
    return filled(Path(__file__).with_name(template), values, filters)


_RESERVED = "reserved: pools, stacks, .bss"
_TEMPLATE = Path(__file__).with_name("size.html")


def write_page(
    path: Path,
    title: str,
    new: Anatomy,
    old: Anatomy | None = None,
    plans: Sequence[MemoryPlan] = (),
) -> None:
    """Write the page of sizes. Raises NotThere, DiskError."""
    if not path.parent.is_dir():
        raise NotThere(path.parent, "directory", hint="the page would go there")
    with disk_errors("writing the page"):
        write_whole(path, render_page(title, new, old, plans))


def render_page(
    title: str, new: Anatomy, old: Anatomy | None = None, plans: Sequence[MemoryPlan] = ()
) -> str:
    earlier = Anatomy(new.kind, 0, ()) if old is None else old
    placed, reserved = _split(new.parts)
    placed_before, reserved_before = _split(earlier.parts)
    views = (
        ("placed by the linker" if reserved else "file", placed, placed_before),
        (_RESERVED, reserved, reserved_before),
        ("memory it asks for", new.memory, earlier.memory),
        ("dropped by the linker", new.dropped, earlier.dropped),
    )
    data = {
        "title": title,
        "compared": old is not None,
        "beside": _RESERVED,
        "views": [
            {"name": name, "rows": _all_rows(after, before, {**earlier.users, **new.users})}
            for name, after, before in views
            if after or before
        ],
        "plans": [{**asdict(plan), "peaks": _peaks(plan)} for plan in plans],
    }
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    page = _TEMPLATE.read_text(encoding="utf-8")
    return page.replace("{{title}}", html.escape(plain(title))).replace("{{data}}", text)


def _split(parts: Sequence[Part]) -> tuple[list[Part], list[Part]]:
    """Return the parts that the linker placed, and those it reserved (pools, stacks, .bss).

    In one map the reserved ones would cover the rest."""
    reserved = [part for part in parts if part.path[1:2] == ("reserved",)]
    return [part for part in parts if part.path[1:2] != ("reserved",)], reserved


def _all_rows(new: Sequence[Part], old: Sequence[Part], users: Mapping[PartPath, str]) -> list[Any]:
    """[path, new bytes, old bytes] of every part of either; a constant's path names its user."""
    after = {p.path: p.bytes for p in new}
    before = {p.path: p.bytes for p in old}

    def names(path: PartPath) -> list[str]:
        user = users.get(path)
        return [plain(name) for name in ((*path[:-1], user, path[-1]) if user else path)]

    return [[names(p), after.get(p, 0), before.get(p, 0)] for p in sorted({*after, *before})]
