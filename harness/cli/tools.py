"""``hil targets``, ``models``, ``doctor``, ``bench`` and ``test``: options and help."""

from __future__ import annotations

from typing import Any

import click

from harness.cli.progress import progress_shown
from harness.cli.verb import verb
from harness.errors import ExitCode


@click.command()
@verb
def targets(as_json: bool) -> tuple[Any, ExitCode]:
    """List the targets and which of their simulators are installed."""
    from harness.report.listing import list_targets

    return list_targets(show=not as_json), ExitCode.PASSED


@click.command()
@verb
def models(as_json: bool) -> tuple[Any, ExitCode]:
    """List the models, and why some that ExecuTorch names are not among them."""
    from harness.report.listing import list_models

    return list_models(show=not as_json), ExitCode.PASSED


@click.command()
@verb
def doctor(as_json: bool) -> tuple[Any, ExitCode]:
    """Show each tool, its version, and how to get what is missing (FVPs included)."""
    from harness.report.listing import list_tools

    return list_tools(show=not as_json)


@click.command()
@click.argument(
    "what",
    type=click.Choice(["all", "instructions", "warm", "export", "verdict", "npu"]),
    default="all",
)
@click.option("--ending", "endings", multiple=True, help="Only this ending of `verdict`.")
@verb
def bench(what: str, endings: tuple[str, ...], as_json: bool) -> tuple[Any, ExitCode]:
    """Measure: instructions beside CMSIS-NN's, warm-run overhead, export speed; as ratios.

    `verdict` measures the time from each way to end to its verdict, `npu` the functional
    Ethos-U model beside the TOSA reference model.
    """
    from harness.dev.bench.ratios import measure_all

    if what == "verdict":
        from harness.dev.bench.verdict import measure_verdicts

        with progress_shown(as_json) as progress:
            timed = measure_verdicts(progress, endings)
        if not as_json:
            click.echo(timed.text())
        return timed.summary(), timed.exit_code

    if what == "npu":
        from harness.dev.bench.npu import measure_npu

        with progress_shown(as_json) as progress:
            npu = measure_npu(progress)
        if not as_json:
            click.echo(npu.text())
        return npu.summary(), ExitCode.PASSED

    with progress_shown(as_json) as progress:
        results = measure_all(what, progress)
    if not as_json:
        click.echo(results.text())
    return results.summary(), ExitCode.PASSED


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--fuzz-seconds",
    default=60,
    show_default=True,
    type=click.IntRange(min=0),
    help="How long each of the two fuzzers runs; 0 leaves it out.",
)
@click.option("--only", multiple=True, help="Only these steps; `--only list` names them.")
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
@verb
def test(
    fuzz_seconds: int, only: tuple[str, ...], pytest_args: tuple[str, ...], as_json: bool
) -> tuple[Any, ExitCode]:
    """Run the project's whole test suite: style, types, C++ and Python tests, fuzzing.

    \b
    Examples:
      hil test
      hil test --only pytest -m cortex_m55
    """
    from harness.dev.selftest import run_steps

    return run_steps(only, fuzz_seconds, pytest_args, as_json=as_json)
