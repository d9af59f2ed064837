"""Protects readers from commands that are not there, and from output that nobody gets."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

import click
import pytest

from harness.cli.main import main
from tests.cli.conftest import Hil, hil
from tests.examples.conftest import EXAMPLES, Call, call, repository
from tools.clone import project_root
from tools.commands import main as tools

from .blocks import COMMANDS, GENERATED, Block, Line, blocks, fits, shown, verbs

__all__ = ["call", "hil", "repository"]  # fixtures

BLOCKS = {block.id: block for block in blocks()}
_RUN = {name: block for name, block in BLOCKS.items() if block.kind == "console"}
_SCRIPTS = {n: b for n, b in BLOCKS.items() if b.kind == "sh" and b.why_not is None}
_OTHER_PTE = "the recorded outputs were not compared: "
_FILES = {
    "models/forgot.py": "import torch\nModelUnderTest = torch.nn.ReLU()\n",
    "failed.log": "/usr/bin/ld: driver.o: in function `copy':\n"
    "driver.c:(.text+0x8): undefined reference to `arm_ethos_io_memcpy'\n"
    "collect2: error: ld returned 1 exit status\n",
    "fvp.log": "I [executorch:arm_executor_runner.cpp:412] Running method forward\n"
    "E [executorch:method.cpp:788] kernel 'aten::exp.out' not found.\n",
}


@pytest.fixture(scope="module")
def folder(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository of the examples, `examples` and `./hil` of a clone, and the pages' files."""
    mine = shutil.copytree(repository, tmp_path_factory.mktemp("docs") / "my-models")
    for name, text in _FILES.items():
        (mine / name).write_text(text)
    shutil.copytree(EXAMPLES, mine / "examples", ignore=shutil.ignore_patterns(".hil"))
    for name in ("old.pte", "new.pte"):
        shutil.copy(EXAMPLES / "sizes" / name, mine)
    shutil.copy(mine / "new.pte", mine / "model.pte")
    script = mine / "hil"
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH={project_root()} exec {sys.executable} -m harness "$@"\n'
    )
    script.chmod(0o755)
    return mine


@pytest.fixture
def _any_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that pages speak of are not here."""
    monkeypatch.setattr(click.Path, "convert", lambda _type, value, _parameter, _context: value)


@pytest.mark.usefixtures("_any_path")
@pytest.mark.parametrize("name", [n for n, block in BLOCKS.items() if list(verbs(block))])
def test_every_command_is_one(name: str) -> None:
    """Its verb and its options exist, and it has the arguments it needs."""
    for words in verbs(BLOCKS[name]):
        if words[0] not in ("--help", "VERB"):
            parse(words)


def parse(words: list[str]) -> None:
    """Raises click.UsageError for a verb or an option that is none, and for what is missing."""
    context = click.Context(main, info_name="hil")
    whose = tools if words[0] in tools.list_commands(context) else main
    command = whose.get_command(context, words[0])
    rest = words[1:]
    if isinstance(command, click.Group):
        if not rest or rest[0] not in command.commands:
            rest = [getattr(command, "default", "show"), *rest]
        command, rest = command.commands[rest[0]], rest[1:]
    assert command is not None
    command.make_context(words[0], rest)


@pytest.mark.parametrize("name", [n for n, block in _RUN.items() if block.why_not is None])
def test_a_command_prints_what_the_page_says(
    name: str, folder: Path, hil: Hil, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for variable in ("HIL_PROJECT", "HIL_REFERENCES"):
        monkeypatch.delenv(variable, raising=False)
    for command, said in shown(_RUN[name]):
        program, *words = shlex.split(command)
        assert program in ("hil", "./hil")
        done = hil(*words, COLUMNS="100")
        assert fits(said, on_any_machine(done.out)), f"$ {command}\n{done.out}{done.err}"


def on_any_machine(printed: str) -> str:
    """The page was written on a machine that exports the very bytes that were accepted. Torch adds
    in another order on another processor: other weights, another ``.pte``, and a note of that."""
    return "".join(line for line in printed.splitlines(True) if _OTHER_PTE not in line)


@pytest.mark.parametrize("name", _SCRIPTS)
def test_the_commands_of_a_block_work(name: str, folder: Path, call: Call) -> None:
    """Each line, in order, exits with 0, unless its comment says that it fails."""
    lines = Line.of(_SCRIPTS[name])
    script = "".join(f"{line.command}\nprintf '\\nstatus %s\\n' $?\n" for line in lines)
    path = f"{folder}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    for made in ("build", "repro"):  # by another block
        shutil.rmtree(folder / made, ignore_errors=True)
    done = call(["sh", "-c", script], folder, PATH=path, CI="", HOME=str(folder / "home"))
    failed = [status != "0" for status in re.findall(r"^status (\d+)$", done.stdout, re.M)]
    assert failed == [line.fails for line in lines], done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_every_block_says_what_it_is() -> None:
    """Otherwise nobody knows whether it has commands to run."""
    assert not [n for n, b in BLOCKS.items() if not b.kind and b.page not in GENERATED]
    commands = re.compile(r"(\./)?hil [a-z]|pytest |pip |cmake ")
    assert not [
        n
        for n, b in BLOCKS.items()
        if b.kind not in COMMANDS and commands.match(b.body) and b.page not in GENERATED
    ]


def test_no_text_installs_the_harness_from_an_index() -> None:
    """It is on none: whoever registers the name there would be installed."""
    root = project_root()
    texts = [
        p
        for f in ("docs", "examples", "harness", ".github", ".gitlab")
        for p in (root / f).rglob("*")
    ]
    texts = [p for p in texts if p.suffix in (".md", ".yml", ".yaml", ".toml", ".py", ".html")]
    asked = re.compile(
        r"""(?:install\s+["']?executorch-hil(?:\[[\w,]+\])?|["']executorch-hil\[[\w,]+\])"""
        r"""(?P<then>.{0,3})"""
    )
    found = [m for p in (*texts, root / "README.md") for m in asked.finditer(p.read_text("utf-8"))]
    assert len(found) >= 4
    assert [m[0] for m in found if m["then"] != " @ "] == []


def test_a_command_that_is_not_run_says_why() -> None:
    assert all(block.why_not != "" for block in BLOCKS.values())
    assert sum(block.why_not is None for block in _RUN.values()) >= 8
    assert len(_SCRIPTS) >= 6


@pytest.mark.parametrize(
    ("said", "printed", "ok"),
    [
        ("a ... c\n", "a b c\n", True),
        ("a\n...\nc\n", "a\nb\nb\nc\n", True),
        ("a\n", "b\n", False),
        ("a ...\n", "a\nb\n", False),
        ("a  \n", "a\n", True),
    ],
)
def test_the_reader(said: str, printed: str, ok: bool) -> None:
    assert fits(said, printed) is ok


@pytest.mark.usefixtures("_any_path")
def test_what_is_planted_is_noticed() -> None:
    block = Block("page.md", 1, "sh", "hil run host add --profil\n", None)
    (words,) = verbs(block)
    with pytest.raises(click.NoSuchOption):
        parse(words)
