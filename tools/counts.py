"""Counts of what somebody who carries the project on has to learn: ``python -m tools.counts``.

Each has a limit; ``tests/tools/test_counts.py`` keeps them.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from harness.cli.main import main
from harness.core.tables import read_table
from harness.system import settings

ROOT = Path(__file__).parents[1]
MOST_PARAMETERS = 8


@dataclass(frozen=True)
class Count:
    what: str
    number: int
    limit: int

    @property
    def holds(self) -> bool:
        return self.number <= self.limit


def counts() -> tuple[Count, ...]:
    modules = sorted((ROOT / "harness").rglob("*.py"))
    texts = [module.read_text("utf-8") for module in modules]
    return (
        Count("lines of harness/", sum(text.count("\n") for text in texts), 55_300),
        Count("modules of harness/", len(modules), 300),
        Count("fmt: skip in harness/", sum(text.count("# fmt: skip") for text in texts), 30),
        Count("leaf commands of hil", len(list(leaf_commands(main))), 31),
        Count("options of hil run", len(list(_options("run"))), 15),
        Count(
            "environment variables",
            len(read_table(settings.__file__)["variables"].keys() - {"CI"}),
            10,
        ),
        Count(
            f"functions with more than {MOST_PARAMETERS} parameters",
            sum(len(list(long_signatures(text))) for text in texts),
            0,
        ),
        Count("lines of README.md", len((ROOT / "README.md").read_text().splitlines()), 180),
        Count("words of the glossary", _glossary_words(), 60),
    )


def leaf_commands(group: click.Group, prefix: str = "hil") -> Iterator[str]:
    """The full names of the commands that do something themselves."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from leaf_commands(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}"


def _options(verb: str) -> Iterator[click.Option]:
    command = main.get_command(click.Context(main), verb)
    assert command is not None
    return (option for option in command.params if isinstance(option, click.Option))


def long_signatures(source: str) -> Iterator[str]:
    """Functions with more parameters than a reader keeps in mind; ``self`` does not count."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            if len([name for name in names if name.arg not in ("self", "cls")]) > MOST_PARAMETERS:
                yield node.name


def _glossary_words() -> int:
    rows = re.findall(r"^\| (?!word|---)", (ROOT / "docs" / "glossary.md").read_text(), re.M)
    return len(rows)


if __name__ == "__main__":
    for count in counts():
        mark = "" if count.holds else "   OVER"
        click.echo(f"{count.number:>7,} of {count.limit:>6,}  {count.what}{mark}")
    raise SystemExit(os.EX_OK if all(count.holds for count in counts()) else 1)
