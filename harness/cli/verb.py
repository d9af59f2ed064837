"""What verbs have in common: ``--json`` and errors with exit codes."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from harness.core.errors import HarnessError
from harness.core.plain import plain
from harness.core.verdict import ExitCode
from harness.system.boundary import as_harness_error, traceback_of

# Of every answer of --json. Within a version a field keeps its name, type and meaning; fields may
# be added.
JSON_VERSION: Final = 1
_Verb = TypeVar("_Verb", bound=Callable[..., tuple[dict[str, Any], ExitCode]])


def verb(function: _Verb) -> _Verb:
    """Give a command ``--json`` and the common way to fail, whatever the exception.

    The function gets ``as_json`` and returns the object to print when it is set, and how to end.
    """

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
    @functools.wraps(function)
    def wrapped(*args: Any, as_json: bool, **kwargs: Any) -> None:
        try:
            result, code = function(*args, as_json=as_json, **kwargs)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise  # click has words of its own for these
        except Exception as error:  # the boundary of this face
            failure = as_harness_error(error)
            result, code = _error_object(failure), failure.exit_code
            if click.get_current_context().find_root().obj:
                click.echo(traceback_of(error), err=True, nl=False)
            if not as_json:
                say_error(error)
        except KeyboardInterrupt:
            click.echo("hil: interrupted", err=True)
            sys.exit(ExitCode.INTERRUPTED)
        if as_json:
            result = {"version": JSON_VERSION, **result}
            # "##[" anywhere in a line is a command to GitHub; in JSON it can stand in a string only
            click.echo(json.dumps(result, indent=1, default=str).replace("##[", "#\\u0023["))
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


def say_error(error: Exception) -> None:
    """On standard error."""
    shown = as_harness_error(error)
    echo(f"hil: error: {shown.message}", err=True, fg="red")
    if shown.hint:
        echo(f"hil: {shown.hint}", err=True)


def echo(text: object = "", *, err: bool = False, **style: Any) -> None:
    """Print for a person; whoever wrote the text, it does nothing to their terminal or CI."""
    click.secho(plain(str(text)), err=err, **style)


def tell_ci(command: str, *, err: bool = False) -> None:
    """Print a workflow command of ours, whose texts are escaped already."""
    click.echo(command, err=err)
