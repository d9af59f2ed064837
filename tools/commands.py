"""``./hil test`` and ``./hil bench`` of a clone: options and help; the work is done elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli.verb import Answer, echo, progress_shown, verb, wants_json
from harness.core.errors import UsageError
from harness.core.verdict import ExitCode
from harness.system.progress import Progress
from tools.selftest import Options, run_steps

_WHAT = (
    *("all", "instructions", "warm", "export"),
    *("verdict", "npu", "nightly", "plugin", "programs", "mutants"),
)


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Every combination, random cases by the thousand, long fuzzing: for a night.",
)
@click.option(
    "--fuzz-seconds",
    type=click.IntRange(min=0),
    help="How long each of the two fuzzers runs; 0 leaves it out.  [default: 5; with --all 300]",
)
@click.option("--only", multiple=True, help="Only these steps; `--only list` names them.")
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
@verb
def test(
    everything: bool,
    fuzz_seconds: int | None,
    only: tuple[str, ...],
    pytest_args: tuple[str, ...],
) -> Answer:
    """Run the project's test suite: style, types, C++ and Python tests, fuzzing.

    \b
    Examples:
      hil test
      hil test --all
      hil test --only pytest -m cortex_m55
    """
    if fuzz_seconds is None:
        fuzz_seconds = 300 if everything else 5
    options = Options(fuzz_seconds, everything, pytest_args)
    return run_steps(only, options, as_json=wants_json())


@click.command()
@click.argument("what", type=click.Choice(_WHAT), default="all")
@click.option("--ending", "endings", multiple=True, help="Only this ending of `verdict`.")
@click.option("--only", multiple=True, metavar="ID", help="Only this bug of `mutants`.")
@click.option("-k", "word", default="", metavar="WORD", help="Only bugs with it in ID, kind, file.")
@click.option(
    "-j", "jobs", type=click.IntRange(min=1), help="So many own `mutants` at a time.  [default: 1]"
)
@click.option("--resume", is_flag=True, help="Own `mutants`: go on with what was interrupted.")
@click.option(
    "--executorch",
    "checkout",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="`mutants` of this checkout, as for `hil run`, not of the project.",
)
@click.option("--part", "parts", multiple=True, metavar="NAME=DIR", help="As for `hil run`.")
@verb
def bench(
    what: str,
    endings: tuple[str, ...],
    only: tuple[str, ...],
    word: str,
    jobs: int | None,
    resume: bool,
    checkout: Path | None,
    parts: tuple[str, ...],
) -> Answer:
    """Measure: instructions beside CMSIS-NN's, warm-run overhead, export speed; as ratios.

    `verdict` measures the time from each way to end to its verdict, `npu` the functional
    Ethos-U model beside the TOSA reference model, `nightly` a night beside its simulations and
    a history of 100,000 runs ($HIL_BENCH_HISTORY: in an empty PostgreSQL, too), `plugin` what the
    pytest plugin costs a suite that does not use it.

    `programs` exports every model for every lowering in processes that stand for other machines,
    and fails where the bytes are not the same.

    `mutants` plants bugs, one at a time, and says what notices each; one that nothing notices
    fails. They are planted in copies of this project, and its own tests have to notice them; or,
    with --executorch, in copies of a checkout of ExecuTorch and of parts of its build, and runs
    have to. What they are copied from is not written to; of a checkout, what is not committed
    is left out.

    \b
    Examples:
      hil bench npu
      hil bench mutants -j 2
      hil bench mutants -k kernels/ --resume
      hil bench mutants --executorch ~/executorch --only conv-bias --only npu-last-byte
    """

    if checkout is not None and (jobs is not None or resume):
        raise UsageError("-j and --resume are for the project's own mutants, not a checkout's")
    if checkout is None and parts:
        raise UsageError("--part belongs to --executorch")
    with progress_shown() as progress:
        if what == "mutants":
            if checkout is None:
                from tools.bench.own_ground import measure_own

                found: Any = measure_own(only, word, jobs or 1, resume, progress)
            else:
                from harness.firmware.choice import choose
                from tools.bench.mutant_ground import measure_mutants

                firmware = choose("executorch", checkout, parts)
                found = measure_mutants(firmware, only, word, progress)
        else:
            found = _measure(what, endings, progress)
    echo(found.text())
    return found.summary(), getattr(found, "exit_code", ExitCode.PASSED)


def _measure(what: str, endings: tuple[str, ...], progress: Progress) -> Any:
    """Something with ``text()`` and ``summary()``, and perhaps an exit code of its own."""
    if what == "verdict":
        from tools.bench.verdict import measure_verdicts

        return measure_verdicts(progress, endings)
    if what == "npu":
        from tools.bench.npu import measure_npu

        return measure_npu(progress)
    if what == "programs":
        from tools.bench.programs import measure_programs

        return measure_programs(progress)
    if what == "plugin":
        from tools.bench.plugin import measure_plugin

        return measure_plugin(progress)
    if what == "nightly":
        from tools.bench.nightly import measure_nightly

        return measure_nightly(progress)
    from tools.bench.ratios import measure_all

    return measure_all(what, progress)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """The project's own tests and measurements; of a clone only."""


main.add_command(test)
main.add_command(bench)
