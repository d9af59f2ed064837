"""Protects readers from commands that are not there, and from output that nobody gets."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import click
import pytest

from harness.cli.main import main
from tests.cli.conftest import Hil, hil
from tests.examples.conftest import repository
from tools.commands import main as tools

from .blocks import Block, blocks, fits, shown, verbs

__all__ = ["hil", "repository"]  # fixtures

BLOCKS = {block.id: block for block in blocks()}
_RUN = {name: block for name, block in BLOCKS.items() if block.kind == "console"}
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
    """The repository of the examples, and what the pages speak of besides."""
    mine = shutil.copytree(repository, tmp_path_factory.mktemp("docs") / "my-models")
    for name, text in _FILES.items():
        (mine / name).write_text(text)
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
        assert program == "hil"
        done = hil(*words, COLUMNS="100")
        assert fits(said, on_any_machine(done.out)), f"$ {command}\n{done.out}{done.err}"


def on_any_machine(printed: str) -> str:
    """The page was written on a machine that exports the very bytes that were accepted. Torch adds
    in another order on another processor: other weights, another ``.pte``, and a note of that."""
    return "".join(line for line in printed.splitlines(True) if _OTHER_PTE not in line)


def test_a_command_that_is_not_run_says_why() -> None:
    assert all(block.why_not for block in _RUN.values() if block.why_not is not None)
    assert sum(block.why_not is None for block in _RUN.values()) >= 8


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
    block = Block("page.md", 1, "", "hil run host add --profil\n", None)
    (words,) = verbs(block)
    with pytest.raises(click.NoSuchOption):
        parse(words)
