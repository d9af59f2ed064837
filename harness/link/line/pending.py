"""What a build directory still has to do, as ninja or make say it without doing it.

A build that ended has nothing left to compile, to archive or to link. Custom targets are always
out of date and count only by what depends on them.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.core.errors import ToolMissing
from harness.link.line.capture import environment
from harness.link.line.command import LinkCommand, commands_in, link_command
from harness.system.packages import how_to_get

_TIMEOUT = 300
_STEP = re.compile(r"^\[\s*\d+/\d+\] (?P<command>.+)$")
_LINK_SCRIPT = re.compile(r"cmake_link_script\"? \"?(?P<script>\S+?link\.txt)")
_ARCHIVER = re.compile(r"(?:^|[-/])ar(?:-\d+)?$")
_CONFIGURES = re.compile(r"Re-running CMake|--regenerate-during-build")
_DEPENDENCIES = {"-MD", "-MMD", "-MP", "-MG"}  # write a file into the build directory
_WITH_FILE = {"-MF", "-MT", "-MQ", "-o"}
_MOST_COMPILED = 64  # steps whose sources are compiled again; a build stops at its first errors


@dataclass(frozen=True)
class CompileStep:
    argv: tuple[str, ...]
    directory: Path
    output: str

    def checked(self) -> str:
        """What the compiler says when it only checks the source; "" when it accepts it."""
        words: list[str] = []
        skip = False
        for word in self.argv:
            if not skip and word not in _DEPENDENCIES and word not in _WITH_FILE:
                words.append("-fsyntax-only" if word == "-c" else word)
            skip = not skip and word in _WITH_FILE
        done = subprocess.run(
            words,
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment(),
            timeout=_TIMEOUT,
            check=False,
        )
        return done.stdout.decode("utf-8", "replace") if done.returncode else ""


@dataclass(frozen=True)
class ArchiveStep:
    directory: Path
    output: str


@dataclass(frozen=True)
class Pending:
    """``made``: every file that compiling, archiving or linking has yet to write. ``generates``:
    other commands come too. ``configures``: CMake runs first, and what comes then is not known.
    ``refused``: what ninja or make say that prevents them from building at all."""

    compiles: tuple[CompileStep, ...] = ()
    links: tuple[LinkCommand, ...] = ()
    made: frozenset[Path] = frozenset()
    generates: bool = False
    configures: bool = False
    refused: str = ""

    @property
    def next_step(self) -> str:
        """ "" when the build has ended."""
        if self.configures:
            return "configuring with CMake"
        if self.compiles:
            return f"compiling {self.compiles[0].output}"
        return f"linking {self.links[0].output}" if self.links else ""

    def feeds(self, command: LinkCommand) -> bool:
        """Whether an input of the link has yet to be made."""
        inputs = (word for word in command.argv[1:] if word != command.output)
        return any((command.directory / word).resolve() in self.made for word in inputs)

    def compiler_errors(self) -> str:
        """What the compiler says of the first source that it refuses; "" if it refuses none."""
        said = (step.checked() for step in self.compiles[:_MOST_COMPILED])
        return next((text for text in said if text), "")


def pending_steps(build: Path) -> Pending:
    """Raises ToolMissing."""
    if (build / "build.ninja").is_file():
        done = _dry_run(("ninja", "ninja-build", "samu"), "ninja-build", build, "-n", "-v")
        lines = [match["command"] for x in done.stdout.splitlines() if (match := _STEP.match(x))]
    else:
        done = _dry_run(("make", "gmake"), "make", build, "-n")
        lines = done.stdout.splitlines()
    if done.returncode != 0:
        return Pending(refused=done.stdout + done.stderr)
    steps = [step for line in lines for step in _steps(line, build)]
    made = {(step.directory / step.output).resolve() for step in steps}
    return Pending(
        compiles=tuple(step for step in steps if isinstance(step, CompileStep)),
        links=tuple(step for step in steps if isinstance(step, LinkCommand)),
        made=frozenset(made),
        generates=len(lines) > len(steps),
        configures=bool(_CONFIGURES.search(done.stdout)),
    )


def _dry_run(
    names: Sequence[str], package: str, build: Path, *options: str
) -> subprocess.CompletedProcess[str]:
    tool = next((path for name in names if (path := shutil.which(name))), None)
    if tool is None:
        raise ToolMissing(
            f"{names[0]} is not installed, but the build directory is {names[0]}'s",
            hint=how_to_get(package),
        )
    return subprocess.run(
        [tool, "-C", str(build), *options],
        capture_output=True,
        text=True,
        errors="replace",
        env=environment(),
        timeout=_TIMEOUT,
        check=False,
    )


def _steps(line: str, directory: Path) -> Iterator[CompileStep | ArchiveStep | LinkCommand]:
    for argv in commands_in(line):
        if argv[0] == "cd" and len(argv) > 1:
            directory = directory / argv[1]
        elif "-c" in argv and "-o" in argv[:-1]:
            yield CompileStep(argv, directory, argv[argv.index("-o") + 1])
        elif script := _LINK_SCRIPT.search(shlex.join(argv)):
            file = directory / script["script"]
            text = file.read_text("utf-8", "replace") if file.is_file() else ""
            for command in text.splitlines():
                yield from _steps(command, directory)
        elif _ARCHIVER.search(argv[0]):
            yield from (ArchiveStep(directory, word) for word in argv if word.endswith(".a"))
        else:
            link = link_command(argv, directory, "build.ninja") or _by_response(argv, directory)
            yield from () if link is None else (link,)


def _by_response(argv: tuple[str, ...], directory: Path) -> LinkCommand | None:
    """A link whose inputs are in a response file, which a dry run does not write."""
    if "-o" not in argv[:-1] or not any(re.match(r"@\S+\.rsp$", word) for word in argv):
        return None
    return LinkCommand(argv, directory, argv[argv.index("-o") + 1], "build.ninja")
