"""``hil run``, ``exec`` and ``fvp``: options and help; the work is done elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from harness.cli.options import (
    allow_new_option,
    exporter_option,
    firmware_options,
    known_defect_option,
    limit_factor_option,
    simulator_option,
    tolerance_option,
)
from harness.cli.verb import EXISTING_FILE, FILE, PATH, Answer, echo, progress_shown, terminal, verb
from harness.config.case import Case
from harness.config.loading import target_files
from harness.config.models import known_models
from harness.core.errors import HarnessError, UsageError
from harness.core.verdict import exit_code as code_of
from harness.firmware.source import Arithmetic
from harness.report.summary import append_to_step_summary, summarise, summary_of_runs
from harness.report.terminal import (
    print_differentials,
    print_profile,
    print_records,
    representative,
)
from harness.run.execution import Execution, execute
from harness.run.fvp_check import check_fvps
from harness.run.pipeline import RunOptions, run_cases
from harness.run.prune import prune_when_due
from harness.run.record import exit_code
from harness.system.files import disk_errors, write_whole


def complete_target(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    try:
        return _items(target_files(), incomplete)
    except HarnessError:  # the verb itself reports it
        return []


def complete_model(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return _items(known_models(), incomplete)


def _items(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Return the names that begin so; without any, the shell completes a file's path."""
    matches = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return matches or [CompletionItem(incomplete, type="file")]


@click.command()
@click.argument("target", shell_complete=complete_target)
@click.argument("models", nargs=-1, metavar="MODEL...", shell_complete=complete_model)
@simulator_option
@click.option(
    "--pte",
    type=EXISTING_FILE,
    help="Run this program instead of the exported one (one model only).",
)
@tolerance_option
@known_defect_option
@allow_new_option
@click.option(
    "--oracle",
    type=click.Choice([arithmetic.value for arithmetic in Arithmetic]),
    callback=lambda _context, _option, word: None if word is None else Arithmetic(word),
    help="The arithmetic that the outputs have to show where ExecuTorch's C++ kernels and its "
    "Python definitions differ; the bundled runner is built to follow it. Default: what the "
    "firmware follows, cmsis-nn.",
)
@click.option("--profile", is_flag=True, help="Also print what each layer costs.")
@click.option("--fresh", is_flag=True, help="Export again, even if nothing has changed.")
@click.option(
    "--isolate-export",
    is_flag=True,
    help="Export in the guests' sandbox: no network, only the model's folder to read and the "
    "result to write.",
)
@limit_factor_option
@verb
@exporter_option
@firmware_options
def run(target: str, models: tuple[str, ...], **options: Any) -> Answer:
    """Export MODELs, build the runner for TARGET, simulate, and judge against the reference.

    MODEL is a name from `hil models` or a .py file. The runner is the bundled one. --executorch
    builds the runner, kernels and drivers of a checkout of ExecuTorch instead, and --firmware both
    runs both. --firmware wheel takes ExecuTorch's own runtime from its wheel, for a target with
    Linux and a program that is lowered for it (TARGET@LOWERING; `hil targets` lists them). The
    installed wheel exports; --exporter checkout, or a program whose operators the checkout
    declares otherwise, makes the checkout export.

    In CI ($CI is set, or the setting `unproven = "fail"`) a case that was never accepted
    (`hil accept`) fails, unless --allow-new names it. At a desk it gets a note.

    A model file is Python and runs with your rights while it is exported: run only what you
    trust, or use --isolate-export. The program on the target runs in a sandbox if the
    machine has one (docs/security.md).

    \b
    Examples:
      hil run corstone-300-m55 ds_cnn resnet8 mobilenet_v1_025 deep_autoencoder
      hil run host my_model.py
      hil run host strangers_model.py --isolate-export
      hil run corstone-300-m55 ds_cnn --pte changed.pte --json
      hil run corstone-300-u55-128 ds_cnn --profile
      hil run corstone-300-m55 ds_cnn --oracle python
      hil run corstone-300-m55 ds_cnn --executorch ~/executorch --firmware both
      hil run corstone-1000-a320@xnnpack-int8 resnet8 --firmware wheel
      hil run corstone-300-m55 ds_cnn --executorch ~/executorch --exporter checkout
    """
    first, _, second = options.pop("simulator").partition("+")
    run_options = RunOptions(simulator=first, beside=second or None, **options)
    if not models:
        raise UsageError("no model was named", hint="`hil models` lists them; or name a FILE.py")
    if run_options.pte is not None and len(models) != 1:
        raise UsageError(
            f"--pte replaces one program, but {len(models)} models were named",
            hint="name one model: the one whose inputs and outputs it has",
        )
    if run_options.isolate_export and run_options.exporter.root is not None:
        raise UsageError(
            "--isolate-export is for the installed wheel, not for a checkout's exporter",
            hint="leave one of the two out",
        )
    return _run([Case(target, model) for model in models], run_options)


