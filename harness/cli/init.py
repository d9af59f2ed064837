"""``hil init``: a small repository that works, to change into one's own."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.verb import echo, verb
from harness.errors import UsageError
from harness.errors.verdict import ExitCode
from harness.system.files import disk_errors

if TYPE_CHECKING:
    from importlib.abc import Traversable  # where it is in Python 3.10, too

_SUFFIX = ".example"
_NEXT = (
    ("hil run my-board models/tiny.py", "one run"),
    ("pytest -n 2", "every model on every default target"),
    ("hil accept my-board/models/tiny.py --reason first", "hold the next runs against this one"),
    ("hil gate", "sizes against budgets and accepted references"),
)


class AlreadyThere(UsageError):
    """``paths``: the files that would have been written over."""

    kind = "already_there"

    def __init__(self, paths: list[Path]) -> None:
        self.paths = [str(path) for path in paths]
        super().__init__(
            f"nothing was written: there are already {', '.join(self.paths)}",
            hint="name an empty folder, or remove what is in the way",
        )


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path(), metavar="[DIR]")
@verb
def init(folder: Path, as_json: bool) -> tuple[Any, ExitCode]:
    """Make a working example in DIR (default: here): settings, a target, a model, a test.

    \b
    Example:
      hil init my-models && cd my-models && hil run my-board models/tiny.py
    """
    example = {folder / name: text for name, text in _example()}
    there = [path for path in example if path.exists()]
    if there:
        raise AlreadyThere(there)
    with disk_errors("writing the example"):
        for path, text in example.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    if not as_json:
        for path in example:
            echo(f"written: {path}")
        echo("\nWhat to try there:")
        width = max(len(command) for command, _ in _NEXT)
        for command, what in _NEXT:
            echo(f"  {command:{width}}  # {what}")
    return {"written": [str(path) for path in example]}, ExitCode.PASSED


def _example() -> Iterator[tuple[str, str]]:
    """Path and text of each file; in the package they have a suffix that no tool takes for code."""

    def below(folder: Traversable, path: str) -> Iterator[tuple[str, str]]:
        for entry in sorted(folder.iterdir(), key=lambda e: e.name):
            if entry.is_dir():
                yield from below(entry, f"{path}{entry.name}/")
            elif entry.name.endswith(_SUFFIX):
                yield f"{path}{entry.name.removesuffix(_SUFFIX)}", entry.read_text("utf-8")

    yield from below(files("harness.cli") / "example", "")
