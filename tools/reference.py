"""Writes the pages of ``docs/reference`` from the code, and the files that other pages show.

Run ``python -m tools.reference`` after a change of an option, a verdict, a cause, a setting, a
target or an example; ``tests/docs`` fails until then. A page shows a file with a marker above a
fenced block: ``<!-- file: PATH -->``.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import click

from harness.cli.main import EPILOG, main
from harness.cli.verb import JSON_VERSION
from harness.config.loading import load_targets
from harness.core.tables import read_table
from harness.core.verdict import Verdict
from harness.log.pattern import rows, text
from harness.plugin import fixtures
from harness.plugin.options import OPTIONS
from harness.report.terminal import causes
from harness.system import settings
from harness.system.settings import Settings

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
_SHOWN_FILE = re.compile(r"^<!-- file: (?P<path>[^\n]+) -->\n```.*?^```$", re.MULTILINE | re.DOTALL)
_LANGUAGES = {".py": "python", ".toml": "toml", ".yml": "yaml", ".yaml": "yaml"}


def expected_pages() -> dict[Path, str]:
    """Every page of ``docs`` that is made from the code or shows a file, as it should be."""
    pages = {DOCS / "reference" / f"{name}.md": _GENERATED + page() for name, page in PAGES.items()}
    for path in DOCS.rglob("*.md"):
        if path not in pages and _SHOWN_FILE.search(markdown := path.read_text("utf-8")):
            pages[path] = _SHOWN_FILE.sub(lambda match: shown_file(match["path"]), markdown)
    return pages


_GENERATED = "<!-- Made by `python -m tools.reference`. -->\n\n"


def shown_file(name: str) -> str:
    """A file of the project as a fenced block under its marker. Raises FileNotFoundError."""
    path = ROOT / name
    content = path.read_text("utf-8").strip()
    return f"<!-- file: {name} -->\n```{_LANGUAGES.get(path.suffix, '')}\n{content}\n```"


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

Every verb takes `--json` ([JSON](json.md)); `hil --debug VERB` shows the traceback of an error.
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


_EVERY = ("--json",)


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
    rows = (
        (f"`{verdict}`", str(int(verdict.exit_code)), verdict.meaning, verdict.do)
        for verdict in Verdict
    )
    lines = [_VERDICTS, *_table(("verdict", "exit", "meaning", "what to do"), rows), _CAUSES]
    examples = _examples()
    for kind, advice in causes().items():
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
`hil judge` is 1 with `--strict`.

## Causes

`cause.kind` of a record and of `--json`. A line of a console is one example of many.
"""


def _examples() -> dict[str, str]:
    """A line of a console for each kind, of those that the log grammar knows it by."""
    examples: dict[str, str] = {}
    failures = rows("faults", "anywhere", "messages", "npu", "steps", "errors")
    for row in (*failures, *rows("launches", "guest", "suspects")):
        examples.setdefault(str(row.kind), text(row.example))
    return examples


# Settings, targets, pytest, JSON


def _settings() -> str:
    texts = read_table(settings.__file__)
    rows = (
        (f"`{field.name}`", _KINDS[str(field.type).replace(" | None", "")],
         texts["settings"][field.name])
        for field in dataclasses.fields(Settings)
        if field.name != "folder"
    )  # fmt: skip
    variables = ((f"`{name}`", what) for name, what in texts["variables"].items())
    return "\n".join((
        _SETTINGS, *_table(("setting", "type", "what it is"), rows), "\n## Variables\n",
        *_table(("variable", "what it does"), variables), "\n## An example\n",
        shown_file("examples/repository/pyproject.toml"), "",
    ))  # fmt: skip


_KINDS = {
    "tuple[Path, ...]": "paths", "tuple[str, ...]": "texts", "Path": "path",
    "int": "amount", "float": "duration", "str": "URL or path",
    "FvpPolicy": "word", "Factor": "number",
    "UnprovenPolicy": "word", "PoolsPolicy": "word",
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
         ", ".join(map(str, one.simulators.names)),
         "" if one.npu is None else ", ".join(one.npu.memory_modes))
        for one in load_targets((ROOT / "targets",))
    )  # fmt: skip
    heads = ("target", "marker", "what it is", "simulators", "memory modes")
    whole = shown_file("targets/corstone-300-m55.yaml")
    return "\n".join((_TARGETS, *_table(heads, rows), "\n## A whole file\n", whole, ""))


_TARGETS = """# Targets

`hil run TARGET`, and `pytest -m MARKER`; `TARGET@MODE` is the target with another memory mode of
its NPU. [A board of your own](../how-to/own-board.md) says how to add one.
"""


