"""A link command: from the compiler's arguments to the linker's, and its inputs in order."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from harness.core.errors import InfraError, ToolMissing

_LD = re.compile(r"^(?:.*[-/\\])?(?:ld|collect2|lld)(?:[.-](?:bfd|lld|\d+))?(?:\.exe)?$")
_DRIVER = re.compile(r"^(?:.*[-/\\])?(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+)(?:-[\d.]+)?(?:\.exe)?$")
_LAUNCHERS = {"ccache", "sccache", "distcc", "time", "env"}
# Options of GNU ld whose value is the next word; a long name may have one dash or two.
_WITH_VALUE = re.compile(
    r"-[oTLlemzybGRAchauFfIPY]|--?(?:dT|Map|plugin|plugin-opt|T(?:text|data|bss)|init|fini|soname"
    r"|rpath|rpath-link|dynamic-linker|defsym|wrap|undefined|entry|script|output|library"
    r"|library-path|section-start|require-defined|format|oformat|sysroot|version-script"
    r"|dynamic-list|retain-symbols-file|just-symbols)"
)
_TIMEOUT = 300
Origin = Literal["build.ninja", "link.txt", "log"]  # where the command was read


@dataclass(frozen=True)
class LinkCommand:
    """``argv`` as the build runs it, response files expanded."""

    argv: tuple[str, ...]
    directory: Path
    output: str
    origin: Origin


@dataclass(frozen=True)
class LinkerCall:
    """What the linker itself is called with; argv[0] is the linker."""

    argv: tuple[str, ...]
    directory: Path
    driver: str | None = None

    def resolve(self, name: str) -> Path:
        return self.directory / name


@dataclass(frozen=True)
class Input:
    """A file on the linker's line."""

    word: str  # as written: "-lfoo", "libx.a", "main.o"
    path: Path | None  # None when there is no such file
    index: int  # in argv
    whole: bool = False
    group: int = 0  # 0: in no group

    @property
    def is_archive(self) -> bool:
        return self.path is not None and _starts_with(self.path, (b"!<arch>\n", b"!<thin>\n"))


@dataclass(frozen=True)
class LinkLine:
    """The linker's line, understood."""

    inputs: tuple[Input, ...]
    search: tuple[Path, ...]
    scripts: tuple[Path, ...]


def _starts_with(path: Path, magics: tuple[bytes, ...]) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(8) in magics
    except OSError:
        return False


def expanded(argv: Sequence[str], directory: Path, depth: int = 0) -> tuple[str, ...]:
    """The words with every response file (``@file``) replaced by its words."""
    words: list[str] = []
    for word in argv:
        inside = _response(directory / word[1:]) if word.startswith("@") and depth < 8 else None
        words += [word] if inside is None else expanded(inside, directory, depth + 1)
    return tuple(words)


def _response(file: Path) -> list[str] | None:
    """The words of a response file; None for a file that cannot be read as one."""
    try:
        return shlex.split(file.read_text("utf-8", "replace")) if file.is_file() else None
    except (OSError, ValueError):
        return None


def commands_in(line: str) -> Iterator[tuple[str, ...]]:
    """The simple commands of a shell line: parts between ``&&`` and ``;``, launchers removed."""
    try:
        words = shlex.split(line)
    except ValueError:
        return
    part: list[str] = []
    for word in [*words, "&&"]:
        if word not in ("&&", ";", "||", "|"):
            part.append(word)
            continue
        while part and (Path(part[0]).name in _LAUNCHERS or re.match(r"\w+=", part[0])):
            part = part[1:]
        if part and part != [":"]:
            yield tuple(part)
        part = []


def link_command(argv: Sequence[str], directory: Path, origin: Origin) -> LinkCommand | None:
    """The command if it links a program, else None."""
    if not argv or not (_DRIVER.match(argv[0]) or _LD.match(argv[0]) or "armlink" in argv[0]):
        return None
    words = expanded(argv, directory)
    if {"-c", "-E", "-S", "-M", "-MM", "-r", "-shared"} & set(words) or "-o" not in words[:-1]:
        return None
    output = words[words.index("-o") + 1]
    if output.endswith((".o", ".obj")) or not any(_is_input(word) for word in words[1:]):
        return None
    return LinkCommand(words, directory, output, origin)


def _is_input(word: str) -> bool:
    return bool(re.search(r"\.(?:o|obj|a|lib)$", word)) and not word.startswith("-")


