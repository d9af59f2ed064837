"""A link command: from the compiler's arguments to the linker's, and its inputs in order."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from harness.core.errors import InfraError, ToolMissing
from harness.system.call import CallFailed, call
from harness.system.files import read_regular

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
_SEARCH = ("-L", "--library-path")
_SCRIPT = ("-T", "--script", "-dT")
_OUTPUT = ("-o", "--output", "-Map", "--Map")
_TIMEOUT_S = 300


@dataclass(frozen=True)
class BuildCommand:
    """A command of a build that compiles, archives or links. ``argv``: as the build runs it, with
    the response files of a link expanded."""

    argv: tuple[str, ...]
    directory: Path
    output: str


@dataclass(frozen=True)
class LineWord:
    """An option of the linker's line with its value, or a file."""

    index: int  # in argv
    words: tuple[str, ...]  # as they stand there
    option: str  # "-l" of "-lfoo"; the file
    value: str | None = None


@dataclass(frozen=True)
class Input:
    """A file on the linker's line."""

    word: str  # as written: "-lfoo", "libx.a", "main.o"
    path: Path | None  # None when there is no such file
    index: int  # in argv
    whole: bool = False
    group: int = 0  # 0: in no group


@dataclass(frozen=True)
class LinkerCall:
    """A call of the linker; argv[0] is the linker. ``machine``: the options of the compiler
    ``driver`` that choose the target machine."""

    argv: tuple[str, ...]
    directory: Path
    driver: str | None = None
    machine: tuple[str, ...] = ()

    @cached_property
    def words(self) -> tuple[LineWord, ...]:
        return tuple(self._words())

    def _words(self) -> Iterator[LineWord]:
        index = 1
        while index < len(self.argv):
            word = self.argv[index]
            taken: tuple[str, ...] = (word,)
            option, value = word, None
            if _WITH_VALUE.fullmatch(word) and index + 1 < len(self.argv):
                value = self.argv[index + 1]
                taken = (word, value)
            elif word.startswith(("--", "-Map")) and "=" in word:
                option, value = word.split("=", 1)
            elif re.match(r"-[lLue].|-T(?!text|data|bss).", word):
                option, value = word[:2], word[2:]
            yield LineWord(index, taken, option, value)
            index += len(taken)

    @cached_property
    def search(self) -> tuple[Path, ...]:
        """The directories of -L."""
        return tuple(self.directory / value for value in self._values(_SEARCH))

    @cached_property
    def scripts(self) -> tuple[Path, ...]:
        """The linker scripts, where -L finds them."""
        return tuple(map(self.script, self._values(_SCRIPT)))

    def _values(self, options: Sequence[str]) -> Iterator[str]:
        return (word.value for word in self.words if word.option in options and word.value)

    def script(self, name: str) -> Path:
        places = (self.directory / name, *(directory / name for directory in self.search))
        return next((place for place in places if place.is_file()), places[0])

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """In order, with where -l found them."""
        inputs: list[Input] = []
        whole, group, groups = False, 0, 0
        for word in self.words:
            option, value = word.option, word.value
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
                inputs.append(Input(f"-l{value}", self._library(value), word.index, whole, group))
            elif not option.startswith("-") and value is None:
                path = self.directory / option
                file = path if path.is_file() else None
                inputs.append(Input(option, file, word.index, whole, group))
        return tuple(inputs)

    def _library(self, name: str) -> Path | None:
        file = name[1:] if name.startswith(":") else f"lib{name}.a"
        return next((d / file for d in self.search if (d / file).is_file()), None)

    def without(self, unwanted: Callable[[str], bool]) -> LinkerCall:
        """The call without the unwanted options and their values."""
        kept = [text for word in self.words if not unwanted(word.option) for text in word.words]
        return replace(self, argv=(self.argv[0], *kept))

    def with_output(self, output: Path) -> LinkerCall:
        """The same call with another output file and no map."""
        call = self.without(lambda option: option in _OUTPUT)
        return replace(call, argv=(*call.argv, "-o", str(output)))

    def run(self) -> tuple[str, int]:
        """The linker's output, in English, and its exit status. Raises ToolMissing."""
        return run(self.argv, self.directory)

    def compile_functions(self, names: Sequence[str], made: Path) -> None:
        """Compiles an object for the machine of the link. It defines these functions, each of which
        only returns. Raises InfraError."""
        if self.driver is None:
            raise InfraError("the link does not go through a compiler, which could make an object")
        source = made.with_suffix(".c")
        source.write_text(
            "".join(
                f'void f{n}(void) __asm__("{name}");\nvoid f{n}(void) {{}}\n'
                for n, name in enumerate(names)
            )
        )
        argv = (self.driver, *self.machine, "-fno-ident", "-c", str(source), "-o", str(made))
        text, status = run(argv, made.parent)
        source.unlink()
        if status != 0:
            raise InfraError(f"no object could be compiled: {text.strip()[:300]}")


