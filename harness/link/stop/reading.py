"""From a log to why the build stopped, where no linker complained."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from harness.link.log import messages
from harness.link.stop import cmake, devicetree, kconfig, west
from harness.link.stop.model import Statement, Stop, StopKind
from harness.link.stop.statements import statements_of

# In this order where two fit one message. Of several messages the first one counts: what follows
# it is mostly its consequence.
_RULES = (*devicetree.RULES, *kconfig.RULES, *west.RULES, *cmake.RULES)
_COMPILER = re.compile(
    r"^(?P<file>[^\s:][^:]*):(?P<at>\d+):(?:\d+:)? (?:fatal )?error: (?P<what>.+)$"
)
_EXPANDED = re.compile(r"^(?P<file>[^\s:]+):(?P<at>\d+):\d+: note: in expansion of macro")
_HEADER = re.compile(r"^(?P<header>\S+): No such file or directory$")
# Made by Zephyr's scripts/build/gen_syscalls.py; seen with 4.1.0, when CONFIG_POSIX_TIMERS was set
# in a tree that was there.
_SYSTEM_CALLS = "zephyr/syscalls/"
_APPLICATION = re.compile(r"^-- Application: (?P<folder>.+)$")
_FRAGMENT = re.compile(r"^(?:Loaded|Merged) configuration '(?P<file>[^']+)'")
_PARSED = re.compile(r"^Parsing (?P<file>\S+Kconfig)$")
_RAISED = re.compile(r"^[\w.]+(?:Error|Exception): \S")
_GOES_ON = re.compile(r"Dependency loop$|currently being y-selected by the following symbols:$")
_MOST_LINES = 60


def why_stopped(text: str) -> Stop | None:
    """None where nothing says that the build stopped."""
    return why(statements_of(text))


def why(statements: Sequence[Statement]) -> Stop | None:
    found = next(_known(statements), None) or _not_known(statements)
    if found is None or (found.text.startswith("WARNING") and _not_known(statements) is None):
        return None
    if found.at is None:
        found = _located(found, statements)
    return _with_likely_names(found, statements)


def _known(statements: Sequence[Statement]) -> Iterator[Stop]:
    application = _application(statements)
    for number, statement in enumerate(statements):
        if _GOES_ON.search(statement.text):
            statement = replace(statement, text=_all_of_it(statements, number))
        elif refused := _COMPILER.match(statement.text):
            statement = _at_its_user(statement, refused, statements, number)
        elif statement.file is not None and application is not None:
            file = str(Path(application, statement.file))
            statement = replace(statement, file=file)
        read = (found for rule in _RULES if (found := rule.read(statement)))
        if found := next(read, None) or _compiler(statement):
            yield found


def _all_of_it(statements: Sequence[Statement], number: int) -> str:
    """A message of several paragraphs, to CMake's next one."""
    words: list[str] = []
    for statement in statements[number : number + _MOST_LINES]:
        if statement.text.startswith("CMake Error"):
            break
        words.append(statement.text)
    return " ".join(words)


def _at_its_user(
    statement: Statement, refused: re.Match[str], statements: Sequence[Statement], number: int
) -> Statement:
    """What is wrong with a macro is wrong where it is used: the last place of its expansions."""
    file, at = refused["file"], refused["at"]
    for following in statements[number + 1 : number + _MOST_LINES]:
        if _COMPILER.match(following.text) or ": note: each undeclared" in following.text:
            break
        if used := _EXPANDED.match(following.text):
            file, at = used["file"], used["at"]
    return replace(statement, file=file, at=int(at))


def _compiler(statement: Statement) -> Stop | None:
    match = _COMPILER.match(statement.text)
    if match is None:
        return None
    what, place = match["what"], f"{statement.file}:{statement.at}"
    cause, fix = f"The compiler refuses {place}: {what}.", f"Correct {place}."
    if header := _HEADER.match(what):
        cause = f"{place} includes {header['header']}, which no include folder of its target has."
        fix = (f"Enable the option or add the module that brings {header['header']}, link the "
               "library that has it, or add its folder to the target's include folders."
               )  # fmt: skip
        if header["header"].startswith(_SYSTEM_CALLS):
            cause += (" It is made for the system calls that the tree was configured for, and the "
                      "option that brings this one was set later.")  # fmt: skip
            fix = "Begin the build anew: `west build -p always`."
    return Stop(StopKind.COMPILE, statement.line, statement.text, cause, fix, statement.file,
                statement.at)  # fmt: skip


def _not_known(statements: Sequence[Statement]) -> Stop | None:
    """The first that says that something failed, in its own words."""
    stopped = next((s for s in statements if messages.STOPPED.search(s.text)), None)
    if stopped is None:
        return None
    raised = next((s for s in statements if _RAISED.match(s.text)), None)
    first = raised if raised is not None and raised.line < stopped.line else stopped
    return Stop(StopKind.NOT_KNOWN, first.line, first.text, f"The build stopped: {first.text}", "",
                first.file, first.at)  # fmt: skip


def _application(statements: Sequence[Statement]) -> str | None:
    found = (m for s in statements if (m := _APPLICATION.match(s.text)))
    return next((m["folder"].strip() for m in found), None)


def _located(stop: Stop, statements: Sequence[Statement]) -> Stop:
    """With the line of the configuration file or of the application's CMakeLists.txt that names
    what it is about, where that can be read."""
    if stop.subject is None:
        return stop
    files: list[Path] = []
    if stop.kind is StopKind.KCONFIG:
        merged = (m for s in statements if (m := _FRAGMENT.match(s.text)))
        files = [Path(m["file"]) for m in merged][::-1]
    elif stop.kind is StopKind.CMAKE and (application := _application(statements)):
        files = [Path(application, "CMakeLists.txt")]
    for file in files:
        if at := _line_with(file, stop.subject):
            return replace(stop, file=str(file), at=at)
    return stop


def _with_likely_names(stop: Stop, statements: Sequence[Statement]) -> Stop:
    """With the options whose names are like one that does not exist, where Zephyr can be read."""
    if stop.subject is None or "undefined symbol" not in stop.text:
        return stop
    parsed = next((m for s in statements if (m := _PARSED.match(s.text))), None)
    names = kconfig.likely(stop.subject, Path(parsed["file"]).parent) if parsed else ()
    if not names:
        return stop
    return replace(stop, fix=f"{stop.fix} Names like it: {', '.join(names)}.")


def _line_with(file: Path, word: str) -> int | None:
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    named = re.compile(rf"(?<![\w/.]){re.escape(word)}\b|CONFIG_{re.escape(word)}\b")
    return next((n for n, line in enumerate(lines, 1) if named.search(line)), None)
