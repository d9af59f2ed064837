"""What verbs have in common: ``--json``, what is printed without it, progress, errors, exit codes.

Progress goes to stderr: a status line at a terminal, a line for each long step elsewhere.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
from harness.system.progress import COUNT, Progress, silent, timed
from harness.system.unexpected import as_harness_error, traceback_of

if TYPE_CHECKING:
    from rich.console import Console

    from harness.report.safe_console import Terminal

# In every answer of --json. Within a version a field keeps its name, type and meaning; fields may
# be added.
JSON_VERSION: Final = 1
_JSON = "harness.json"  # in the meta of click's context: whether it was asked for
Answer: TypeAlias = tuple[dict[str, Any], ExitCode]  # of --json, and how to end
_Verb = TypeVar("_Verb", bound=Callable[..., Answer])
_CLOSE = 0.6  # how like a name must be to be meant, of 1: two letters exchanged in three


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


def print_failure(error: Exception, *, as_json: bool) -> ExitCode:
    """Print message and hint on standard error, or as JSON; return how to end."""
    shown = failure_of(error)
    if as_json:
        cause = {"kind": shown.kind, "text": shown.message, "line": None, "facts": shown.facts}
        answer = {"verdict": shown.verdict, "cause": cause, "hint": shown.hint}
        with suppress(OSError):
            _print_json({**answer, "metrics": {}, "run_dir": None})
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
        known = [*group.list_commands(context), *getattr(group, "of_a_clone", ())]
        names = get_close_matches(name, known, cutoff=_CLOSE)
    elif isinstance(error, click.BadParameter) and error.param is not None:
        choices = error.param.type.choices if isinstance(error.param.type, click.Choice) else ()
        if choices and (
            wrong := re.match(r"Invalid value for .*: '(.*?)' is not one of ", message)
        ):
            message = f"{error.param.opts[-1]} cannot be {wrong[1]!r}"
            names = get_close_matches(wrong[1], choices, cutoff=_CLOSE)
            hint = hint if names else f"there are: {', '.join(choices)}"
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


LONG_S = 5.0  # a log has a line for a step that takes longer
_DONE = ("exported", "simulated", "built")  # ends of a subject, at which nobody waits for it


@contextmanager
def progress_shown() -> Iterator[Progress]:
    """Return a Progress for the length of a command; with ``--json`` it shows nothing."""
    if wants_json():
        yield silent
    elif sys.stderr.isatty():
        with status_line(terminal(stderr=True)) as say, timed(say) as progress:
            yield progress
    else:
        with _long_steps() as say, timed(say) as progress:
            yield progress


@contextmanager
def status_line(
    console: Console, clock: Callable[[], float] = time.monotonic
) -> Iterator[Progress]:
    """Return ``suite 30/120 0:00:12 0:00:40 left``: the step, its time, and the time left."""
    from rich import progress as rich_progress

    columns = (
        rich_progress.SpinnerColumn(),
        rich_progress.TextColumn("{task.description}", markup=False),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TimeRemainingColumn(),
        rich_progress.TextColumn("{task.fields[left]}"),
    )
    with rich_progress.Progress(*columns, console=console, transient=True, get_time=clock) as line:
        task = line.add_task("starting", total=None, left="")
        step = ""

        def say(message: str) -> None:
            nonlocal step
            name, count = COUNT.sub("", message), COUNT.search(message)
            if name != step:
                step = name
                line.reset(task)
                line.tasks[0].total = None  # reset() cannot set it to None
            if count:
                line.update(task, completed=int(count[1]), total=int(count[2]))
            line.update(task, description=plain(message), left="left" if count else "")

        yield say


@contextmanager
def _long_steps() -> Iterator[Progress]:
    """Print one line per step that lasts. Thread-safe.

    Messages that differ only in a count such as 3/45 are one step, and a step lasts until the next
    of its subject."""
    shown: set[str] = set()
    waiting: dict[str, tuple[str, threading.Timer]] = {}  # by subject
    lock = threading.Lock()

    def say(message: str) -> None:
        step = COUNT.sub("", message)
        subject = step.partition(": ")[0]
        with lock:
            last, timer = waiting.get(subject, ("", None))
            if step == last or step in shown:
                return
            if timer is not None:
                timer.cancel()
            if step.endswith(_DONE):
                return
            timer = threading.Timer(LONG_S, show, (step,))
            timer.daemon = True
            waiting[subject] = step, timer
        timer.start()

    def show(step: str) -> None:
        with lock:
            shown.add(step)
        print(f"hil: {plain(step)}", file=sys.stderr, flush=True)

    try:
        yield say
    finally:
        for _, timer in waiting.values():
            timer.cancel()
            timer.join()  # it may be printing