def run(argv: Sequence[str], directory: Path) -> tuple[str, int]:
    """The output of a tool, in English, and its exit status. Raises ToolMissing, and InfraError at
    the time limit."""
    environment = {"LC_ALL": "C", "PATH": os.environ.get("PATH", "/usr/bin:/bin")}
    try:
        return call(argv, _TIMEOUT_S, cwd=directory, environment=environment), 0
    except CallFailed as failed:
        if failed.output is None:
            raise InfraError(f"{argv[0]}: {failed}") from failed
        return failed.output, 1
    except FileNotFoundError as error:
        raise ToolMissing(f"{argv[0]} is not installed", tool=argv[0]) from error


def expanded(argv: Sequence[str], directory: Path, depth: int = 0) -> tuple[str, ...]:
    """The words with every response file (``@file``) replaced by its words."""
    words: list[str] = []
    for word in argv:
        file = directory / word[1:]
        try:
            is_response = word.startswith("@") and depth < 8 and file.is_file()
            inside = (
                shlex.split(read_regular(file).decode("utf-8", "replace")) if is_response else None
            )
        except (OSError, ValueError):
            inside = None
        words += [word] if inside is None else expanded(inside, directory, depth + 1)
    return tuple(words)


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


def link_command(argv: Sequence[str], directory: Path) -> BuildCommand | None:
    """The command if it links a program, else None."""
    # A dry run does not write the response file that has the inputs.
    responds = any(re.match(r"@\S+\.rsp$", word) for word in argv)
    program = argv[0] if argv else ""
    if not (responds or _DRIVER.match(program) or _LD.match(program) or "armlink" in program):
        return None
    words = expanded(argv, directory)
    if {"-c", "-E", "-S", "-M", "-MM", "-r"} & set(words) or "-o" not in words[:-1]:
        return None
    output = words[words.index("-o") + 1]
    inputs = [w for w in words[1:] if re.search(r"\.(?:o|obj|a|lib)$", w) and w[0] != "-"]
    if not responds and (output.endswith((".o", ".obj")) or not inputs):
        return None
    return BuildCommand(words, directory, output)


def linker_call(command: BuildCommand) -> LinkerCall:
    """The linker call that the compiler driver makes. Raises ToolMissing without that driver."""
    program = command.argv[0]
    if not _DRIVER.match(program):
        return LinkerCall(command.argv, command.directory)
    driver = shutil.which(program)
    if driver is None:
        raise ToolMissing(f"{program} is not installed, but the link needs it", tool=program)
    text, _ = run((driver, *command.argv[1:], "-###"), command.directory)
    for line in reversed([line for line in text.splitlines() if line.startswith(" ")]):
        words = shlex.split(line)
        if words and _LD.match(words[0]):
            linker = words[0]
            if Path(linker).name == "collect2":
                linker = run((driver, "-print-prog-name=ld"), command.directory)[0].strip()
            machine = tuple(w for w in command.argv[1:] if re.match(r"-m[a-z]|--target=", w))
            argv = (shutil.which(linker) or linker, *words[1:])
            call = LinkerCall(argv, command.directory, driver, machine)
            if any(word.startswith("-flto") for word in command.argv):
                return call
            # The LTO plugin's path is absolute, and no object is LTO code.
            return call.without(lambda option: option.startswith("-plugin"))
    raise InfraError(f"{program} -### prints no linker command: {text.strip()[-300:]}")
