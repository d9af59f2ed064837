"""The ``hil`` command: options, help and exit codes; the work is done elsewhere."""

from __future__ import annotations

import functools
import importlib
import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import click

from harness.errors import HarnessError

EPILOG = (
    "Exit codes: 0 all passed, 1 a product failure or nothing proven, 2 wrong usage or a bad "
    "target file, 3 infrastructure (a tool is missing, a simulator does not start)."
)
_Verb = TypeVar("_Verb", bound=Callable[..., Any])


# Verbs that live in modules of their own, imported only when they are asked for.
_ELSEWHERE = {
    "size": "harness.size_cli",
    "gate": "harness.size_cli",
    "link": "harness.link_cli",
    "npu": "harness.npu_cli",
    "standin": "harness.standin_cli",
    "conformance": "harness.standin_cli",
}


class _Verbs(click.Group):
    """A group that lists its verbs in the order of the work, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.commands, *_ELSEWHERE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        command = getattr(importlib.import_module(_ELSEWHERE[cmd_name]), cmd_name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Verbs, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="executorch-hil", prog_name="hil")
def main() -> None:
    """Test ExecuTorch programs on Arm targets: export, build, simulate, judge.

    \b
    Start with:
      hil run corstone-300-m55 ds_cnn
      hil doctor
    """


def verb(function: _Verb) -> _Verb:
    """Give a command ``--json`` and the common way to fail.

    The function gets ``as_json`` and returns the object to print when it is set.
    """

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
    @functools.wraps(function)
    def wrapped(*args: Any, as_json: bool, **kwargs: Any) -> None:
        try:
            result, code = function(*args, as_json=as_json, **kwargs)
        except HarnessError as error:
            result, code = _error_object(error), error.exit_code
            if not as_json:
                _say_error(error)
        except KeyboardInterrupt:
            click.echo("hil: interrupted", err=True)
            sys.exit(130)
        if as_json:
            click.echo(json.dumps(result, indent=1, default=str))
        sys.exit(code)

    return wrapped  # type: ignore[return-value]


def _error_object(error: HarnessError) -> dict[str, Any]:
    cause = {"kind": error.kind, "text": error.message, "line": None, "facts": error.facts}
    return {
        "verdict": error.verdict,
        "cause": cause,
        "hint": error.hint,
        "metrics": {},
        "run_dir": None,
    }


def _say_error(error: HarnessError) -> None:
    click.secho(f"hil: error: {error.message}", err=True, fg="red")
    if error.hint:
        click.echo(f"hil: {error.hint}", err=True)


def _progress(as_json: bool) -> AbstractContextManager[Callable[[str], None]]:
    from harness.report.progress import terminal_progress

    return terminal_progress(quiet=as_json)


@main.command()
@click.argument("target")
@click.argument("models", nargs=-1, metavar="MODEL...")
@click.option(
    "--model",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A model file with ModelUnderTest and ModelInputs; may be repeated.",
)
@click.option(
    "--simulator",
    default="auto",
    show_default=True,
    help="One of the target's simulators; auto takes an installed FVP first.",
)
@click.option(
    "--pte",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Run this program in place of the exported one (one model only).",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    metavar="LSB",
    help="Accept output differences up to this many steps.",
)
@click.option("--profile", is_flag=True, help="Also print instructions per operator.")
@click.option(
    "--limit-factor",
    type=click.FloatRange(min=0, min_open=True, max=1000),
    help="Multiply all time limits, for a slow machine (default: $HIL_LIMIT_FACTOR or 1).",
)
@click.option(
    "--fvp-missing",
    type=click.Choice(["fail", "skip"]),
    help="What a case is whose FVP is not installed; fail when $CI is set, else skip.",
)
@verb
def run(
    target: str, models: tuple[str, ...], files: tuple[Path, ...], simulator: str,
    pte: Path | None, tolerance: float, profile: bool, limit_factor: float | None,
    fvp_missing: str | None, as_json: bool,
) -> tuple[Any, int]:  # fmt: skip
    """Export MODELs, build the runner for TARGET, simulate, and judge against the reference.

    MODEL is a name from `hil models` or a .py file.

    \b
    Examples:
      hil run corstone-300-m55 ds_cnn resnet8 mobilenet_v1_025 deep_autoencoder
      hil run host --model my_model.py
      hil run corstone-300-m55 ds_cnn --pte changed.pte --json
    """
    from harness.case import Case
    from harness.errors import UsageError
    from harness.pipeline import RunOptions, run_cases
    from harness.report import exit_code, overall
    from harness.simulate.fvp import missing_policy

    wanted = [*models, *map(str, files)]
    if not wanted:
        raise UsageError("no model was named", hint="`hil models` lists them; or --model FILE.py")
    if pte is not None and len(wanted) != 1:
        raise UsageError(f"--pte replaces one program, but {len(wanted)} models were named")
    missing = fvp_missing or missing_policy()
    options = RunOptions(simulator, tolerance, pte, profile, limit_factor, missing)
    with _progress(as_json) as progress:
        records = run_cases([Case(target, m) for m in wanted], options, progress)
    if not as_json:
        from rich.console import Console

        from harness.report.terminal import print_profile, print_records

        print_records(Console(), records)
        if profile:
            print_profile(Console(), records)
    speaker = overall(records)
    summary = {**(speaker.summary() if speaker else {}), "cases": [r.summary() for r in records]}
    return summary, exit_code(records)


@main.command("exec")
@click.argument("target")
@click.argument("program", type=click.Path(path_type=Path), metavar="FILE.pte|.bpte")
@click.option(
    "-i",
    "inputs",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="IN.bin",
    help="Raw bytes of an input in the method's own memory order; in order.",
)
@click.option(
    "-o",
    "base",
    type=click.Path(path_type=Path),
    metavar="BASE",
    help="Outputs are written to BASE-0.bin, BASE-1.bin, ... (default: out)",
)
@click.option("--simulator", default="auto", show_default=True)
@verb
def exec_(
    target: str, program: Path, inputs: tuple[Path, ...], base: Path | None, simulator: str,
    as_json: bool,
) -> tuple[Any, int]:  # fmt: skip
    """Run a given program on given raw inputs and write its outputs; nothing is judged.

    A .bpte without -i runs its bundled test cases.

    \b
    Example:
      hil exec corstone-300-m55 model.pte -i image.bin -o /tmp/out
    """
    from harness.execute import execute

    with _progress(as_json) as progress:
        result = execute(target, program, inputs, base or Path("out"), simulator, progress)
    if not as_json:
        result.print()
    return result.summary(), result.exit_code


@main.command("judge")
@click.argument("run_dir", metavar="RUN_DIR|LOG", type=click.Path(path_type=Path))
@click.option(
    "--elf",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The firmware of a LOG, to name the functions its faults were in.",
)
@verb
def judge_(run_dir: Path, elf: Path | None, as_json: bool) -> tuple[Any, int]:
    """Judge a finished run again, offline, from its directory; or a lone console log.

    A LOG is from anybody's CI. It passes only when a runner in it completed and compared its
    own outputs (Test_result: PASS); what a log cannot tell is listed.

    \b
    Examples:
      hil judge .hil/runs/20260101-120000-ds_cnn-1a2b3c
      hil judge fvp.log --elf arm_executor_runner
    """
    from harness.report import exit_code, log_exit_code

    if run_dir.is_file():
        from harness.report.log import judge_file, log_text

        log = judge_file(run_dir, elf)
        if not as_json:
            click.echo(log_text(log))
        return log.summary(), log_exit_code(log.verdict)
    from harness.pipeline import judge_again

    record = judge_again(run_dir)
    if not as_json:
        from rich.console import Console

        from harness.report.terminal import print_records

        print_records(Console(), [record])
    return record.summary(), exit_code([record])


@main.command()
@click.argument("case", metavar="TARGET/MODEL")
@click.option("--reason", required=True, help="Why this is the new reference; kept in its history.")
@click.option("--dry-run", is_flag=True, help="Show the change, write nothing.")
@verb
def accept(case: str, reason: str, dry_run: bool, as_json: bool) -> tuple[Any, int]:
    """Run a case and propose its figures as the new reference run, shown as a diff.

    The file under references/ is changed for you to review and commit. A case whose outputs do
    not match is refused.

    \b
    Example:
      hil accept corstone-300-m55/ds_cnn --reason "faster depthwise kernel, +400 B"
    """
    from harness.accept import accept_case

    with _progress(as_json) as progress:
        proposal = accept_case(case, reason, dry_run=dry_run, progress=progress)
    if not as_json:
        click.echo(proposal.text())
    return proposal.summary(), 0


@main.command()
@verb
def targets(as_json: bool) -> tuple[Any, int]:
    """List the targets and which of their simulators are installed."""
    from harness.listing import list_targets

    return list_targets(show=not as_json), 0


@main.command()
@verb
def models(as_json: bool) -> tuple[Any, int]:
    """List the models, and why some that ExecuTorch names are not among them."""
    from harness.listing import list_models

    return list_models(show=not as_json), 0


@main.command()
@verb
def doctor(as_json: bool) -> tuple[Any, int]:
    """Show each tool, its version, and how to get what is missing (FVPs included)."""
    from harness.listing import list_tools

    return list_tools(show=not as_json)


@main.command()
@click.argument(
    "what",
    type=click.Choice(["all", "instructions", "warm", "export", "verdict"]),
    default="all",
)
@verb
def bench(what: str, as_json: bool) -> tuple[Any, int]:
    """Measure: instructions beside CMSIS-NN's, warm-run overhead, export speed; as ratios.

    `verdict` measures the time from each way to end to its verdict.
    """
    from harness.bench import measure_all

    if what == "verdict":
        from harness.bench_verdict import measure_verdicts

        with _progress(as_json) as progress:
            endings = measure_verdicts(progress)
        if not as_json:
            click.echo(endings.text())
        return endings.summary(), endings.exit_code

    with _progress(as_json) as progress:
        results = measure_all(what, progress)
    if not as_json:
        click.echo(results.text())
    return results.summary(), 0


@main.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--fuzz-seconds",
    default=60,
    show_default=True,
    type=click.IntRange(min=0),
    help="How long the program loader is fuzzed; 0 leaves it out.",
)
@click.option("--only", multiple=True, help="Only these steps; `--only list` names them.")
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
@verb
def test(
    fuzz_seconds: int, only: tuple[str, ...], pytest_args: tuple[str, ...], as_json: bool
) -> tuple[Any, int]:
    """Run the project's whole test suite: style, types, C++ and Python tests, fuzzing.

    \b
    Examples:
      hil test
      hil test --only pytest -m cortex_m55
    """
    from harness.selftest import run_steps

    return run_steps(only, fuzz_seconds, pytest_args, as_json=as_json)