def _pytest() -> str:
    options = ((f"`{one.flag}`", f"`{one.ini}`", one.help) for one in OPTIONS)
    found = (
        (f"`{name}`", " ".join((value.__doc__ or "").split()))
        for name, value in vars(fixtures).items()
        if name.startswith("hil_")
    )
    return "\n".join((
        _PYTEST, *_table(("option", "in the ini file", "what it does"), options),
        "\n## Fixtures\n", *_table(("fixture", "what it does"), found), _MARKERS,
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
    fields = (
        (f"`hil {verb}`", ", ".join(map(_field, names))) for verb, names in JSON_FIELDS.items()
    )
    return "\n".join((_JSON, *_table(("verb", "fields"), fields)))


def _field(name: str) -> str:
    return f"the fields of `hil {name[3:]}`" if name.startswith("as ") else _code(name)


_JSON = f"""# JSON

`hil VERB --json` prints one object with `version`, which is {JSON_VERSION}. Within a version a
field keeps its name, type and meaning; a later release may add fields. `hil run` prints the fields
of the first case that did not pass (or of the first case), and all cases in `cases`. A field that
does not apply is null or absent.

`cause` has `kind`, `text`, `line` and `facts`. A verb that ends in an error prints `verdict`,
`cause`, `hint`, `metrics` and `run_dir`. [Verdicts and causes](verdicts.md) has the exit status.
"""
_CASE_FIELDS = (
    *("case", "firmware", "exporter", "verdict", "verdict_text", "tolerance_lsb", "cause", "notes"),
    *("metrics", "worst_lsb", "by_design", "differential", "reproducible", "not_reproducible"),
    *("input_sets", "simulator", "differences", "oracles", "accuracy", "witness", "npu_cost"),
    *("profile", "on_cpu", "run_dir"),
)
_LOG_FIELDS = (
    *("log", "verdict", "cause", "notes", "unknown", "lines", "progress", "metrics", "pmu"),
    *("bundle_passes", "outputs", "stop", "versions"),
)
_SIZE_FIELDS = ("file", "kind", "total", "unknown", "parts", "memory", "dropped", "notes")
# By verb; "as VERB" stands for the fields of that row.
JSON_FIELDS: dict[str, tuple[str, ...]] = {
    "run": ("as judge RUN_DIR", "cases"),
    "exec": ("firmware", "run_dir", "outputs", "metrics", "verdict", "cause", "runs"),
    "why": ("as judge RUN_DIR", "time", "meaning", "do", "console"),
    "judge RUN_DIR": _CASE_FIELDS,
    "judge LOG": _LOG_FIELDS,
    "accept": ("as judge RUN_DIR", "reference", "program_change", "diff", "written"),
    "bundle": ("bundle", "format", "run", "made_by", "files", "naming"),
    "replay": ("as judge RUN_DIR", "same", "there", "differing", "simulator_versions"),
    "bisect": ("case", "first_bad", "candidates", "trials"),
    "fvp check": ("file", "format", "fvps"),
    "npu run": ("outputs", "npu", "operations", "macs", "moved", "memory"),
    "npu disasm": ("npu", "lines"),
    "npu stats": ("delegates", "estimates"),
    "npu reduce": ("reduced",),
    "size FILE": (*_SIZE_FIELDS, "memory_plan"),
    "size OLD NEW": ("old", "new", "old_total", "new_total", "delta", "parts", "memory", "why"),
    "gate": ("failed", "gates", "left_over"),
    "link explain": (
        *("source", "failures", "command", "linked", "stopped", "unfinished", "image", "failed"),
        *("output", "objects_read", "more"),
    ),
    "link reduce": (
        "directory",
        "failure",
        "objects",
        "stubs",
        "inputs_before",
        "words",
        "message",
    ),
    "link check": ("programs", "overridable", "findings"),
    "nightly run": (
        *("night", "suite", "origin", "before", "began", "verdict", "counts", "excluded"),
        *("groups", "cases", "bundles"),
    ),
    "nightly merge": ("as nightly run", "missing_shards", "doubled_cases"),
    "nightly page": ("as nightly run", "page"),
    "history": ("flaky",),
    "history CASE": (
        *("case", "runs", "first_bad", "last_good", "fixed", "bad_runs", "unsure"),
        *("differences", "figures", "next"),
    ),
    "history copy": ("nights", "rows", "known"),
    "suite NAME": (
        *("suite", "simulator", "elf", "tests", "seconds", "log", "complaints", "note"),
        *("firmware", "exporter", "summary", "on_target", "simulated_again", "not_repeated"),
        *("bit_exact", "operators_missing"),
    ),
    "suite executorch-ci": ("jobs", "aside", "differences"),
    "standin install": ("commands",),
    "init": ("written",),
    "zephyr init": (
        *("workspace", "zephyr", "manifest", "downloads", "megabytes", "commands", "activate"),
        "done",
    ),
    "targets": ("targets",),
    "models": ("models", "unavailable"),
    "doctor": ("tools", "zephyr", "targets", "boards", "missing", "state"),
    "prune": ("dry_run", "bounds", "bytes", "gone", "kept", "left", "undeleted", "nights"),
}


def json_fields(verb: str) -> set[str]:
    """All fields of a row of ``JSON_FIELDS``."""
    first, *others = JSON_FIELDS[verb]
    return {*others, *(json_fields(first[3:]) if first.startswith("as ") else {first})}


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


def write() -> None:
    for path, content in expected_pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")


if __name__ == "__main__":
    write()
