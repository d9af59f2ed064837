"""What verbs have in common: ``--json``, errors with exit codes, the options of more than one."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from harness.errors import HarnessError
from harness.errors.verdict import ExitCode

_Verb = TypeVar("_Verb", bound=Callable[..., tuple[Any, ExitCode]])

limit_factor_option = click.option(
    "--limit-factor",
    type=click.FloatRange(min=0, min_open=True, max=1000),
    help="Multiply all time limits, for a slow machine (default: $HIL_LIMIT_FACTOR or 1).",
)
require_confinement_option = click.option(
    "--require-confinement/--no-require-confinement",
    default=None,
    help="Whether a run whose guest cannot be wholly confined is INFRA and not made "
    "(default: $HIL_REQUIRE_CONFINEMENT, or yes when $CI is set).",
)
fvp_missing_option = click.option(
    "--fvp-missing",
    type=click.Choice(["fail", "skip"]),
    help="What a case is whose FVP is not installed; fail when $CI is set, else skip.",
)


def verb(function: _Verb) -> _Verb:
    """Give a command ``--json`` and the common way to fail.

    The function gets ``as_json`` and returns the object to print when it is set, and how to end.
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
            sys.exit(ExitCode.INTERRUPTED)
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
