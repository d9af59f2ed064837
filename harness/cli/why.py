"""``hil why`` and ``open``: what a run was, and pages about sizes; the work is done elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.verb import echo, verb
from harness.core.verdict import ExitCode

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
    from harness.log.pattern import text
    from harness.sim.run_files import CONSOLE

    if record.cause is None or record.cause.line is None or record.run_dir is None:
        return
    try:
        lines = (Path(record.run_dir) / CONSOLE).read_bytes().splitlines()
    except OSError:
        return
    at = record.cause.line
    for number in range(max(1, at - _AROUND), min(len(lines), at + _AROUND) + 1):
        yield f"{number}: {text(lines[number - 1])[:_WIDEST]}"
