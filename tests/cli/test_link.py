"""Protects the surface of `hil link`: exit codes and the JSON that others read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.link import link
from harness.core.verdict import ExitCode
from tests.link.plants import PLANTS, Project

LOG = "ld: main.o: in function `main':\nmain.c:3: undefined reference to `foo'\ncollect2: error: ld returned 1 exit status\n"  # fmt: skip # noqa: E501


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cli")
    project = Project(PLANTS[0], root / "source", root / "build")
    project.configure_and_build(fixed=False)
    return project.build


def test_explain_speaks_json(build: Path) -> None:
    result = CliRunner().invoke(link, ["explain", str(build), "--json"])
    assert result.exit_code == 1
    (failure,) = json.loads(result.stdout)["failures"]
    assert failure["kind"] == "undefined_symbol"
    assert failure["symbol"] == "arm_ethos_io_memcpy"
    assert {"region", "bytes", "cause", "fix", "places", "definitions"} <= failure.keys()


def test_explain_speaks_to_people(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    result = CliRunner().invoke(link, ["explain", str(tmp_path / "log")])
    assert result.exit_code == 1
    first, cause, message = result.stdout.splitlines()
    assert first.startswith("Find the source or library that defines foo")
    assert "main.c:3" in first
    assert cause.startswith("  cause     undefined symbol: foo is needed by main.o (main.c:3)")
    assert message.startswith(f"  message   {tmp_path}/log:2: main.c:3: undefined reference")


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (
            "main.c:3:5: error: 'x' undeclared\nmake: *** [a.o] Error 1\n",
            "Correct main.c:3: 'x' undeclared.",
        ),
        (
            "sh: 1: west: not found\n",
            "Activate the Python environment that has west, or `pip install west`.",
        ),
        ("[1/2] Building C object a.o\n", "Run the build to its end"),
    ],
)
def test_the_first_line_is_what_to_do_and_nothing_is_said_twice(
    tmp_path: Path, text: str, first: str
) -> None:
    (tmp_path / "log").write_text(text)
    lines = CliRunner().invoke(link, ["explain", str(tmp_path / "log")]).stdout.splitlines()
    assert lines[0].startswith(first)
    assert lines[1].startswith("  cause     ")
    assert not any("undeclared" in line for line in lines[2:])


def test_a_log_without_a_failed_link_exits_with_0(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("[1/1] Linking C executable x.elf\nx.elf: 12 bytes\n")
    result = CliRunner().invoke(link, ["explain", str(tmp_path / "log")])
    assert result.exit_code == 0
    assert "no failed link" in result.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "no link was recognised"),
        (bytes(range(256)) * 3, "no link was recognised"),
        (b"make: *** No rule to make target 'x'.  Stop.\n", "build stopped"),
        (b"Error: L6216E: Cannot use base/limit symbols\n", "L6216E: Cannot use base"),
        (b"ld.lld: error: unknown argument '--foo'\n", "unknown argument '--foo'"),
        (b"ld: error: \x1b]52;c;aGk=\x07evil\x08\x9b31m\n", "evil\\x08"),
        (b"x.elf: \n::error::ld: error: y\n##[group]\n", ""),
    ],
)
def test_what_cannot_be_recognised_is_not_green(tmp_path: Path, text: bytes, said: str) -> None:
    """And nothing that a log holds reaches the terminal as a control sequence."""
    (tmp_path / "log").write_bytes(text)
    result = CliRunner().invoke(link, ["explain", str(tmp_path / "log")])
    assert result.exit_code == 1
    assert said in result.stdout
    assert not set(result.stdout) & {"\x1b", "\x07", "\x08", "\x9b", "\r"}
    assert not [x for x in result.stdout.splitlines() if x.strip().startswith("::") or "##[" in x]
    assert json.loads(CliRunner().invoke(link, ["explain", str(tmp_path / "log"), "--json"]).stdout)


def test_one_place_is_named_once(tmp_path: Path) -> None:
    """Places of one object that differ in their offset read the same."""
    use = "ld: main.o: in function `main':\nmain.c:(.text+0x%d): undefined reference to `foo'\n"
    (tmp_path / "log").write_text("".join(use % n for n in range(4)))
    result = CliRunner().invoke(link, ["explain", str(tmp_path / "log")])
    assert "also" not in result.stdout


@pytest.mark.parametrize("verb", ["explain", "reduce"])
def test_what_is_not_there_is_wrong_usage(verb: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(link, [verb, str(tmp_path / "none"), "--json"])
    assert result.exit_code == 2
    assert "none" in json.loads(result.stdout)["cause"]["text"]


def test_a_directory_that_was_not_configured_to_its_end(tmp_path: Path) -> None:
    """Why is in the output alone: CMake leaves no build.ninja, and no log."""
    (tmp_path / "CMakeCache.txt").write_text("")
    result = CliRunner().invoke(link, ["explain", str(tmp_path)])
    assert result.exit_code == 2
    assert "was not configured to its end" in result.output
    assert "west build ... 2>&1 | tee build.log" in result.output


def test_a_directory_without_a_link_is_wrong_usage(tmp_path: Path) -> None:
    result = CliRunner().invoke(link, ["explain", str(tmp_path), "--json"])
    assert result.exit_code == 2
    cause = json.loads(result.stdout)["cause"]
    assert "no link command" in cause["text"]
    assert cause["facts"] == {"path": str(tmp_path)}


def test_reduce_writes_once(build: Path, tmp_path: Path) -> None:
    words = ["reduce", str(build), "-o", str(tmp_path / "out"), "--json"]
    first = CliRunner().invoke(link, words)
    assert first.exit_code == 0
    assert json.loads(first.stdout)["failure"]["symbol"] == "arm_ethos_io_memcpy"
    second = CliRunner().invoke(link, words)
    assert second.exit_code == 2
    assert "exists already" in second.stdout


def test_check_that_proves_nothing_exits_with_1(build: Path) -> None:
    result = CliRunner().invoke(link, ["check", str(build), "--overridable", "log_line", "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["overridable"] is False


def test_a_reader_that_has_seen_enough_is_not_an_error(tmp_path: Path) -> None:
    """`hil link explain LOG | head -1`: no message, and no success either."""
    log = tmp_path / "build.log"
    log.write_text("main.o: in function `main':\nmain.c:1: undefined reference to `f'\n")
    read_end, write_end = os.pipe()
    os.close(read_end)
    script = f"from harness.cli.main import main; main(['link', 'explain', {str(log)!r}])"
    with open(write_end, "wb") as nobody_reads:
        done = subprocess.run(
            [sys.executable, "-c", script], stdout=nobody_reads, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (ExitCode.FAILED, b"")
