"""``hil link``: options, help, exit codes and what a terminal shows."""

from __future__ import annotations

import re
from pathlib import Path

import click

from harness.cli.options import firmware_options
from harness.cli.verb import PATH, Answer, echo, progress_shown, verb
from harness.core.errors import UsageError
from harness.core.verdict import ExitCode
from harness.firmware.choice import FirmwareChoice
from harness.link.build_failure import BuildFailure
from harness.link.check import check, require_no_overlap
from harness.link.diagnose.explain import Explanation, explain
from harness.link.failure import Failure
from harness.link.reduce import reduce_build
from harness.run.subjects import tree_of


@click.group()
def link() -> None:
    """Why a link failed, the smallest thing that still fails, and whether a hook is one."""


@link.command("explain")
@click.argument("log_or_build", type=PATH, metavar="LOG|BUILD_DIR|TARGET/runner")
@verb
@firmware_options
def explain_(log_or_build: Path, firmware: FirmwareChoice) -> Answer:
    """Explain why a link failed and how to fix it, from a log or a build directory.

    Reads GNU ld, lld, armlink and IAR's ilink, and the error lines of other linkers. The objects
    are read too, where they still exist. For a build directory, the build tool first lists the
    open steps. Exits with 0 when the final link succeeded and the build ended, else with 1: an
    empty log proves nothing, and a cut log is `unfinished`. TARGET/runner is the build tree of a
    target's firmware.

    \b
    Examples:
      hil link explain build.log
      hil link explain build --json
      hil link explain corstone-300-u55-128/runner --executorch ~/executorch
    """
    with progress_shown() as progress:
        explanation = explain(tree_of(log_or_build, firmware), progress)
    print_explanation(explanation)
    return explanation.summary(), ExitCode.PASSED if explanation.well else ExitCode.FAILED


@link.command("reduce")
@click.argument("build", type=PATH, metavar="BUILD_DIR|TARGET/runner")
@click.option(
    "-o",
    "out",
    type=PATH,
    metavar="DIR",
    help="Where the folder goes (default: BUILD_DIR-reduced).",
)
@verb
@firmware_options
def reduce_(build: Path, out: Path | None, firmware: FirmwareChoice) -> Answer:
    """Reduce a failing link to a folder that fails in the same way and needs only the toolchain.

    \b
    Examples:
      hil link reduce build
      hil link reduce build -o /tmp/report
    """
    tree = tree_of(build, firmware)
    if out is None:
        out = build.parent / f"{build.name}-reduced" if tree == build else Path("runner-reduced")
    with progress_shown() as progress:
        reduced = reduce_build(tree, out, progress)
    echo(reduced.text())
    return reduced.summary(), ExitCode.PASSED


@link.command("check")
@click.argument("elf_or_build", type=PATH, metavar="ELF|BUILD_DIR|TARGET/runner")
@click.option(
    "--overridable",
    "symbols",
    multiple=True,
    metavar="SYMBOL",
    help="A function with a weak default; may be repeated.",
)
@verb
@firmware_options
def check_(elf_or_build: Path, symbols: tuple[str, ...], firmware: FirmwareChoice) -> Answer:
    """Check that no two sections of a program lie over each other when it runs.

    It also checks, with --overridable, that a weak hook can be overridden, in every program of a
    build directory.

    GNU ld does not look for overlaps when two sections begin at one address: two memory regions
    over one memory link without a word, and the program clears its own code when it starts.

    \b
    Examples:
      hil link check build/zephyr/zephyr.elf
      hil link check build --overridable arm_ethos_io_memcpy
      hil link check build/runner.elf --overridable arm_ethos_io_memcpy --json
    """
    tree = tree_of(elf_or_build, firmware)
    programs = require_no_overlap(tree)
    for program in programs:
        echo(f"ok    {program}: no section lies over another at run time")
    if not programs and not symbols:
        raise UsageError(f"{tree} has no linked program", hint="build it first", path=tree)
    if not symbols:
        return {"programs": programs}, ExitCode.PASSED
    with progress_shown() as progress:
        result = check(tree, symbols, progress)
    echo(result.text())
    return {
        "programs": programs,
        **result.summary(),
    }, ExitCode.PASSED if result.holds else ExitCode.FAILED


_MOST_FAILURES = 20
_WIDEST = 300
_IN_FRONT = re.compile(r"^.*\b(?i:error|warning): ")  # of what a tool says


def print_explanation(explanation: Explanation) -> None:
    """For each failure: what to do and where, then its cause, the evidence, the message."""
    source = explanation.source
    if explanation.stopped is not None:
        _print_build_failure(source, explanation.stopped)
    elif explanation.unfinished is not None:
        do = "Run the build to its end, then explain its whole log or the build directory"
        _print_answer(do, source, "unfinished: the build is not seen to have ended")
        echo(f"  evidence  the last step: {explanation.unfinished[:_WIDEST]}")
    elif not explanation.failures:
        result = "no failed link" if explanation.linked else "no link was recognised"
        echo(f"{source}: {result}")
    if explanation.failures and explanation.image:
        echo(f"In the image {explanation.image}:")
    for failure in explanation.failures[:_MOST_FAILURES]:
        _print_failure(source, failure)
    more = len(explanation.failures) - _MOST_FAILURES
    if more > 0:
        rest = "the log has others, which were not read" if explanation.more else "--json has all"
        echo(f"... and {more} more; {rest}")


def _print_answer(do: str, place: str, cause: str) -> None:
    echo(do if place in do else f"{do} ({place})", fg="red", bold=True)
    echo(f"  cause     {cause}")


def _print_message(source: str, line: int, text: str, told: str) -> None:
    """Print the place of the message, and its text unless fix and cause already have it."""
    said = _IN_FRONT.sub("", text)
    repeats = "".join(filter(str.isalnum, said)) in "".join(filter(str.isalnum, told))
    echo(f"  message   {source}:{line}" + ("" if repeats else f": {text[:_WIDEST]}"))


def _print_build_failure(source: str, failure: BuildFailure) -> None:
    place = failure.where or f"{source}:{failure.line}"
    do = failure.fix or "Correct what the message says; nothing else is known of it."
    where = f" of the image {failure.image}" if failure.image else ""
    _print_answer(do, place, f"the build{where} stopped {failure.stage}: {failure.cause}")
    _print_message(source, failure.line, failure.text, f"{do} {failure.cause}")


def _print_failure(source: str, failure: Failure) -> None:
    kind = failure.kind.value.replace("_", " ")
    places = list(dict.fromkeys(map(str, failure.places)))  # some differ in their offset alone
    do = failure.fix or f"Find out what is wrong with {failure.subject}; nothing is known to help."
    place = places[0] if places else f"{source}:{failure.line}"
    _print_answer(do, place, f"{kind}: {failure.cause}")
    for place in places[1:3]:
        echo(f"  evidence  also {place}")
    if failure.also:
        more = f" and {len(failure.also) - 8} more" if len(failure.also) > 8 else ""
        echo(f"  evidence  also {', '.join(failure.also[:8])}{more}")
    for piece in failure.contributors[:5]:
        echo(f"  evidence  {piece.bytes:>9} bytes  {piece.section}  {piece.file}")
    for orphan in failure.orphans[:3]:
        echo(f"  evidence  orphan {orphan.section}, {orphan.bytes} bytes, in {orphan.region}")
    _print_message(source, failure.line, failure.text, f"{do} {failure.cause}")
