"""``hil init`` and ``hil zephyr init``: a repository and a workspace to start with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

# Files of the repository in `examples`, which also has references.
from harness.cli.verb import PATH, Answer, echo, progress_shown, verb
from harness.core.errors import UsageError
from harness.core.verdict import ExitCode
from harness.firmware.zephyr.init import UPSTREAM, InitPlan, plan_init
from harness.firmware.zephyr.init import init as make_workspace
from harness.system.files import disk_errors
from harness.system.paths import data_root
from harness.system.settings import OWN

_FILES = (
    ".gitignore",
    "boards/my-board.yaml",
    "models/scores.py",
    "models/scores.yaml",
    "models/tiny.py",
    "models/tiny.yaml",
    "tests/test_models.py",
)
# An application of Zephyr: our sample's files, in a target that names them.
_SAMPLE = {
    f"app/{name}": f"targets/runner/ports/zephyr/sample/{name}"
    for name in ("main.c", "prj.conf", "boards/mps3_corstone300_an547.overlay")
}
_ZEPHYR = ("app/CMakeLists.txt", "boards/my-zephyr.yaml")
_NEXT = (
    ("hil run my-board models/tiny.py", "one run"),
    ("pytest -n 2", "every model on every default target"),
    ("hil accept my-board/models/tiny.py --reason first", "hold the next runs against this one"),
    ("hil gate", "sizes against budgets and accepted references"),
)
_NEXT_OF_ZEPHYR = (("hil run my-zephyr models/tiny.py", "in app, with the Zephyr of ZEPHYR_BASE"),)


@click.command()
@click.argument("folder", type=PATH, default=Path(), metavar="[DIR]")
@click.option("--zephyr", "zephyr_", is_flag=True, help="Add an application for Zephyr.")
@verb
def init(folder: Path, zephyr_: bool) -> Answer:
    """Make a working example in DIR (default: here): settings, a target, a model, a test.

    \b
    Examples:
      hil init my-models && cd my-models && hil run my-board models/tiny.py
      hil init --zephyr my-models && cd my-models && hil run my-zephyr models/tiny.py
    """
    example = {folder / name: text for name, text in _example(zephyr_)}
    wanted = [*example] if folder.is_dir() else [folder]
    existing = [path for path in wanted if path.exists()]
    if existing:
        raise UsageError(
            f"nothing was written: there are already {', '.join(map(str, existing))}",
            hint="name an empty folder, or remove what is in the way",
            kind="already_there",
            paths=[str(path) for path in existing],
        )
    with disk_errors("writing the example"):
        for path, text in example.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    for path in example:
        echo(f"written: {path}")
    echo("\nWhat to try there:")
    steps = (*_NEXT, *(_NEXT_OF_ZEPHYR if zephyr_ else ()))
    width = max(len(command) for command, _ in steps)
    for command, purpose in steps:
        echo(f"  {command:{width}}  # {purpose}")
    return {"written": [str(path) for path in example]}, ExitCode.PASSED


def _example(zephyr_: bool) -> Iterator[tuple[str, str]]:
    """Yield path and text of each file. The settings get a file apart from the project's."""
    example = data_root() / "examples" / "repository"
    files = {name: example / name for name in _FILES}
    if zephyr_:
        files |= {name: data_root() / "examples" / "zephyr" / name for name in _ZEPHYR}
        files |= {name: data_root() / path for name, path in _SAMPLE.items()}
    for name, file in files.items():
        yield name, file.read_text("utf-8")
    project = (example / "pyproject.toml").read_text("utf-8")
    yield OWN, project.partition("[tool.hil]\n")[2].partition("\n[")[0]


DEFAULT_VERSION = "4.1.0"


@click.group()
def zephyr() -> None:
    """Make a Zephyr workspace for the zephyr-* targets; `hil doctor` examines one.

    \b
    Examples:
      hil zephyr init ~/zephyr-hil --dry-run
      hil zephyr init ~/zephyr-hil
    """


@zephyr.command(name="init")
@click.argument("folder", type=PATH, metavar="DIR")
@click.option(
    "--zephyr",
    "version",
    default=DEFAULT_VERSION,
    show_default=True,
    metavar="VERSION",
    help="Which release of Zephyr.",
)
@click.option(
    "--url",
    default=UPSTREAM,
    show_default=True,
    help="Another remote for Zephyr and its modules: the part before their names.",
)
@click.option(
    "--packages/--no-packages",
    default=True,
    help="Whether Zephyr's Python packages are installed, into DIR/.venv.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be downloaded, and write nothing.")
@verb
def init_(folder: Path, version: str, url: str, packages: bool, dry_run: bool) -> Answer:
    """Make a west workspace in DIR with Zephyr and the four modules that our targets need.

    Only files, no history. The same command continues an earlier attempt.
    """
    plan = plan_init(folder, version, url, packages=packages, dry_run=dry_run)
    _print_plan(plan)
    result = {**plan.summary(), "done": not dry_run}
    if not dry_run:
        with progress_shown() as progress:
            make_workspace(plan, progress)
    echo("nothing was written (--dry-run)" if dry_run else "done. Before a build:")
    for line in [] if dry_run else plan.activation():
        echo(f"  {line}")
    echo("" if dry_run else "`hil doctor` then says whether a compiler or dtc is missing.")
    return result, ExitCode.PASSED


def _print_plan(plan: InitPlan) -> None:
    """Before anything starts: what comes from where, and about how much of it."""
    echo(f"Zephyr {plan.version} into {plan.folder}:")
    for item in plan.summary()["downloads"]:
        echo(f"  {item['what']:16}{item['megabytes']:4.0f} MB  {item['from']}  ({item['why']})")
    echo(f"about {plan.megabytes:.0f} MB in all; the compiler is not among it")
    for command in plan.steps().values():
        echo(f"  $ {' '.join(command)}")
