"""An explanation for people."""

from __future__ import annotations

import click

from harness.link.failure import Failure
from harness.link.why.explain import Explanation

_MOST = 20


def print_explanation(explanation: Explanation) -> None:
    if not explanation.failures:
        click.echo(f"{explanation.source}: no failed link")
        return
    for failure in explanation.failures[:_MOST]:
        _print(failure)
    more = len(explanation.failures) - _MOST
    if more > 0:
        click.echo(f"... and {more} more; --json has all")


def _print(failure: Failure) -> None:
    much = f" by {failure.bytes} bytes" if failure.bytes is not None else ""
    kind = failure.kind.value.replace("_", " ")
    click.secho(f"{kind}: {failure.subject}{much}", fg="red", bold=True)
    click.echo(f"  cause  {failure.cause}")
    for place in failure.places[1:3]:
        click.echo(f"         also {place}")
    for piece in failure.contributors[:5]:
        click.echo(f"         {piece.bytes:>9} bytes  {piece.section}  {piece.file}")
    for orphan in failure.orphans[:3]:
        click.echo(f"         orphan {orphan.section}, {orphan.bytes} bytes, in {orphan.region}")
    click.echo(f"  fix    {failure.fix}")
