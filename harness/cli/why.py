"""``hil why`` and ``open``: what a run was, and pages about sizes; the work is done elsewhere."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.progress import progress_shown
from harness.cli.verb import echo, verb
from harness.errors import UsageError
from harness.errors.verdict import ExitCode

if TYPE_CHECKING:
    from harness.run.record import RunRecord

_AROUND = 2  # lines of the console above and below the one that the cause names
_WIDEST = 300


@click.command()
@click.argument("subject", required=False, metavar="[TARGET/MODEL|RUN_DIR]")
@verb
def why(subject: str | None, as_json: bool) -> tuple[dict[str, Any], ExitCode]:
    """Explain the last recorded run, of a case or of any: verdict, cause, evidence, what to do.

    A case that ended before its program ran has no record; `hil run` said then why it did.

    \b
    Examples:
      hil why
      hil why corstone-300-m55/ds_cnn
      hil why .hil/runs/20260101-120000-ds_cnn-1a2b3c
    """
    from harness.report.causes import VERDICTS, advice
    from harness.run.last import last_run

    record = last_run(subject)
    said = advice(record.verdict, None if record.cause is None else record.cause.kind)
    console = list(_console(record))
    if not as_json:
        for line in _told(record, VERDICTS[record.verdict].meaning, said.meaning, said.do, console):
            echo(line)
    return {
        **record.summary(),
        "time": record.time,
        "meaning": said.meaning,
        "do": said.do,
        "console": console,
    }, ExitCode.PASSED


def _told(
    record: RunRecord, verdict: str, meaning: str, do: str, console: list[str]
) -> Iterator[str]:
    cause = record.cause
    yield f"{record.title}: {record.verdict_text}, {record.time}"
    yield f"  {record.verdict}: {verdict}"
    if cause is not None:
        yield f"  cause     {cause.kind}: {meaning}"
        yield f"            {cause.text}"
    yield from (f"  console   {line}" for line in console)
    yield from (f"  note      {note}" for note in record.notes)
    if not record.verdict.passed:
        yield f"  to do     {do}"
    yield f"  evidence  {record.run_dir}"
    yield f"  again     hil run {record.case.target} {record.case.model}"


def _console(record: RunRecord) -> Iterator[str]:
    """The lines around the one that the cause names, with their numbers."""
    from harness.observe.pattern import text
    from harness.simulate.transcript import CONSOLE

    if record.cause is None or record.cause.line is None or record.run_dir is None:
        return
    try:
        lines = (Path(record.run_dir) / CONSOLE).read_bytes().splitlines()
    except OSError:
        return
    at = record.cause.line
    for number in range(max(1, at - _AROUND), min(len(lines), at + _AROUND) + 1):
        yield f"{number}: {text(lines[number - 1])[:_WIDEST]}"


@click.command("open")
@click.argument("subject", required=False, metavar="[FILE|TARGET/MODEL|TARGET/runner|RUN_DIR]")
@click.option("--target", help="Whose memory regions an ELF is counted by.")
@verb
def open_(
    subject: str | None, target: str | None, as_json: bool
) -> tuple[dict[str, Any], ExitCode]:
    """Make a page of sizes, a treemap and a table, print its path, and show it in a browser.

    Of a FILE, of a target's runner, or of program and firmware of the last recorded run (of a
    case). A browser is opened at a terminal only. `hil size FILE --html OUT` writes it elsewhere.

    \b
    Examples:
      hil open model.pte
      hil open corstone-300-m55/ds_cnn
      hil open corstone-300-m55/runner
    """
    from harness.footprint.page import write_page
    from harness.run.measure import measure
    from harness.system.files import disk_errors
    from harness.system.paths import state_dir

    with progress_shown(as_json) as progress:
        things = _things(subject, target, progress)
    folder = state_dir() / "pages"
    with disk_errors("writing the page"):
        folder.mkdir(parents=True, exist_ok=True)
    pages = []
    for title, file, whose in things:
        page = folder / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', title).strip('-.')}.html"
        write_page(page, title, measure(file, whose))
        pages.append(page)
        if not as_json:
            echo(page)
    if sys.stdout.isatty() and not as_json:
        for page in pages:
            click.launch(page.as_uri())
    return {"pages": [str(page) for page in pages]}, ExitCode.PASSED


def _things(
    subject: str | None, target: str | None, progress: Any
) -> list[tuple[str, Path, str | None]]:
    """Title, file and target of each page."""
    from harness.build.choice import BUNDLED
    from harness.case.case import RUNNER
    from harness.run.last import last_run
    from harness.run.subject import firmware_of

    if subject is not None and Path(subject).is_file():
        return [(Path(subject).name, Path(subject), target)]
    if subject is not None and Path(subject).name == RUNNER:
        (built,) = firmware_of(Path(subject), BUNDLED, progress)
        return [(subject, built.elf, subject.partition("/")[0])]
    record = last_run(subject)
    program = None if record.program is None else Path(record.program.pte)
    elf = None if record.firmware is None else Path(record.firmware.elf)
    board = target or _known(record.case.target)
    found = [
        (f"{record.case.id}{kind}", file, whose)
        for kind, file, whose in ((".pte", program, None), (".elf", elf, board))
        if file is not None and file.is_file()
    ]
    if not found:
        raise UsageError(
            f"neither program nor firmware of {record.title} is there any more",
            hint=f"`hil run {record.case.target} {record.case.model}` makes them again",
        )
    return found


def _known(target: str) -> str | None:
    """A target that is there here, too: the run may be another repository's."""
    from harness.target.loading import load_target

    try:
        load_target(target)
    except UsageError:
        return None
    return target
