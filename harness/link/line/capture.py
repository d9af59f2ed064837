"""Finds the command of a failing link, in build.ninja, link.txt or the log, and runs it again."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.core.errors import InfraError, ToolMissing, UsageError
from harness.link.line.command import (
    LinkCommand,
    LinkerCall,
    Origin,
    commands_in,
    link_command,
    linker_call,
    with_output,
)
from harness.link.log.lines import Line
from harness.system.packages import how_to_get

_TIMEOUT = 300
# Of CMake and of west, which prints it only when it gives up, below the failure.
_BUILT_IN = re.compile(r"Build files have been written to: (.+)$|cmake --build (\S+)")
_ENTERING = re.compile(r"(?:Entering directory [`'](?P<dir>[^']+)')|(?:^cd (?P<cd>\S+) &&)")


@dataclass(frozen=True)
class Replay:
    """A link that was run again, and what the linker printed."""

    command: LinkCommand
    call: LinkerCall
    failed: bool
    text: str


def link_commands(build: Path) -> tuple[LinkCommand, ...]:
    """Every command of a build directory that links a program."""
    if (build / "build.ninja").is_file():
        found = list(_from_ninja(build))
    else:
        found = list(_from_make(build))
    if not found:
        raise UsageError(
            f"{build} has no link command (looked for build.ninja and CMakeFiles/*/link.txt)",
            hint="give the build directory of CMake, with Ninja or Makefiles, or a log",
            path=build,
        )
    return tuple(dict.fromkeys(found))


def ninja_commands(build: Path) -> list[dict[str, str]]:
    """ninja's compilation database: ``directory``, ``command``, ``file`` and ``output`` of every
    step. Raises ToolMissing, InfraError."""
    ninja = shutil.which("ninja") or shutil.which("ninja-build") or shutil.which("samu")
    if ninja is None:
        raise ToolMissing(
            "ninja is not installed, but the build directory is ninja's",
            hint=how_to_get("ninja-build"),
        )
    done = subprocess.run(
        [ninja, "-C", str(build), "-t", "compdb", "-x"],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )
    start = done.stdout.find("[")
    if done.returncode != 0 or start < 0:
        raise InfraError(f"ninja cannot read {build}: {done.stderr.strip()[-300:]}")
    return list(json.loads(done.stdout[start:]))


def _from_ninja(build: Path) -> Iterator[LinkCommand]:
    for entry in ninja_commands(build):
        if " -o " in entry["command"]:
            yield from _commands(entry["command"], Path(entry["directory"]), "build.ninja")


def _from_make(build: Path) -> Iterator[LinkCommand]:
    for file in sorted(build.rglob("CMakeFiles/*.dir/link.txt")):
        directory = file.parent.parent.parent
        for line in file.read_text().splitlines():
            yield from _commands(line, directory, "link.txt")


def commands_in_log(lines: Sequence[Line], log_directory: Path) -> tuple[LinkCommand, ...]:
    """Link commands that the log shows, where their files can still be found."""
    directory, found = log_directory, []
    named_in_log = [Path(a or b) for line in lines for a, b in _BUILT_IN.findall(line.text)]
    elsewhere = (log_directory, *log_directory.parents[:2], *named_in_log)
    for line in lines:
        if entering := _ENTERING.search(line.text):
            named = Path(entering["dir"] or entering["cd"])
            directory = named if named.is_dir() else directory
        if not _may_link(line.text):
            continue
        shell_commands = tuple(commands_in(line.text))
        for base in dict.fromkeys((directory, *elsewhere)):
            commands = [c for c in _link_commands(shell_commands, base, "log") if _has_files(c)]
            found += commands
            if commands:
                break
    return tuple(dict.fromkeys(found))


def _may_link(line: str) -> bool:
    """Quickly: a log has thousands of lines that only compile, and splitting one takes long."""
    return any(" -o " in part and " -c " not in part for part in re.split(r"&&|;", line))


def _has_files(command: LinkCommand) -> bool:
    """Whether its inputs are there. Relative paths decide: an absolute one exists from anywhere."""
    named = [w for w in command.argv if re.search(r"\.(?:o|obj|a)$", w) and not w.startswith("-")]
    relative = [name for name in named if not Path(name).is_absolute()] or named
    return any((command.directory / name).is_file() for name in relative)


def _commands(line: str, directory: Path, origin: Origin) -> Iterator[LinkCommand]:
    return _link_commands(commands_in(line), directory, origin)


def _link_commands(
    shell_commands: Iterable[tuple[str, ...]], directory: Path, origin: Origin
) -> Iterator[LinkCommand]:
    for argv in shell_commands:
        if argv[0] == "cd" and len(argv) > 1:
            directory = directory / argv[1]
        elif command := link_command(argv, directory, origin):
            yield command


def replay(command: LinkCommand, scratch: Path) -> Replay:
    """Link again, into ``scratch``."""
    call = linker_call(command)
    text, status = run_linker(with_output(call, scratch / "replayed.elf"))
    return Replay(command, call, status != 0, text)


def run_linker(call: LinkerCall, timeout: float = _TIMEOUT) -> tuple[str, int]:
    """What the linker says, in English, and its exit status."""
    try:
        done = subprocess.run(
            call.argv,
            cwd=call.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment(),
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as error:
        raise ToolMissing(f"{call.argv[0]} is not installed", tool=call.argv[0]) from error
    return done.stdout.decode("utf-8", "replace"), done.returncode


def environment() -> dict[str, str]:
    return {"LC_ALL": "C", "PATH": os.environ.get("PATH", "/usr/bin:/bin")}


def failing_link(
    build: Path, scratch: Path, skipped: Callable[[LinkCommand], bool] = lambda _: False
) -> Replay | None:
    """The first link of the directory that fails when it is done again; None when all link."""
    for command in _likeliest_first(link_commands(build)):
        if skipped(command):
            continue
        again = replay(command, scratch)
        if again.failed:
            return again
    return None


def _likeliest_first(commands: Sequence[LinkCommand]) -> list[LinkCommand]:
    """Links whose inputs are all there and whose product is not, first."""

    def rank(command: LinkCommand) -> tuple[bool, bool]:
        files = [w for w in command.argv[1:] if re.search(r"\.(?:o|obj)$", w) and w[0] != "-"]
        complete = all((command.directory / name).is_file() for name in files)
        return not complete, (command.directory / command.output).is_file()

    return sorted(commands, key=rank)


def shell(argv: Sequence[str]) -> str:
    return " ".join(shlex.quote(word) for word in argv)
