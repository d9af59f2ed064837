"""``hil size`` and ``hil gate``: options, help and exit codes; the work is done elsewhere."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from harness.cli.options import allow_new_option, firmware_options
from harness.cli.verb import EXISTING, FILE, Answer, echo, progress_shown, tell_ci, terminal, verb
from harness.config.case import RUNNER, parse_case
from harness.core.errors import UsageError
from harness.core.verdict import ExitCode
from harness.firmware.choice import FirmwareChoice
from harness.firmware.source import Firmware, full_label
from harness.judge.reference import accepted_runs
from harness.nightly.history.repository import origin_of
from harness.report import size as render
from harness.report.notify import issues_of
from harness.report.size import (
    print_anatomy,
    print_plans,
    summary,
    workflow_commands,
    write_page,
)
from harness.report.summary import append_to_step_summary, summarise, summary_of_runs
from harness.report.terminal import print_records
from harness.run.bisect import firmware_at
from harness.run.gate import every_subject, gate_cases, left_over, measure, subjects_of
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import exit_code
from harness.run.subjects import firmware_of
from harness.size.anatomy import difference, reasons
from harness.size.measure import layers_of
from harness.size.memory_plan import memory_plans
from harness.system.settings import is_strict


@dataclass(frozen=True)
class _Options:
    """The options of the command line, except the files and ``--json``."""

    target: str | None
    linker_map: Path | None
    depth: int
    top: int
    html: Path | None
    as_markdown: bool
    why: int | None
    commits: str | None
    slack: int | None
    firmware: FirmwareChoice

    def validate(self, comparing: bool) -> None:
        """Raise UsageError for options that do not go with the number of files."""
        if comparing and (self.linker_map is not None or self.firmware != FirmwareChoice()):
            raise UsageError(
                "--map, --firmware, --executorch and --part are for one file, but two are compared",
                hint="or look at each by itself: hil size FILE",
            )
        explains = self.as_markdown or self.why is not None or self.slack is not None
        if not comparing and self.commits is None and explains:
            raise UsageError(
                "--why, --markdown and --slack are about a change, but one file was named",
                hint="name two: hil size OLD NEW",
            )


@click.command()
@click.argument("file", type=FILE, metavar="FILE|TARGET/runner")
@click.argument("new", type=EXISTING, required=False, metavar="[NEW]")
@click.option("--target", help="The target whose memory regions an ELF is counted by.")
@click.option("--map", "linker_map", type=EXISTING, help="The linker map (default: FILE.map).")
@click.option(
    "--depth",
    default=3,
    show_default=True,
    type=click.IntRange(1, 20),
    help="How many levels of one file are shown.",
)
@click.option(
    "--top", default=30, show_default=True, type=click.IntRange(min=1), help="Rows at most."
)
@click.option(
    "--html",
    type=FILE,
    metavar="OUT",
    help="Write one self-contained page: a treemap, a table, and the memory plan of a program.",
)
@click.option(
    "--markdown", "as_markdown", is_flag=True, help="Print a table for a pull request (needs NEW)."
)
@click.option(
    "--why",
    type=click.IntRange(min=1),
    metavar="N",
    help="Explain N bytes of the change, in one sentence each (needs NEW).",
)
@click.option(
    "--commits",
    metavar="BASE..HEAD",
    help="Build a checkout's TARGET/runner at both commits and say what changed.",
)
@click.option(
    "--slack",
    type=click.IntRange(min=0),
    metavar="BYTES",
    help="Exit with 1 if the change is more bytes than this.",
)
@verb
@firmware_options
def size(file: Path, new: Path | None, **options: Any) -> Answer:
    """Account for every byte of a .pte, .bpte or ELF; or, with NEW, say what changed.

    TARGET/runner is the firmware of a target, built where it is not cached. That of a checkout is
    counted by the memory regions of its own linker script.

    \b
    Examples:
      hil size model.pte
      hil size model.pte --html model.html
      hil size executor_runner --target corstone-300-m55 --depth 4
      hil size old.pte new.pte --why 1000
      hil size corstone-300-m55/runner --executorch ~/executorch
      hil size corstone-300-m55/runner --executorch ~/executorch --commits main..HEAD --why 500
    """
    given = _Options(**options)
    given.validate(comparing=new is not None)
    if new is not None:
        return _compare(file, new, given)
    if given.commits is not None:
        with progress_shown() as progress:
            before, after = firmware_at(file, given.commits, given.firmware, progress)
        return _compare(before.elf, after.elf, given, given.commits.split(".."))
    return _anatomy(file, given)


def _anatomy(file: Path, options: _Options) -> Answer:
    with progress_shown() as progress:
        built = firmware_of(file, options.firmware, progress)
    if options.html is not None and len(built) > 1:
        raise UsageError("--html writes one page, so --firmware both makes no sense with it")
    results = []
    for title, path, facts in _subjects(file, built):
        anatomy = measure(path, options.target, options.linker_map)
        plans = memory_plans(path, layers_of(path))
        if options.html is not None:
            write_page(options.html, title, anatomy, plans=plans)
        print_anatomy(terminal(), title, anatomy, options.depth, options.top)
        print_plans(terminal(), plans)
        planned = [asdict(plan) for plan in plans]
        fields = {"file": str(path), **facts, **anatomy.to_fields(), "memory_plan": planned}
        results.append(fields)
    return results[0] if len(results) == 1 else {"firmware": results}, ExitCode.PASSED


def _subjects(file: Path, built: Sequence[Firmware]) -> list[tuple[str, Path, dict[str, Any]]]:
    """Title, path, and whose firmware it is when that was asked for."""
    if not built:
        return [(file.name, file, {})]
    return [
        (f"{file} [{full_label(f.source.name, f.checkout)}]", f.elf, {"source": f.source.name})
        for f in built
    ]


def _compare(old: Path, new: Path, options: _Options, names: Sequence[str] | None = None) -> Answer:
    """``names``: what to call the two, if not by the names of their files."""
    was, is_now = names or (old.name, new.name)
    before, after = measure(old, options.target), measure(new, options.target)
    if {before.kind, after.kind} & {"elf"} and before.kind != after.kind:
        raise UsageError(
            f"{old.name} is {before.kind}, {new.name} is {after.kind}",
            hint="compare a program with a program, an ELF with an ELF",
        )
    changes = difference(before, after)
    sentences = [] if options.why is None else reasons(changes, options.why)
    grown = options.slack is not None and changes.delta > options.slack
    if options.html is not None:
        write_page(options.html, f"{was} to {is_now}", after, before)
    if options.as_markdown:
        echo(render.markdown(f"{was} → {is_now}", changes, options.top, sentences))
    else:
        if options.why is None:
            render.print_difference(terminal(), changes, options.top)
        for sentence in sentences:
            echo(sentence)
    if grown:
        echo(f"{is_now} grew by {changes.delta:,} bytes, {options.slack:,} are allowed", fg="red")
    return {
        "old": str(old),
        "new": str(new),
        **changes.to_fields(),
        "why": sentences,
    }, ExitCode.FAILED if grown else ExitCode.PASSED


@click.command("gate")
@click.argument("subjects", nargs=-1, metavar="[TARGET|TARGET/MODEL|TARGET/runner]...")
@click.option(
    "--strict",
    is_flag=True,
    help="Fail for subjects without a reference and for left-over references (default in CI).",
)
@click.option("--markdown", is_flag=True, help="Print the table for a pull request.")
@click.option(
    "--comment",
    is_flag=True,
    help="Post that table as a comment of this job's pull request on GitHub, or update it.",
)
@allow_new_option
@verb
@firmware_options
def gate(
    subjects: tuple[str, ...],
    strict: bool,
    markdown: bool,
    comment: bool,
    allow_new: tuple[str, ...],
    firmware: FirmwareChoice,
) -> Answer:
    """Compare sizes with budgets and accepted references; without names, all of them.

    TARGET alone stands for its runner and all models.

    --executorch runs cases with the checkout's runner and compares them with accepted runs of it;
    without names, and for TARGET alone, all that have one.

    In CI ($CI is set, or --strict, or the setting `unproven = "fail"`) the gate fails closed: a
    subject that nothing was accepted of fails, and so does a reference whose model or target is no
    longer there, with the name that it may have now. At a desk both are reported, and exit 0.

    \b
    Examples:
      hil gate
      hil gate --strict --allow-new my_model
      hil gate corstone-300-m55
      hil gate --comment        # with GITHUB_TOKEN, and permissions: pull-requests: write
      hil gate corstone-300-m55/runner corstone-300-m55/ds_cnn
      hil gate --executorch ~/executorch --comment
    """
    strict = strict or is_strict()
    if firmware != FirmwareChoice():
        options = RunOptions(firmware=firmware, strict=strict, allow_new=allow_new)
        return _gate_runs(subjects, options, markdown=markdown, comment=comment)
    named = [[parse_case(s)] if "/" in s else subjects_of(s) for s in subjects]
    cases = [case for each in named for case in each] or every_subject()
    with progress_shown() as progress:
        gates = gate_cases(cases, progress, strict=strict, allow_new=allow_new)
        rest = [] if subjects else left_over(gates, strict=strict)
    for line in workflow_commands([*gates, *rest], os.environ):
        tell_ci(line)
    table = summary(gates, rest)
    append_to_step_summary(table, os.environ)
    if comment:
        echo(_comment(table), err=True)
    if markdown:
        echo(table)
    else:
        _say_gates(gates)
    for one in rest:
        echo(one.message(), fg="red" if one.failed else "yellow")
    failed = any(g.failed for g in gates) or any(one.failed for one in rest)
    return {
        "failed": failed,
        "gates": [g.summary() for g in gates],
        "left_over": list(map(asdict, rest)),
    }, ExitCode.FAILED if failed else ExitCode.PASSED


def _gate_runs(
    subjects: Sequence[str], options: RunOptions, markdown: bool, comment: bool
) -> Answer:
    if len(options.firmware.sources) > 1:
        raise UsageError("one firmware is gated, so --firmware both makes no sense here")
    options.firmware.checkout()  # a folder that is none is named first
    name = options.firmware.sources[0].name
    wanted = subjects or ["*"]
    named = [[parse_case(s)] if "/" in s else accepted_runs(name, s) for s in wanted]
    cases = [case for each in named for case in each]
    if not all(named) or any(case.model == RUNNER for case in cases):
        raise UsageError(
            f"there is no accepted run with the firmware {name} to compare with",
            hint="hil accept TARGET/MODEL --executorch DIR; of a runner alone: hil size --commits",
        )
    with progress_shown() as progress:
        records = run_cases(cases, options, progress)
    table = summary_of_runs(map(summarise, records))
    append_to_step_summary(table, os.environ)
    if comment:
        echo(_comment(table, f"<!-- hil-gate {name} -->"), err=True)
    if markdown:
        echo(table)
    else:
        print_records(terminal(), records)
    code = exit_code(records)
    return {"failed": bool(code), "gates": [], "cases": [r.summary() for r in records]}, code


def _comment(table: str, marker: str = "<!-- hil-gate -->") -> str:
    """Post ``table``; return what was done. Raises UsageError without a token, NotDelivered."""
    number = origin_of(Path.cwd(), os.environ).pull_request
    if not number:
        return "hil: no pull request, so no comment"
    issues = issues_of(os.environ)
    if issues is None:
        raise UsageError(
            "--comment needs a token and the name of the repository",
            hint="set GITHUB_TOKEN and GITHUB_REPOSITORY; the job needs permissions: "
            "pull-requests: write",
        )
    return f"hil: comment {issues.comment_once(int(number), marker, table)}"


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
