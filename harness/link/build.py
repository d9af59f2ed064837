"""Runs the links of a build directory again, and lists what ninja or make would still do there (a
dry run).

A finished build has nothing left to compile, archive or link. Custom targets are always out of
date, so they count only by what depends on them.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.core.errors import InfraError, ToolMissing, UsageError
from harness.link.command import (
    BuildCommand,
    LinkerCall,
    commands_in,
    link_command,
    linker_call,
    run,
)
from harness.link.log.lines import Line
from harness.system.files import text_of
from harness.system.packages import how_to_get

StepKind = Literal["compile", "archive", "link"]

_STEP = re.compile(r"^\[\s*\d+/\d+\] (?P<command>.+)$")
_LINK_SCRIPT = re.compile(r"cmake_link_script\"? \"?(?P<script>\S+?link\.txt)")
_ARCHIVER = re.compile(r"(?:^|[-/])ar(?:-\d+)?$")
_COMPILED = re.compile(r'^\s*"([^"]+)" "([^"]+)" "gcc"', re.MULTILINE)  # of DependInfo.cmake
_PRODUCT = re.compile(r"(?: -o |\bar(?:-\d+)? \w+ )(\S+)")
_CONFIGURES = re.compile(r"Re-running CMake|--regenerate-during-build")
_OF_LTO = re.compile("plugin needed to handle lto object|COLLECT_GCC")
_DEPENDENCIES = {"-MD", "-MMD", "-MP", "-MG"}  # write a file into the build directory
_WITH_FILE = {"-MF", "-MT", "-MQ", "-o"}
_MOST_COMPILED = 64  # steps whose sources are compiled again; a build stops at its first errors
# Lines of CMake and of west, which prints it only when it gives up, below the failure.
_BUILT_IN = re.compile(r"Build files have been written to: (.+)$|cmake --build (\S+)")
_ENTERING = re.compile(r"(?:Entering directory [`'](?P<dir>[^']+)')|(?:^cd (?P<cd>\S+) &&)")


def _tool(build: Path) -> tuple[str, str, str]:
    """The ninja or make that built this directory, as it runs there. Raises ToolMissing."""
    is_ninja = (build / "build.ninja").is_file()
    names = ("ninja", "ninja-build", "samu") if is_ninja else ("make", "gmake")
    tool = next((path for name in names if (path := shutil.which(name))), None)
    if tool is None:
        raise ToolMissing(
            f"{names[0]} is not installed, but the build directory is {names[0]}'s",
            hint=how_to_get("ninja-build" if is_ninja else "make"),
        )
    return tool, "-C", str(build)


def _steps(line: str, directory: Path) -> Iterator[tuple[StepKind, BuildCommand]]:
    """The commands of a shell line that compile, archive or link."""
    for argv in commands_in(line):
        if argv[0] == "cd" and len(argv) > 1:
            directory = directory / argv[1]
        elif "-c" in argv and "-o" in argv[:-1]:
            yield "compile", BuildCommand(argv, directory, argv[argv.index("-o") + 1])
        elif script := _LINK_SCRIPT.search(shlex.join(argv)):
            file = directory / script["script"]
            for command in text_of(file).splitlines():
                yield from _steps(command, directory)
        elif _ARCHIVER.search(argv[0]):
            for word in argv:
                if word.endswith(".a"):
                    yield "archive", BuildCommand(argv, directory, word)
        elif link := link_command(argv, directory):
            yield "link", link


def _links(line: str, directory: Path) -> Iterator[BuildCommand]:
    return (command for kind, command in _steps(line, directory) if kind == "link")


def link_commands(build: Path) -> tuple[BuildCommand, ...]:
    """Every command of a build directory that links a program. Raises UsageError."""
    commands: list[BuildCommand] = []
    for step in build_steps(build):
        if " -o " in step["command"]:
            commands += _links(step["command"], Path(step["directory"]))
    configured = any((build / name).is_file() for name in ("build.ninja", "Makefile"))
    if not commands and (build / "CMakeCache.txt").is_file() and not configured:
        raise UsageError(
            f"{build} was not configured to its end, and CMake keeps no log of that",
            hint="give the output: `west build ... 2>&1 | tee build.log` (or `cmake "
            f"{build} 2>&1 | tee build.log`), then `hil link explain build.log`",
            path=build,
        )
    if not commands:
        raise UsageError(
            f"{build} has no link command (looked for build.ninja and CMakeFiles/*/link.txt)",
            hint="give the build directory of CMake, with Ninja or Makefiles, or a log",
            path=build,
        )
    return tuple(dict.fromkeys(commands))


def build_steps(build: Path) -> list[dict[str, str]]:
    """Every step of a build: ``directory``, ``command``, ``file`` and ``output``, as ninja's
    compilation database has them, or from the files of CMake's Makefiles. Raises ToolMissing,
    InfraError."""
    if (build / "build.ninja").is_file():
        text, status = run((*_tool(build), "-t", "compdb", "-x"), build)
        start = re.search(r"^\[", text, re.MULTILINE)
        if status != 0 or start is None:
            raise InfraError(f"ninja cannot read {build}: {text.strip()[-300:]}")
        return list(json.JSONDecoder().raw_decode(text, start.start())[0])
    steps = []
    for folder in sorted(build.rglob("CMakeFiles/*.dir")):
        for source, made in _COMPILED.findall(text_of(folder / "DependInfo.cmake")):
            step = {"directory": str(build), "command": f"-c {source} -o {made}"}
            steps.append({**step, "file": source, "output": made})
        for line in text_of(folder / "link.txt").splitlines():
            output = _PRODUCT.search(line)
            step = {"directory": str(folder.parent.parent), "command": line}
            steps.append({**step, "file": "", "output": output[1] if output else ""})
    return steps


def compile_step(build: Path, made: str) -> BuildCommand | None:
    """The command that compiles the object of this file name; None if there is not just one."""
    named = [s for s in build_steps(build) if Path(s["output"] or "").name == made]
    if len(named) != 1:
        return None
    directory = Path(named[0]["directory"])
    steps = (step for kind, step in _steps(named[0]["command"], directory) if kind == "compile")
    return next(steps, None)


def commands_in_log(lines: Sequence[Line], log_directory: Path) -> tuple[BuildCommand, ...]:
    """The link commands of a log whose files still exist."""
    directory, links = log_directory, []
    named_in_log = [Path(a or b) for line in lines for a, b in _BUILT_IN.findall(line.text)]
    elsewhere = (log_directory, *log_directory.parents[:2], *named_in_log)
    for line in lines:
        if entering := _ENTERING.search(line.text):
            named = Path(entering["dir"] or entering["cd"])
            directory = named if named.is_dir() else directory
        # Thousands of lines only compile, and splitting one into commands takes long.
        parts = re.split(r"&&|;", line.text)
        if not any(" -o " in part and " -c " not in part for part in parts):
            continue
        found = (
            [command for command in _links(line.text, base) if _has_files(command)]
            for base in dict.fromkeys((directory, *elsewhere))
        )
        links += next(filter(None, found), [])
    return tuple(dict.fromkeys(links))


def _has_files(command: BuildCommand) -> bool:
    """Whether its inputs exist. Relative paths decide: an absolute one exists from anywhere."""
    named = [w for w in command.argv if re.search(r"\.(?:o|obj|a)$", w) and not w.startswith("-")]
    relative = [name for name in named if not Path(name).is_absolute()] or named
    return any((command.directory / name).is_file() for name in relative)


@dataclass(frozen=True)
class FailedLink:
    """A link that was run again and failed, and what the linker printed."""

    command: BuildCommand
    call: LinkerCall
    text: str


def failing_link(
    build: Path, skipped: Callable[[BuildCommand], bool] = lambda _: False
) -> FailedLink | None:
    """Runs the links of the directory again. Returns the first that fails, None if none does."""
    for command in sorted(link_commands(build), key=_completeness):
        if not skipped(command):
            call = linker_call(command)
            with tempfile.TemporaryDirectory(prefix="hil-link-") as scratch:
                product = Path(scratch) / "replayed.elf"
                text, status = _run(command, call, product)
            if status != 0:
                return FailedLink(command, call, text.replace(str(product), command.output))
    return None


def _run(command: BuildCommand, call: LinkerCall, output: Path) -> tuple[str, int]:
    """Runs the linker itself; with link-time optimisation the compiler's driver, because it tells
    the linker's plugin where the compiler is."""
    text, status = call.with_output(output).run()
    if status == 0 or not (
        _OF_LTO.search(text) or any(w.startswith("-flto") for w in command.argv)
    ):
        return text, status
    words = tuple(word for word in command.argv if not word.startswith("-Wl,-Map"))
    return LinkerCall(words, command.directory).with_output(output).run()


