"""``hil init``: a small repository that works, to change into one's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from harness.cli.verb import echo, verb
from harness.core.errors import UsageError
from harness.core.verdict import ExitCode
from harness.system.files import disk_errors
from harness.system.paths import data_root
from harness.system.settings import OWN

# Of the repository in `examples`, which has references besides.
_FILES = (
    ".gitignore",
    "boards/my-board.yaml",
    "models/scores.py",
    "models/scores.yaml",
    "models/tiny.py",
    "models/tiny.yaml",
    "tests/test_models.py",
)
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
def init(folder: Path, as_json: bool) -> tuple[dict[str, Any], ExitCode]:
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
    """Path and text of each file; the settings in a file of their own, beside any project's."""
    example = data_root() / "examples" / "repository"
    for name in _FILES:
        yield name, (example / name).read_text("utf-8")
    project = (example / "pyproject.toml").read_text("utf-8")
    yield OWN, project.partition("[tool.hil]\n")[2].partition("\n[")[0]
