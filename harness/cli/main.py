"""The ``hil`` command: options, help and exit codes; the work is done elsewhere.

One module for each group of verbs; ``verb.py`` is what they share.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import click

from harness.core.verdict import ExitCode
from harness.system.cancellation import end_process, is_cancelled, signals_cancel

EPILOG = (
    "Exit codes: 0 all passed, 1 a product failure or nothing proven, 2 wrong usage: an option, a "
    "target file or a model file, 3 infrastructure (a tool is missing, a simulator does not start)."
)


class Verb(NamedTuple):
    module: str  # imported when the verb is called
    function: str
    help: str  # at most 65 characters: a terminal of 80 columns shows it whole


_SECTIONS = {
    "Run and judge": {
        "run": Verb("run", "run", "export models, build the runner, simulate, and judge"),
        "exec": Verb("run", "exec_", "run a given program on given inputs, without judging"),
        "why": Verb("judge", "why", "explain the last recorded run, and what to do next"),
        "judge": Verb("judge", "judge_", "judge a finished run or a console log again, offline"),
        "accept": Verb("judge", "accept", "propose a run as the new accepted reference"),
        "bundle": Verb("reproduce", "bundle", "pack a run into one file, to run it elsewhere"),
        "replay": Verb("reproduce", "replay", "run a bundle again and compare"),
        "bisect": Verb("reproduce", "bisect", "find the commit of ExecuTorch that broke a case"),
        "npu": Verb("npu", "npu", "run, list and reduce Ethos-U command streams"),
    },
    "Sizes": {
        "size": Verb("size", "size", "account for every byte of a .pte or ELF, or compare two"),
        "gate": Verb("size", "gate", "compare sizes with budgets and accepted references"),
    },
    "Links": {
        "link": Verb("link", "link", "explain a failed link, and reduce it"),
    },
    "Nights and ExecuTorch's suites": {
        "nightly": Verb("nightly", "nightly", "run a suite of cases, and report what is new"),
        "history": Verb("history", "history", "show the runs of a case over the nights"),
        "suite": Verb("suite", "suite", "run ExecuTorch's own test suites on the FVP stand-in"),
        "standin": Verb("suite", "standin", "install the FVP's command line on top of QEMU"),
    },
    "Housekeeping": {
        "init": Verb("init", "init", "make a working example in your repository"),
        "zephyr": Verb("init", "zephyr", "make a Zephyr workspace for the zephyr-* targets"),
        "targets": Verb("tools", "targets", "list the targets, or all that is known of one"),
        "models": Verb("tools", "models", "list the models that come with the harness"),
        "fvp": Verb("run", "fvp", "check the installed FVPs, and write one file to send"),
        "doctor": Verb("tools", "doctor", "show what can run here, and how to get what is missing"),
        "prune": Verb("tools", "prune", "make .hil smaller"),
    },
}
_VERBS = {name: verb for section in _SECTIONS.values() for name, verb in section.items()}
_OF_A_CLONE = ("test", "bench")


class _Group(click.Group):
    """Lists its verbs by what they are for, and ends every error as a verb does."""

    of_a_clone = _OF_A_CLONE

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> NoReturn:
        words = sys.argv[1:] if args is None else list(args)
        try:
            options["standalone_mode"] = False
            with signals_cancel():
                code = super().main(words, *rest, **options)
        except click.ClickException as error:
            from harness.cli.verb import usage_error

            _fail(usage_error(error), words)
        except Exception as error:  # the top-level error handler
            if is_cancelled():  # click, Python and libraries make others of a KeyboardInterrupt
                end_process()
            _fail(error, words)
        sys.exit(code if isinstance(code, int) else ExitCode.PASSED)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _OF_A_CLONE:
            raise click.UsageError(f"'{cmd_name}' works in a clone only: ./hil {cmd_name}", ctx)
        if cmd_name not in _VERBS:
            return None
        module, name, _ = _VERBS[cmd_name]
        command = getattr(importlib.import_module(f"harness.cli.{module}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _VERBS)) + 1
        for title, verbs in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{width}}", verb.help) for name, verb in verbs.items()])


def _fail(error: Exception, words: Sequence[str]) -> NoReturn:
    from harness.cli.verb import print_failure

    sys.exit(print_failure(error, as_json="--json" in words))


@click.group(cls=_Group, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="executorch-hil", prog_name="hil")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def main(context: click.Context, debug: bool) -> None:
    """Test ExecuTorch programs on Arm targets: export, build, simulate, judge.

    \b
    Start with:
      hil run corstone-300-m55 ds_cnn
      hil doctor
    """
    context.obj = debug
