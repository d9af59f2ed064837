"""``hil size`` and ``hil gate``: options, help and exit codes; the work is done elsewhere."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.firmware import firmware_options
from harness.cli.progress import progress_shown
from harness.cli.verb import echo, tell_ci, verb
from harness.core.errors import InfraError, UsageError
from harness.core.verdict import ExitCode
from harness.firmware.names import full_label

if TYPE_CHECKING:
    from harness.firmware.choice import FirmwareChoice
    from harness.firmware.firmware import Firmware


class _SizeGroup(click.Group):
    """``hil size FILE`` is short for ``hil size show FILE``."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            args = ["show", *args]
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        helps = {"-h", "--help"}
        if args and args[0].startswith("-") and args[0] not in helps:
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_SizeGroup, context_settings={"help_option_names": ["-h", "--help"]})
def size() -> None:
    """What a program or a firmware is made of, and what changed.

    \b
    Examples:
      hil size model.pte
      hil size executor_runner --target corstone-300-m55 --depth 4
      hil size diff old.pte new.pte --why 1000
      hil size model.pte --html model.html
      hil size corstone-300-m55/runner --executorch ~/executorch
    """


_FILE = click.Path(exists=True, path_type=Path)
_target_option = click.option("--target", help="Whose memory regions an ELF is counted by.")
_top_option = click.option("--top", default=30, show_default=True, type=click.IntRange(min=1))
_html_option = click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="OUT",
    help="Write one self-contained page with a treemap and a table.",
)


@size.command("show")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE|RUN_DIR|TARGET/runner")
@_target_option
@click.option("--map", "linker_map", type=_FILE, help="The linker map (default: FILE.map).")
@click.option("--depth", default=3, show_default=True, type=click.IntRange(1, 20))
@_top_option
@_html_option
@verb
@firmware_options
def show(
    file: Path,
    target: str | None,
    linker_map: Path | None,
    depth: int,
    top: int,
    html: Path | None,
    firmware: FirmwareChoice,
    as_json: bool,
) -> tuple[dict[str, Any], ExitCode]:
    """Account for every byte of a .pte, .bpte, .ptd or ELF; or show what a run used.

    TARGET/runner is the firmware of a target, built where it is not cached. That of a checkout
    is counted by the memory regions of its own linker script.

    \b
    Examples:
      hil size show model.pte
      hil size show .hil/runs/20260101-120000-ds_cnn-1a2b3c
      hil size show corstone-300-m55/runner --executorch ~/executorch --depth 4
    """
    from harness.report.console import Terminal
    from harness.report.size import print_anatomy, print_use
    from harness.run.measure import measure, run_use
    from harness.run.subject import firmware_of

    if file.is_dir():
        used = run_use(file)
        if not as_json:
            print_use(Terminal(), used)
        return used, ExitCode.PASSED
    with progress_shown(as_json) as progress:
        built = firmware_of(file, firmware, progress)
    if html is not None and len(built) > 1:
        raise UsageError("--html writes one page, so --firmware both makes no sense with it")
    results = []
    for title, path, facts in _things(file, built):
        anatomy = measure(path, target, linker_map)
        if html is not None:
            from harness.size.page import write_page

            write_page(html, title, anatomy)
        if not as_json:
            print_anatomy(Terminal(), title, anatomy, depth, top)
        results.append({"file": str(path), **facts, **anatomy.to_fields()})
    return results[0] if len(results) == 1 else {"firmware": results}, ExitCode.PASSED


def _things(file: Path, built: Sequence[Firmware]) -> list[tuple[str, Path, dict[str, Any]]]:
    """What is to be shown: title, path, and whose it is when that was asked for."""
    if not built:
        return [(file.name, file, {})]
    return [
        (f"{file} [{full_label(f.source.name, f.checkout)}]", f.elf, {"source": f.source.name})
        for f in built
    ]


@size.command("diff")
@click.argument("old", type=_FILE)
@click.argument("new", type=_FILE)
@_target_option
@click.option("--markdown", "as_markdown", is_flag=True, help="A table for a pull request.")
@click.option(
    "--why",
    type=click.IntRange(min=1),
    metavar="N",
    help="Say in one sentence each what makes up N bytes of the change.",
)
@_top_option
@_html_option
@verb
def diff(
    old: Path,
    new: Path,
    target: str | None,
    as_markdown: bool,
    why: int | None,
    top: int,
    html: Path | None,
    as_json: bool,
) -> tuple[dict[str, Any], ExitCode]:
    """What was added, removed, grew or got another name between two files; most first.

    \b
    Examples:
      hil size diff old.pte new.pte
      hil size diff old.elf new.elf --target corstone-300-m55 --why 500
    """
    from harness.report import size as render
    from harness.report.console import Terminal
    from harness.run.measure import measure
    from harness.size import explain
    from harness.size.difference import difference

    before, after = measure(old, target), measure(new, target)
    if {before.kind, after.kind} & {"elf"} and before.kind != after.kind:
        raise UsageError(
            f"{old.name} is {before.kind}, {new.name} is {after.kind}",
            hint="compare a program with a program, an ELF with an ELF",
        )
    changes = difference(before, after)
    sentences = [] if why is None else explain.reasons(changes, why)
    if html is not None:
        from harness.size.page import write_page

        write_page(html, f"{old.name} to {new.name}", after, before)
    if as_markdown and not as_json:
        echo(render.markdown(f"{old.name} → {new.name}", changes, top, sentences))
    elif not as_json:
        console = Terminal()
        if why is None:
            render.print_difference(console, changes, top)
        for reason in sentences:
            echo(reason)
    return {
        "old": str(old),
        "new": str(new),
        **changes.to_fields(),
        "why": sentences,
    }, ExitCode.PASSED


@click.command("gate")
@click.argument("subjects", nargs=-1, metavar="[TARGET/MODEL|TARGET/runner]...")
@verb
def gate(subjects: tuple[str, ...], as_json: bool) -> tuple[dict[str, Any], ExitCode]:
    """Hold sizes against budgets and accepted references; without names, all of them.

    \b
    Examples:
      hil gate
      hil gate corstone-300-m55/runner corstone-300-m55/ds_cnn
    """
    from harness.config.case import parse_case
    from harness.report.size import workflow_commands, write_summary
    from harness.run.gate import every_subject, gate_cases

    cases = [parse_case(s) for s in subjects] or every_subject()
    with progress_shown(as_json) as progress:
        gates = gate_cases(cases, progress)
    for line in workflow_commands(gates, os.environ):
        tell_ci(line, err=as_json)
    try:
        write_summary(gates, os.environ)
    except OSError as error:
        raise InfraError(f"cannot write the step summary: {error}") from error
    if not as_json:
        _say_gates(gates)
    failed = any(g.failed for g in gates)
    return {
        "failed": failed,
        "gates": [g.summary() for g in gates],
    }, ExitCode.FAILED if failed else ExitCode.PASSED


def _say_gates(gates: Sequence[Any]) -> None:
    for each in gates:
        if each.failed:
            echo(each.message(), fg="red")
        else:
            state = "new, nothing accepted yet" if each.is_new else "ok"
            shrunk = [f.figure for f in each.findings if f.state == "shrank"]
            gain = f" (smaller: {', '.join(shrunk)}; accept it to keep it so)" if shrunk else ""
            figures = "  ".join(f"{f.figure} {f.measured:,}" for f in each.findings if f.measured)
            echo(f"{each.subject}: {state}{gain}  {figures}")
