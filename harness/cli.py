"""The ``hil`` command: options, help and exit codes; the work is done elsewhere."""

from __future__ import annotations

import functools
import importlib
import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import click

from harness.errors import HarnessError

EPILOG = (
    "Exit codes: 0 all passed, 1 a product failure or nothing proven, 2 wrong usage or a bad "
    "target file, 3 infrastructure (a tool is missing, a simulator does not start)."
)
_Verb = TypeVar("_Verb", bound=Callable[..., Any])


# Where each verb lives, in the order of the work; imported only when it is asked for.
_VERBS = {
    "run": "harness.run_cli:run",
    "exec": "harness.run_cli:exec_",
    "judge": "harness.run_cli:judge_",
    "accept": "harness.run_cli:accept",
    "size": "harness.size_cli:size",
    "gate": "harness.size_cli:gate",
    "link": "harness.link_cli:link",
    "npu": "harness.npu_cli:npu",
    "standin": "harness.standin_cli:standin",
    "conformance": "harness.standin_cli:conformance",
    "targets": "harness.tools_cli:targets",
    "models": "harness.tools_cli:models",
    "doctor": "harness.tools_cli:doctor",
    "bench": "harness.tools_cli:bench",
    "test": "harness.tools_cli:test",
}


class _Group(click.Group):
    """Lists its verbs in the order of the work, not of the alphabet."""

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