def _completeness(command: BuildCommand) -> tuple[bool, bool]:
    """A sort key: first the links whose inputs exist and whose output does not."""
    files = [w for w in command.argv[1:] if re.search(r"\.(?:o|obj)$", w) and w[0] != "-"]
    complete = all((command.directory / name).is_file() for name in files)
    return not complete, (command.directory / command.output).is_file()


@dataclass(frozen=True)
class Pending:
    """The steps that a build directory still has to do.

    ``made``: the files that compiling, archiving and linking will write. ``generates``: other
    commands run too. ``configures``: CMake runs first, and what follows is unknown. ``refused``:
    the error with which ninja or make stop before they build anything.
    """

    compiles: tuple[BuildCommand, ...] = ()
    links: tuple[BuildCommand, ...] = ()
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

    def feeds(self, command: BuildCommand) -> bool:
        """Whether an input of the link has yet to be made."""
        inputs = (word for word in command.argv[1:] if word != command.output)
        return any((command.directory / word).resolve() in self.made for word in inputs)

    def compiler_errors(self) -> str:
        """The compiler's errors for the first source that does not compile; "" if all do."""
        refusals = map(_refusal, self.compiles[:_MOST_COMPILED])
        return next((text for text in refusals if text), "")


def _refusal(step: BuildCommand) -> str:
    """The compiler's errors when it only checks the source; "" if there are none."""
    words: list[str] = []
    before = ""
    for word in step.argv:
        if word not in _DEPENDENCIES | _WITH_FILE and before not in _WITH_FILE:
            words.append("-fsyntax-only" if word == "-c" else word)
        before = word
    text, status = run(words, step.directory)
    return text if status != 0 else ""


def pending_steps(build: Path) -> Pending:
    """Asks ninja or make with a dry run. Raises ToolMissing."""
    if (build / "build.ninja").is_file():
        text, status = run((*_tool(build), "-n", "-v"), build)
        lines = [match["command"] for x in text.splitlines() if (match := _STEP.match(x))]
    else:
        text, status = run((*_tool(build), "-n"), build)
        lines = text.splitlines()
    if status != 0:
        return Pending(refused=text)
    steps = [step for line in lines for step in _steps(line, build)]
    return Pending(
        compiles=tuple(command for kind, command in steps if kind == "compile"),
        links=tuple(command for kind, command in steps if kind == "link"),
        made=frozenset((command.directory / command.output).resolve() for _, command in steps),
        generates=len(lines) > len(steps),
        configures=bool(_CONFIGURES.search(text)),
    )
