"""What the site (mkdocs.yml) has that no page says: the reference is made from the code, parts of
README.md are pages, and examples are shown as they are.

A page asks for such a part with a line of its own: ``<!-- README: HEADING -->`` for the section
under a heading of README.md, ``<!-- README: FILE.md -->`` for all of another file of the root,
``<!-- file: PATH -->`` for a file as a block of code. What is asked for and is not there ends the
build.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from harness.cli import outputs
from harness.cli.contract import VERSION
from harness.cli.main import EPILOG, main
from harness.errors.verdict import Verdict
from harness.observe import console, failures, faults
from harness.observe.pattern import Pattern, text
from harness.plugin import fixtures
from harness.plugin.options import OPTIONS
from harness.report.causes import CAUSES, VERDICTS
from harness.system.settings import DESCRIPTIONS, Settings
from harness.system.variables import VARIABLES
from harness.target.loading import load_targets

ROOT = Path(__file__).parents[1]
_PART = re.compile(r"^<!-- (README|file): (.+) -->$", re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?\)")
# Where a heading of README.md is on the site.
_SECTIONS = {"zephyr": "how-to/zephyr.md"}
_LANGUAGES = {".py": "python", ".toml": "toml", ".yml": "yaml", ".yaml": "yaml"}


def on_files(files: Files, config: Any) -> Files:
    for name, page in PAGES.items():
        files.append(File.generated(config, f"reference/{name}.md", content=page()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    here = page.file.src_uri

    def part(found: re.Match[str]) -> str:
        kind, what = found.groups()
        return _file(what) if kind == "file" else _of_root(what, here)

    return _PART.sub(part, markdown)


def _file(name: str) -> str:
    path = ROOT / name
    if not path.is_file():
        raise PluginError(f"there is no {name} to show")
    fence = f'```{_LANGUAGES.get(path.suffix, "")} title="{path.name}"'
    return f"{fence}\n{path.read_text('utf-8').strip()}\n```"


def _of_root(what: str, here: str) -> str:
    """A section of README.md, or a file of the root, with links as they are from ``here``."""
    if what.endswith(".md"):
        said = (ROOT / what).read_text("utf-8").partition("\n")[2]
    else:
        said = section((ROOT / "README.md").read_text("utf-8"), what)

    def link(found: re.Match[str]) -> str:
        path, anchor = found[1], found[2] or ""
        if not path and anchor[1:] in _SECTIONS:
            path, anchor = f"docs/{_SECTIONS[anchor[1:]]}", ""
        elif path == "CONTRIBUTING.md":
            path = "docs/explanation/contributing.md"
        if not path.startswith("docs/"):
            raise PluginError(f"{what} has a link to {path or anchor}, which is not on the site")
        relative = posixpath.relpath(path.removeprefix("docs/"), posixpath.dirname(here))
        return f"]({relative}{anchor})"

    return _LINK.sub(link, said)


def section(readme: str, heading: str) -> str:
    """What stands under a heading, its sub-headings as second ones."""
    found = re.search(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#{{1,3}} |\Z)", readme, re.M | re.S)
    if found is None:
        raise PluginError(f"README.md has no heading {heading!r}")
    return found[2].strip()


# The command line


def _cli() -> str:
    context = click.Context(main, info_name="hil")
    lines = [_CLI, EPILOG, ""]
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        lines += _verb(command, click.Context(command, info_name=name, parent=context))
    return "\n".join(lines)


_CLI = """# The command line

Every verb takes `--json` ([JSON](json.md)) and `--debug`, which shows the traceback of an error.
"""


def _verb(command: click.Command, context: click.Context, level: str = "##") -> Iterator[str]:
    usage = command.get_usage(context).removeprefix("Usage: ")
    yield from (f"{level} {context.command_path}", "", *_help(command), "")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _verb(below, click.Context(below, info_name=name, parent=context), "###")
        return
    yield from ("```text", " ".join(usage.split()), "```", "")
    records = (option.get_help_record(context) for option in command.params)
    told = [(name, what) for name, what in filter(None, records) if what and name not in _EVERY]
    if told:
        yield from _table(("option", "what it does"), ((_code(name), what) for name, what in told))


_EVERY = ("--json", "--debug")


def _help(command: click.Command) -> Iterator[str]:
    """Paragraphs as text, what click is told not to wrap as code."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b"):
            head, *lines = paragraph[1:].strip("\n").splitlines()
            yield from (f"{head}", "", "```", *(line.strip() for line in lines), "```", "")
        else:
            yield from (_plain(paragraph), "")


def _plain(paragraph: str) -> str:
    return paragraph.replace("<", "&lt;")


def _cell(said: str) -> str:
    return " ".join(said.split()).replace("|", "&#124;")


def _code(said: str) -> str:
    """For a table's cell, in which backticks do not keep a bar from ending it."""
    return f"<code>{_plain(said)}</code>"


# Verdicts and causes


def _verdicts() -> str:
    verdicts = (
        (f"`{one}`", str(int(one.exit_code)), VERDICTS[one].meaning, VERDICTS[one].do)
        for one in Verdict
    )
    lines = [_VERDICTS, *_table(("verdict", "exit", "meaning", "what to do"), verdicts), _CAUSES]
    examples = _examples()
    for kind, advice in CAUSES.items():
        lines += [f"### {kind}", "", f"{_plain(advice.meaning[:1].upper() + advice.meaning[1:])}."]
        if kind in examples:
            lines += ["", "```text", examples[kind], "```"]
        lines += ["", f"What to do: {_plain(advice.do)}.", ""]
    return "\n".join(lines)