def linker_call(command: LinkCommand) -> LinkerCall:
    """What the compiler driver would run. Raises ToolMissing when there is no such driver."""
    program = command.argv[0]
    if not _DRIVER.match(program):
        return LinkerCall(command.argv, command.directory)
    driver = shutil.which(program)
    if driver is None:
        raise ToolMissing(f"{program} is not installed, but the link needs it", tool=program)
    output = _output(driver, [*command.argv[1:], "-###"], command.directory)
    lines = [line for line in output.splitlines() if line.startswith(" ")]
    for line in reversed(lines):
        words = shlex.split(line)
        if words and (_LD.match(words[0]) or Path(words[0]).name == "collect2"):
            linker = _output(driver, ["-print-prog-name=ld"], command.directory).strip()
            real = linker if Path(words[0]).name == "collect2" else words[0]
            arguments = _without_plugin(words[1:], command.argv)
            return LinkerCall((shutil.which(real) or real, *arguments), command.directory, driver)
    raise InfraError(f"{program} -### prints no linker command: {output.strip()[-300:]}")


def _without_plugin(words: Sequence[str], driver_words: Sequence[str]) -> list[str]:
    """Without the LTO plugin, whose path is absolute, where no object is LTO code."""
    if any(word.startswith("-flto") for word in driver_words):
        return list(words)
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word == "-plugin":
            skip = True
        elif not word.startswith(("-plugin-opt", "-plugin=")):
            kept.append(word)
    return kept


def _output(program: str, arguments: Sequence[str], directory: Path) -> str:
    done = subprocess.run(
        [program, *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_TIMEOUT,
        check=False,
    )
    return done.stdout + done.stderr


def values(argv: Sequence[str]) -> Iterator[tuple[int, str, str | None]]:
    """(index, option or file, value) of every word; a value in the next word is joined."""
    index = 1
    while index < len(argv):
        word = argv[index]
        if _WITH_VALUE.fullmatch(word) and index + 1 < len(argv):
            yield index, word, argv[index + 1]
            index += 2
            continue
        if word.startswith("--") and "=" in word:
            option, value = word.split("=", 1)
            yield index, option, value
        elif word[:2] in ("-l", "-L", "-T", "-u", "-e") and len(word) > 2 and word[:3] != "-Te":
            yield index, word[:2], word[2:]
        else:
            yield index, word, None
        index += 1


def understand(call: LinkerCall) -> LinkLine:
    """The inputs in order, with where -l found them."""
    words = list(values(call.argv))
    search = tuple(
        call.resolve(value)
        for _, option, value in words
        if option in ("-L", "--library-path") and value
    )
    inputs: list[Input] = []
    whole, group, groups = False, 0, 0
    for index, option, value in words:
        if option in ("--whole-archive", "-whole-archive"):
            whole = True
        elif option in ("--no-whole-archive", "-no-whole-archive"):
            whole = False
        elif option in ("--start-group", "-(", "-start-group"):
            groups += 1
            group = groups
        elif option in ("--end-group", "-)", "-end-group"):
            group = 0
        elif option in ("-l", "--library") and value:
            inputs.append(Input(f"-l{value}", _library(value, search), index, whole, group))
        elif not option.startswith("-") and value is None:
            path = call.resolve(option)
            inputs.append(Input(option, path if path.is_file() else None, index, whole, group))

    scripts = tuple(
        _script(value, call, search)
        for _, option, value in words
        if option in ("-T", "--script", "-dT") and value
    )
    return LinkLine(tuple(inputs), search, scripts)


def _library(name: str, search: Sequence[Path]) -> Path | None:
    file = name[1:] if name.startswith(":") else f"lib{name}.a"
    return next((d / file for d in search if (d / file).is_file()), None)


def _script(name: str, call: LinkerCall, search: Sequence[Path]) -> Path:
    places = (call.resolve(name), *(d / name for d in search))
    return next((p for p in places if p.is_file()), call.resolve(name))


def with_output(call: LinkerCall, output: Path) -> LinkerCall:
    """The same call writing elsewhere, and no map."""
    argv = [call.argv[0]]
    for index, option, value in values(call.argv):
        if option in ("-o", "--output") or option in ("-Map", "--Map"):
            continue
        step = 2 if value is not None and call.argv[index] == option else 1
        argv += call.argv[index : index + step]
    return replace(call, argv=(*argv, "-o", str(output)))
