"""A word list for the texts that people read, and a reader that says where a text breaks it.

STYLE: short sentences, subject first, the field's verbs. The list holds the words that give a
translated text away; each has what to write instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import yaml

from tools.clone import project_root

from .blocks import pages

INSTEAD = {
    r"beside": "next to, and, with",
    r"behind": "after",
    r"told": "reported, printed, named",
    r"(?<!there )(is|are|was|were) (no(?! longer| one\b| more\b)|none)": "is not a",
    r"in place of": "instead of",
    r"as of": "since, of",
    r"mend(s|ed|ing)?": "fix",
    r"that there are": "that exist",
    r"for to": "to",
    r"that which|those which": "what, those that",
    r"held? against": "compare with",
    r"(is|are|was|were) said to": "name who says so, or state it",
    r"gone on with": "continued",
    r"but for": "except for",
    r"asked of": "requested",
    r"what of": "name it",
    r"of ours": "our",
    r"(?-i:Of)(?! course)": "begin with the subject",
    r"(?-i:With)": "begin with the subject",
    r"(?-i:Who)(?! knows)": "whoever, or name the person",
    r"(?-i:What) [^]?.:·|]*[.]": "begin with the subject",
}
_CODE = re.compile(
    r"^```.*?^```$|^ {4}\S.*?$|`[^`\n]*`|\]\([^)]*\)|<!--.*?-->|^#+ .*?$", re.M | re.S
)
_LITERAL = re.compile(r"``.*?``|`[^`\n]*`|\{\w+\}", re.S)
# Values of a YAML file that quote other programs.
_QUOTED = {"regex", "pattern", "example", "examples", "needle", "needles", "commands", "message"}


class Hit(NamedTuple):
    """A place whose words are on the list."""

    where: str
    words: str
    instead: str

    def __str__(self) -> str:
        return f"{self.where}: {self.words!r}; say {self.instead}"


def hits(text: str, where: str, first_line: int = 1) -> Iterator[Hit]:
    """The words of ``text`` that are on the list."""
    for pattern, instead in INSTEAD.items():
        words = r"\b(?:" + pattern.replace(" ", r"\s+") + r")(?!\w)"
        words = words.replace(r"(?<!there\s+)", r"(?<!there )(?<!there\n)")
        for match in re.finditer(words, text, re.I):
            line = first_line + text.count("\n", 0, match.start())
            yield Hit(f"{where}:{line}", " ".join(match[0].split()), instead)


def without_code(text: str, code: re.Pattern[str] = _CODE) -> str:
    """``text`` with code, link targets and headings blanked; lines stay where they are."""
    return code.sub(lambda found: re.sub(r"[^\n]", "~", found[0]), text)


def in_pages() -> Iterator[Hit]:
    """The hits in README, CONTRIBUTING, CHANGELOG and the written pages of ``docs``."""
    generated = {"networks.md", "executorch-ci.md", "zoo.md"}
    for page in [*pages(), project_root() / "CHANGELOG.md"]:
        if page.name not in generated:
            name = page.relative_to(project_root()).as_posix()
            yield from hits(without_code(page.read_text("utf-8")), name)


def in_yaml() -> Iterator[Hit]:
    """The hits in values and comments of the YAML files below ``harness``."""
    for path in sorted((project_root() / "harness").rglob("*.yaml")):
        name = path.relative_to(project_root()).as_posix()
        content = path.read_text("utf-8")
        for value in _texts(yaml.safe_load(content)):
            yield from (hit._replace(where=name) for hit in hits(value, name))
        for number, line in enumerate(content.splitlines(), 1):
            if line.lstrip().startswith("#"):
                yield from hits(line, name, number)


def in_templates() -> Iterator[Hit]:
    """The hits in the reports' templates and in the files of ``targets`` and ``examples``."""
    root = project_root()
    tables = (*(root / "targets").rglob("*.yaml"), *(root / "examples").rglob("*.yaml"))
    pages = [p for p in (root / "harness" / "report").rglob("*") if p.suffix in (".md", ".txt")]
    for path in (*tables, *pages, root / "action.yml"):
        name = path.relative_to(root).as_posix()
        # `beside` is a key of targets/npu/defects.yaml
        text = re.sub(r"^ *beside: |to, beside", "", path.read_text("utf-8"), flags=re.M)
        yield from hits(without_code(text, _LITERAL), name)


def _texts(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, key)
    elif isinstance(value, str) and key not in _QUOTED:
        yield without_code(value, _LITERAL)


def in_help(command: click.Command, path: str = "hil") -> Iterator[Hit]:
    """The hits in ``--help`` of ``command`` and of the verbs below it."""
    context = click.Context(command, info_name=path, terminal_width=200, max_content_width=200)
    yield from hits(without_code(command.get_help(context), _LITERAL), f"{path} --help")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from in_help(below, f"{path} {name}")


def in_docstrings() -> Iterator[Hit]:
    """The hits in the docstrings of ``harness``."""
    for path in sorted((project_root() / "harness").rglob("*.py")):
        yield from in_docstrings_of(path)


def in_messages() -> Iterator[Hit]:
    """The hits in the strings of ``harness`` that have a space and are no docstring."""
    for path in sorted((project_root() / "harness").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        documented = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or id(node) in documented:
                continue
            if isinstance(node.value, str) and " " in node.value:
                text = without_code(node.value, _LITERAL)
                yield from hits(text, str(path), node.lineno)


def in_docstrings_of(path: Path) -> Iterator[Hit]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            line = node.body[0].lineno
            yield from hits(without_code(text, _LITERAL), str(path), line)
