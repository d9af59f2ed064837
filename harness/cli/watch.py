"""``--watch``: a verb again, whenever the model files that it is about have changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.case.models import find_model, source_files
from harness.cli.verb import echo, say_error
from harness.errors import HarnessError, UsageError
from harness.errors.verdict import ExitCode

_LOOK = 0.3  # seconds between two looks at a handful of files

_State = dict[Path, tuple[int, int] | None]


def rerun(
    models: Sequence[str], once: Callable[[], tuple[Any, ExitCode]], as_json: bool
) -> tuple[dict[str, Any], ExitCode]:
    """Until the user interrupts it, which ends it as KeyboardInterrupt.

    Raises UsageError where there is no file to watch, and for what else is wrong before any run.
    """
    files = [source.file for source in map(find_model, models) if source.file is not None]
    if not files:
        raise UsageError("--watch is for model files", hint="name one: `hil run host my_model.py`")
    if as_json:
        raise UsageError("--watch prints many results, and --json one")
    while True:
        before = _state(files)
        try:
            once()
        except HarnessError as error:  # what a file has wrong now, it may have right the next time
            say_error(error)
        echo(f"hil: watching {', '.join(file.name for file in before)}; Ctrl-C ends it", err=True)
        while _state(files) == before:
            threading.Event().wait(_LOOK)


def _state(files: Sequence[Path]) -> _State:
    """Time and size of each file; a file that does not parse is watched without its imports."""
    found: dict[Path, None] = {}
    for file in files:
        try:
            found.update(dict.fromkeys(source_files(file)))
        except HarnessError:
            found[file] = None
    return {path: _stamp(path) for path in found}


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        now = path.stat()
    except OSError:
        return None  # an editor is writing it anew
    return now.st_mtime_ns, now.st_size
