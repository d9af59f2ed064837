"""The ``hil`` command: options, help and exit codes; the work is done elsewhere.

One module for each group of verbs; ``verb.py`` is what they share.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from harness.core.verdict import ExitCode
from harness.system.cancellation import is_cancelled, signals_cancel

EPILOG = (
    "Exit codes: 0 all passed, 1 a product failure or nothing proven, 2 wrong usage: an option, a "
    "target file or a model file, 3 infrastructure (a tool is missing, a simulator does not start)."
)

# The subcommands in workflow order; each module is imported when its command is called.
_VERBS = {
    "run": "harness.cli.run:run",
    "exec": "harness.cli.run:exec_",
    "why": "harness.cli.judge:why",
    "judge": "harness.cli.judge:judge_",
    "accept": "harness.cli.judge:accept",
    "bundle": "harness.cli.reproduce:bundle",
    "replay": "harness.cli.reproduce:replay",
    "size": "harness.cli.size:size",
    "gate": "harness.cli.size:gate",
    "link": "harness.cli.link:link",
    "npu": "harness.cli.npu:npu",
    "standin": "harness.cli.suite:standin",
    "suite": "harness.cli.suite:suite",
    "bisect": "harness.cli.reproduce:bisect",
    "nightly": "harness.cli.nightly:nightly",
    "history": "harness.cli.history:history",
    "targets": "harness.cli.tools:targets",
    "models": "harness.cli.tools:models",
    "doctor": "harness.cli.tools:doctor",
    "prune": "harness.cli.tools:prune",
    "init": "harness.cli.init:init",
    "zephyr": "harness.cli.init:zephyr",
}


class _Group(click.Group):
    """Lists its subcommands in workflow order, not alphabetically.

    A subcommand that cannot be imported ends as its own errors do (``verb``).
    """

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **kwargs)
        except Exception as error:  # the top-level error handler
            from harness.cli.verb import failure_of, print_error

            failure = failure_of(error)
            print_error(failure)
            sys.exit(failure.exit_code)

    def invoke(self, ctx: click.Context) -> Any:
        """A signal is obeyed from here on: a command's module may take a second to import."""
        try:
            with signals_cancel():
                return super().invoke(ctx)
        except (KeyboardInterrupt, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not is_cancelled():
                raise
            click.echo("hil: interrupted", err=True)
            sys.exit(ExitCode.INTERRUPTED)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _VERBS:
            return None
        module, _, name = _VERBS[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command


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
