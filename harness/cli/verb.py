"""What verbs have in common: ``--json``, what is printed without it, errors with exit codes."""

from __future__ import annotations

import errno
import functools
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import click

from harness.core.errors import HarnessError, InfraError, UsageError
from harness.core.safe_text import plain
from harness.core.verdict import ExitCode
from harness.system.cancellation import is_cancelled
from harness.system.files import MOST_BYTES
from harness.system.paths import hil_command
from harness.system.unexpected import as_harness_error, traceback_of

if TYPE_CHECKING:
    from harness.report.safe_console import Terminal

# In every answer of --json. Within a version a field keeps its name, type and meaning; fields may
# be added.
JSON_VERSION: Final = 1
_JSON = "harness.json"  # in the meta of click's context: whether it was asked for
Answer: TypeAlias = tuple[dict[str, Any], ExitCode]  # of --json, and how to end
_Verb = TypeVar("_Verb", bound=Callable[..., Answer])
_CLOSE = 0.7  # how like a name must be to be meant, of 1


class _Path(click.Path):
    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if "\n" in (name := os.fspath(value)):  # make, ninja and response files end a name there
            self.fail(f"{name!r} has a line break in its name", param, ctx)
        with suppress(OSError):
            if os.path.getsize(name) > MOST_BYTES:
                self.fail(f"{name} has more than {MOST_BYTES} bytes", param, ctx)
        return super().convert(value, param, ctx)


# Types of arguments and options.
PATH = _Path(path_type=Path)
EXISTING = _Path(path_type=Path, exists=True)
FILE = _Path(path_type=Path, dir_okay=False)
EXISTING_FILE = _Path(path_type=Path, dir_okay=False, exists=True)
FOLDER = _Path(path_type=Path, file_okay=False)


def verb(function: _Verb) -> _Verb:
    """Give a command ``--json`` and the common way to fail, whatever the exception.

    The function returns the object to print, and the exit code. ``--json`` prints this object alone
    on stdout: ``echo`` and ``terminal`` are for people, and print nothing then."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
    @functools.wraps(function)
    def wrapped(*args: Any, as_json: bool, **kwargs: Any) -> None:
        click.get_current_context().meta[_JSON] = as_json
        try:
            result, code = function(*args, **kwargs)
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise  # click has words of its own for these; none where nobody reads (`| head`)
        except Exception as error:  # the boundary of this face
            if is_cancelled():  # Python 3.11 makes another exception of it in a class's body
                raise KeyboardInterrupt from error
            if click.get_current_context().find_root().obj:
                click.echo(traceback_of(error), err=True, nl=False)
            sys.exit(print_failure(error, as_json=as_json))
        if as_json:
            _print_json(result)
        sys.exit(code)

    return wrapped  # type: ignore[return-value]


_DEV_FULL = os.makedev(1, 7)


def failure_of(error: Exception) -> HarnessError:
    """As ``as_harness_error``, except that a full standard output is named as the cause."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
        output = sys.__stdout__.fileno() if sys.__stdout__ is not None else 1
        if os.fstat(output).st_rdev == _DEV_FULL or os.fstatvfs(output).f_bavail == 0:
            return InfraError(
                f"writing to standard output: {error.strerror}",
                hint="free some space on its disk, or redirect it to another one",
                kind="disk_full",
            )
    return as_harness_error(error)


def _error_object(error: HarnessError) -> dict[str, Any]:
    cause = {"kind": error.kind, "text": error.message, "line": None, "facts": error.facts}
    return {
        "verdict": error.verdict,
        "cause": cause,
        "hint": error.hint,
        "metrics": {},
        "run_dir": None,
    }


def print_failure(error: Exception, *, as_json: bool) -> ExitCode:
    """Print message and hint on standard error, or as JSON; return how to end."""
    shown = failure_of(error)
    if as_json:
        with suppress(OSError):
            _print_json(_error_object(shown))
            return shown.exit_code
    click.secho(plain(f"hil: error: {shown.message}"), err=True, fg="red")
    if shown.hint:
        click.echo(plain(f"hil: {shown.hint}"), err=True)
    return shown.exit_code


def usage_error(error: click.ClickException) -> UsageError:
    """Convert click's error; the hint has commands or options with a similar name."""
    context = getattr(error, "ctx", None)
    path = " ".join((context.command_path if context else "hil").split()[1:])
    command = f"{hil_command()} {path}".strip()
    hint = f"`{command} --help` shows how it is called"
    message, names = error.format_message().rstrip("."), getattr(error, "possibilities", None)
    if message.endswith("does not exist"):
        hint = f"paths start at the current directory, {Path.cwd()}"
    if isinstance(error, click.NoSuchOption):
        message = f"`{command}` has no option {error.option_name}"
        names = names or get_close_matches(error.option_name, _options(context), cutoff=_CLOSE)
    elif context is not None and message.startswith("No such command"):
        name = context.args[0] if context.args else message.split("'")[1]
        message = f"`{command}` has no command '{name}'"
        group = context.command
        assert isinstance(group, click.Group)
        names = get_close_matches(name, group.list_commands(context), cutoff=_CLOSE)
    if names:
        hint = f"did you mean {' or '.join(names)}? {hint}"
    return UsageError(message, hint=hint)


def _options(context: click.Context | None) -> list[str]:
    parameters = context.command.params if context else []
    return [name for each in parameters for name in (*each.opts, *each.secondary_opts)]


def _print_json(result: dict[str, Any]) -> None:
    # "##[" anywhere in a line is a command to GitHub; in JSON it can stand in a string only
    text = json.dumps({"version": JSON_VERSION, **result}, indent=1, default=str)
    click.echo(text.replace("##[", "#\\u0023["))


def wants_json() -> bool:
    """Whether the verb that is running was called with ``--json``."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(_JSON, False)


def echo(text: object = "", *, err: bool = False, **style: Any) -> None:
    """Print for a person; whoever wrote the text, it does nothing to their terminal or CI."""
    if not wants_json():
        click.secho(plain(str(text)), err=err, **style)


def terminal(**options: Any) -> Terminal:
    """rich's console, to print for a person."""
    # rich, which a verb that prints little needs not
    from harness.report.safe_console import Terminal

    return Terminal(quiet=wants_json(), **options)


def tell_ci(command: str) -> None:
    """Print a workflow command of the harness, whose texts are escaped already."""
    click.echo(command, err=wants_json())