_VERDICTS = """# Verdicts and causes

Only PASS is proven good. `hil why` says this of the last run.

## Verdicts
"""
_CAUSES = """
A wrong option, target file or model file ends with 2, whatever else is there. `COMPLETED` of
`hil judge` is 0 without `--strict`.

## Causes

`cause.kind` of a record and of `--json`. A line of a console is one example of many.
"""


def _examples() -> dict[str, str]:
    """A line of a console for each kind, of those that the log grammar knows it by."""
    found: dict[str, str] = {}
    for module in (faults, failures, console):
        for rows in vars(module).values():
            for row in rows if isinstance(rows, tuple) else ():
                if isinstance(row, Pattern) and row.kind is not None:
                    found.setdefault(str(row.kind), text(row.example))
    return found


# Settings, targets, pytest, JSON


def _settings() -> str:
    settings = (
        (f"`{field.name}`", _KINDS[str(field.type).replace(" | None", "")],
         DESCRIPTIONS[field.name])
        for field in dataclasses.fields(Settings)
        if field.name != "folder"
    )  # fmt: skip
    variables = ((f"`{name}`", what) for name, what in VARIABLES.items())
    return "\n".join((
        _SETTINGS, *_table(("setting", "type", "what it is"), settings), "\n## Variables\n",
        *_table(("variable", "what it does"), variables), "\n## An example\n",
        _file("examples/repository/pyproject.toml"), "",
    ))  # fmt: skip


_KINDS = {
    "tuple[Path, ...]": "paths", "tuple[str, ...]": "texts", "Path": "path",
    "int": "amount", "float": "duration", "str": "URL or path",
}  # fmt: skip
_SETTINGS = """# Settings and variables

`hil.toml`, or `[tool.hil]` of `pyproject.toml`: the next one above the current directory, and for
pytest above its rootdir. Paths start at its folder. A variable is stronger than a setting, and an
option than both.

## Settings
"""


def _targets() -> str:
    rows = (
        (f"`{one.name}`", f"`{one.marker}`", one.description,
         ", ".join(map(str, one.simulators)),
         "" if one.npu is None else ", ".join(one.npu.memory_modes))
        for one in load_targets((ROOT / "targets",))
    )  # fmt: skip
    heads = ("target", "marker", "what it is", "simulators", "memory modes")
    whole = _file("targets/corstone-300-m55.yaml")
    return "\n".join((_TARGETS, *_table(heads, rows), "\n## A whole file\n", whole, ""))


_TARGETS = """# Targets

`hil run TARGET`, and `pytest -m MARKER`; `TARGET@MODE` is the target with another memory mode of
its NPU. [A board of your own](../how-to/own-board.md) says how to add one.
"""


def _pytest() -> str:
    options = ((f"`{one.flag}`", f"`{one.ini}`", one.help) for one in OPTIONS)
    found = (
        (f"`{name}`", (value.__doc__ or "").partition("\n\n")[0])
        for name, value in vars(fixtures).items()
        if name.startswith("hil_")
    )
    return "\n".join((
        _PYTEST, *_table(("option", "in the ini file", "what it does"), options),
        "\n## Fixtures\n", *_table(("fixture", "what it is"), found), _MARKERS,
    ))  # fmt: skip


_PYTEST = """# The pytest plugin

It takes part in a session that asks for it: by settings at its rootdir, by a `hil_` fixture or
marker, or by one of these options.

## Options
"""
_MARKERS = """
## Markers

- `hil_cases(targets=None, models=None, npu=None)`: the cases that a test runs for
- `hil_expect(*verdicts)`: the verdicts that its `hil_run` may have; without it only PASS
- the marker of each target, for `-m`: [Targets](targets.md)
"""


def _json() -> str:
    lines = [_JSON]
    for verb in outputs.OUTPUTS:
        schema = outputs.schema(verb)
        first = schema["$defs"][schema["anyOf"][0]["$ref"].rpartition("/")[2]]
        fields = ", ".join(f"`{name}`" for name in first["properties"])
        lines += [f"## hil {verb}", "", f"Fields: {fields}", "", '??? note "schema"', ""]
        text_of = json.dumps(schema, indent=1).splitlines()
        lines += [f"    {line}" for line in ("```json", *text_of, "```")]
        lines.append("")
    return "\n".join(lines)


_JSON = f"""# JSON

The `--json` of every verb is one object with `version`, which is {VERSION}. Within a version a
field keeps its name, type and meaning; fields may be added. One that is to go is named in
`deprecations` of every answer that has it, and marked in the schema, before the next version.
`hil schema VERB` prints a schema.

A verb that comes to no answer prints `verdict`, `cause`, `hint`, `metrics` and `run_dir`: `Error`
in each schema. The exit status says the rest: [Verdicts and causes](verdicts.md).
"""


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"
    yield ""


PAGES: dict[str, Callable[[], str]] = {
    "cli": _cli,
    "verdicts": _verdicts,
    "settings": _settings,
    "targets": _targets,
    "pytest": _pytest,
    "json": _json,
}
