"""``hil bench``: options and help; the work is done elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli.progress import progress_shown
from harness.cli.verb import echo, verb
from harness.errors.verdict import ExitCode
from harness.system.progress import Progress

_WHAT = ("all", "instructions", "warm", "export", "verdict", "npu", "mutants")


@click.command()
@click.argument("what", type=click.Choice(_WHAT), default="all")
@click.option("--ending", "endings", multiple=True, help="Only this ending of `verdict`.")
@click.option("--only", multiple=True, metavar="ID", help="Only this bug of `mutants`.")
@click.option(
    "--executorch",
    "checkout",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="For `mutants`: the checkout, as for `hil run`.",
)
@click.option("--part", "parts", multiple=True, metavar="NAME=DIR", help="As for `hil run`.")
@verb
def bench(
    what: str, endings: tuple[str, ...], only: tuple[str, ...], checkout: Path | None,
    parts: tuple[str, ...], as_json: bool,
) -> tuple[Any, ExitCode]:  # fmt: skip
    """Measure: instructions beside CMSIS-NN's, warm-run overhead, export speed; as ratios.

    `verdict` measures the time from each way to end to its verdict, `npu` the functional
    Ethos-U model beside the TOSA reference model.

    `mutants` plants bugs, one at a time, in copies of a checkout of ExecuTorch and of parts of
    its build, builds each and says which run notices it; a bug that none notices fails. Your
    checkout is not written to; what is not committed in it is left out.

    \b
    Examples:
      hil bench npu
      hil bench mutants --executorch ~/executorch
      hil bench mutants --executorch ~/executorch --only conv-bias --only npu-last-byte
    """

    with progress_shown(as_json) as progress:
        if what == "mutants":
            from harness.build.choice import choose
            from harness.dev.bench.mutant_ground import measure_mutants

            found: Any = measure_mutants(choose("executorch", checkout, parts), only, progress)
        else:
            found = _measure(what, endings, progress)
    if not as_json:
        echo(found.text())
    return found.summary(), getattr(found, "exit_code", ExitCode.PASSED)


def _measure(what: str, endings: tuple[str, ...], progress: Progress) -> Any:
    """Something with ``text()`` and ``summary()``, and perhaps an exit code of its own."""
    if what == "verdict":
        from harness.dev.bench.verdict import measure_verdicts

        return measure_verdicts(progress, endings)
    if what == "npu":
        from harness.dev.bench.npu import measure_npu

        return measure_npu(progress)
    from harness.dev.bench.ratios import measure_all

    return measure_all(what, progress)