def _run(cases: Sequence[Case], options: RunOptions) -> Answer:
    with progress_shown() as progress:
        records = run_cases(cases, options, progress)
    print_records(terminal(), records)
    print_differentials(terminal(), records)
    if options.profile:
        print_profile(terminal(), records)
    append_to_step_summary(summary_of_runs(map(summarise, records)), os.environ)
    prune_when_due()
    shown = representative(records)
    summary = {**(shown.summary() if shown else {}), "cases": [r.summary() for r in records]}
    return summary, exit_code(records)


@click.command("exec")
@click.argument("target", shell_complete=complete_target)
@click.argument("program", type=PATH, metavar="FILE.pte|.bpte")
@click.option(
    "-i",
    "inputs",
    multiple=True,
    type=PATH,
    metavar="IN.bin",
    help="Raw bytes of an input in the method's own memory order; in order.",
)
@click.option(
    "-o",
    "base",
    type=PATH,
    default=Path("out"),
    show_default=True,
    metavar="BASE",
    help="Outputs are written to BASE-0.bin, BASE-1.bin, ...",
)
@simulator_option
@limit_factor_option
@verb
@firmware_options
def exec_(
    target: str,
    program: Path,
    inputs: tuple[Path, ...],
    base: Path,
    **options: Any,
) -> Answer:
    """Run a given program on given raw inputs and write its outputs; nothing is judged.

    A .bpte without -i runs its bundled test cases. The program is confined: it has no network,
    no other process, and only its run directory to write to. Anything else that it tries
    fails. --firmware both writes the outputs of
    ExecuTorch's runner go to BASE.executorch-0.bin and so on.

    \b
    Examples:
      hil exec corstone-300-m55 model.pte -i image.bin -o /tmp/out
      hil exec corstone-300-m55 model.pte -i image.bin --executorch ~/executorch
    """
    with progress_shown() as progress:
        results = execute(target, program, inputs, base, RunOptions(**options), progress)
    for result in results:
        _print_execution(result, several=len(results) > 1)
    shown = next((r for r in results if r.verdict is not None), results[0])
    more = {"runs": list(map(asdict, results))} if len(results) > 1 else {}
    return {**asdict(shown), **more}, shown.exit_code


def _print_execution(execution: Execution, *, several: bool) -> None:
    cause = execution.cause
    if several:
        echo(f"hil: {execution.firmware}:", err=True)
    if cause is not None:
        echo(f"hil: {execution.verdict} {cause.label}: {cause.text}", err=True, fg="red")
        echo(f"hil: evidence: {execution.run_dir}", err=True)
    for path in execution.outputs:
        echo(path)


@click.group()
def fvp() -> None:
    """Try the FVPs that are installed here.

    \b
    Examples:
      hil fvp check
      hil fvp check FVP_Corstone_SSE-320 -o fvp.json
    """


@fvp.command()
@click.argument("name", required=False)
@click.option("-o", "--output", type=FILE, default=Path("fvp-check.json"), show_default=True)
@verb
def check(name: str | None, output: Path) -> Answer:
    """Ask each FVP, or NAME, for its version and parameters, and run three small models on it.

    Writes one file: versions, parameter names, consoles, exit states and times. Paths and the name
    of this machine are replaced. No FVP was available to this project: please send the file
    (docs/how-to/fvp.md).
    """
    with progress_shown() as progress:
        file = check_fvps(name, progress)
    with disk_errors("writing the file"):
        write_whole(output, json.dumps(asdict(file), indent=1) + "\n")
    for each in file.fvps:
        whose = " (stand-in)" if each.stand_in else ""
        echo(f"{each.name}{whose}: {len(each.parameters)} parameters")
        for run in each.runs:
            seconds = "" if run.ending is None else f" in {run.ending.seconds:.1f} s"
            why = f": {run.cause}: {run.text}" if run.cause else ""
            again = "" if run.replay()[0] is run.verdict else " (the file alone shows less)"
            echo(f"  {run.target}/{run.model}: {run.verdict}{seconds}{why}{again}")
    echo(f"wrote {output}")
    verdicts = (run.verdict for each in file.fvps for run in each.runs)
    return {"file": str(output), **asdict(file)}, code_of(verdicts)
