"""Where a failing link is written down: build.ninja, link.txt, or the log itself."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InfraError, ToolMissing, UsageError
from harness.link.line.command import (
    LinkCommand,
    LinkerCall,
    Origin,
    commands_in,
    link_command,
    linker_call,
    with_output,
)
from harness.link.log.lines import lines_of
from harness.system.packages import how_to_get

_TIMEOUT = 300
# Of CMake and of west; the latter says it only when it gives up, behind the failure.
_BUILT_IN = re.compile(r"Build files have been written to: (.+)$|cmake --build (\S+)", re.M)
_ENTERING = re.compile(r"(?:Entering directory [`'](?P<dir>[^']+)')|(?:^cd (?P<cd>\S+) &&)")


@dataclass(frozen=True)
class Replay:
    """A link done again, to learn what the linker says today."""

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


def _from_ninja(build: Path) -> Iterator[LinkCommand]:
    ninja = shutil.which("ninja") or shutil.which("ninja-build") or shutil.which("samu")
    if ninja is None:
        raise ToolMissing("ninja is not installed, but the build directory is ninja's",
                          hint=how_to_get("ninja-build"))  # fmt: skip
    done = subprocess.run([ninja, "-C", str(build), "-t", "compdb", "-x"], capture_output=True,
                          text=True, timeout=_TIMEOUT, check=False)  # fmt: skip
    if done.returncode != 0:
        raise InfraError(f"ninja cannot read {build}: {done.stderr.strip()[-300:]}")
    start = done.stdout.find("[")
    for entry in json.loads(done.stdout[start:]):
        if " -o " in entry["command"]:
            yield from _commands(entry["command"], Path(entry["directory"]), "build.ninja")


def _from_make(build: Path) -> Iterator[LinkCommand]:
    for file in sorted(build.rglob("CMakeFiles/*.dir/link.txt")):
        directory = file.parent.parent.parent
        for line in file.read_text().splitlines():
            yield from _commands(line, directory, "link.txt")


def commands_in_log(text: str, log_directory: Path) -> tuple[LinkCommand, ...]:
    """Link commands that the log shows, where their files can still be found."""
    directory, found = log_directory, []
    named_in_log = [Path(a or b) for a, b in _BUILT_IN.findall(text)]
    elsewhere = (log_directory, *log_directory.parents[:2], *named_in_log)
    for line in lines_of(text):
        if entering := _ENTERING.search(line.text):
            named = Path(entering["dir"] or entering["cd"])
            directory = named if named.is_dir() else directory
        if " -o " not in line.text:
            continue
        for base in dict.fromkeys((directory, *elsewhere)):
            commands = [c for c in _commands(line.text, base, "log") if _has_files(c)]
            found += commands
            if commands:
                break
    return tuple(dict.fromkeys(found))


def _has_files(command: LinkCommand) -> bool:
    """By the inputs that tell where it was run: an absolute path is there from anywhere."""
    named = [w for w in command.argv if re.search(r"\.(?:o|obj|a)$", w) and not w.startswith("-")]
    telling = [name for name in named if not Path(name).is_absolute()] or named
    return any((command.directory / name).is_file() for name in telling)


def _commands(line: str, directory: Path, origin: Origin) -> Iterator[LinkCommand]:
    for argv in commands_in(line):
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
        done = subprocess.run(call.argv, cwd=call.directory, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=environment(), timeout=timeout,
                              check=False)  # fmt: skip
    except FileNotFoundError as error:
        raise ToolMissing(f"{call.argv[0]} is not installed", tool=call.argv[0]) from error
    return done.stdout.decode("utf-8", "replace"), done.returncode


def environment() -> dict[str, str]:
    return {"LC_ALL": "C", "PATH": os.environ.get("PATH", "/usr/bin:/bin")}


def failing_link(build: Path, scratch: Path) -> Replay | None:
    """The first link of the directory that fails when it is done again; None when all link."""
    for command in _likeliest_first(link_commands(build)):
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
