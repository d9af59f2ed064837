"""Why a build stopped before its link: from a log to the failure, by the messages of CMake, west,
Kconfig, devicetree and compilers (``build_failure.yaml``)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

from harness.config.schema import Data
from harness.core.verdict import Word
from harness.link.facts import read_facts
from harness.link.kconfig import refused_options, similar_options
from harness.link.log import messages
from harness.link.log.lines import LinePattern, Lines, lines_of
from harness.link.log.statements import (
    MOST_LINES,
    RAISED,
    Statement,
    joined,
    statements_of,
)
from harness.system.files import text_of

_TABLE = Path(__file__).with_name("build_failure.yaml")


class BuildFailureKind(Word):
    """The reason why the build stopped; the values are those of ``kind`` in --json."""

    WORKSPACE = "workspace"
    BOARD = "board"
    TOOLCHAIN = "toolchain"
    VERSION = "version"
    PACKAGE = "package"
    PYTHON = "python"
    MODULE = "module"
    CMAKE = "cmake"
    MAKE = "make"
    DEVICETREE = "devicetree"
    BINDING = "binding"
    KCONFIG = "kconfig"
    COMPILE = "compile"
    ISR_TABLE = "isr_table"
    INIT_PRIORITY = "init_priority"
    MEMORY = "memory"
    NOT_KNOWN = "not_known"


@dataclass(frozen=True)
class BuildFailure:
    """``line``: of the log, from 1. ``file`` and ``at``: the file to edit and its line, if the log
    names them. ``subject``: the option, source or node concerned. ``stage``: where the build
    stopped. ``fix`` is empty if no advice is certain."""

    kind: BuildFailureKind
    line: int
    text: str
    cause: str
    fix: str = ""
    file: str | None = None
    at: int | None = None
    subject: str | None = None
    stage: str = "before its link"
    image: str | None = None  # of a build of several: MCUboot's, a remote core's

    def summary(self) -> dict[str, Any]:
        return {**asdict(self), "kind": self.kind.value}

    @property
    def where(self) -> str:
        return _place(self.file, str(self.at or "")) if self.file else ""


# Kinds that are not the fault of the file that called what complains.
_NOT_OF_A_FILE = (
    BuildFailureKind.WORKSPACE,
    BuildFailureKind.BOARD,
    BuildFailureKind.TOOLCHAIN,
    BuildFailureKind.PYTHON,
    BuildFailureKind.KCONFIG,
)
_SUBJECTS = ("symbol", "source", "label", "alias", "property", "package", "variable", "board")


@dataclass(frozen=True)
class _Rule(Data):
    kind: BuildFailureKind
    needle: str
    pattern: re.Pattern[str]
    cause: str
    fix: str = ""

    def read(self, statement: Statement) -> BuildFailure | None:
        """The failure that the statement reports, if it is of this rule."""
        match = self.pattern.search(statement.text) if self.needle in statement.text else None
        if match is None:
            return None
        words = {name: value or "" for name, value in match.groupdict().items()}
        file, at = words.get("file"), words.get("at")
        called = statement.file, str(statement.at or "")
        words["place"] = _place(*((file, at) if file else called))
        if not file and self.kind not in _NOT_OF_A_FILE:
            file, at = called
        return BuildFailure(
            self.kind,
            statement.line,
            statement.text,
            self.cause.format_map(words),
            self.fix.format_map(words),
            file or None,
            int(at) if at else None,
            next((words[name] for name in _SUBJECTS if words.get(name)), None),
        )


def _place(file: str | None, at: str | None) -> str:
    return f"{file}:{at}" if file and at else file or "the file that it names"


@cache
def _needles() -> tuple[str, ...]:
    """Words to find the lines that matter to a failure, in addition to errors and warnings."""
    rules = read_facts(_Rule, _TABLE)
    return (*(rule.needle for rule in rules), *messages.signs()["stopped"].needles, *_ABOUT)


# Words of lines that say what a failure is about.
_ABOUT = (
    *("illed", "note: in expansion of macro", "note: each undeclared", "-- Application: "),
    *("-- Found devicetree overlay: ", " configuration '", "Parsing "),
)
_COMPILER = re.compile(
    r"^(?P<file>(?:[A-Za-z]:)?[^\s:][^:]*):(?P<at>\d+):(?:\d+:)? (?:fatal )?[Ee]rror: "
)
_NO_HEADER = re.compile(r"fatal error: (?P<header>[\w./+-]+): No such file or directory$")
_EXPANDED = re.compile(r"^(?P<file>[^\s:]+):(?P<at>\d+):\d+: note: in expansion of macro")
_APPLICATION = re.compile(r"^-- Application: (?P<folder>.+)$")
_FRAGMENT = re.compile(r"^(?:Loaded|Merged) configuration '(?P<file>[^']+)'")
_OVERLAY = re.compile(r"^-- Found devicetree overlay: (?P<file>.+)$")
_END_OF_SOURCES = re.compile(r"/empty_file\.c:\d+ .*parse error")  # read after the last overlay
_PARSED = re.compile(r"^Parsing (?P<file>\S+Kconfig)$")
_ASSEMBLER_INPUT = re.compile(r"\{standard input\}:|\S+[/\\]cc\w+\.s:")
_COMPLAINT = re.compile(r"CMake Error at [^(]+\(message\): +(?P<text>(?!command failed).{1,200})")
_GOES_ON = re.compile(r"Dependency loop$|currently being y-selected by the following symbols:$")
_ABOVE = 4  # lines in which a tool may have said why its step failed


def build_failure(text: str, calls: Sequence[str] = ()) -> BuildFailure | None:
    """``failure_in`` the statements of a text."""
    return failure_in(lines_of(text), calls)


def failure_in(lines: Lines, calls: Sequence[str] = ()) -> BuildFailure | None:
    """The first failure; None if nothing says that the build stopped. ``calls``: calls of the
    compiler, if the log has none."""
    statements = list(statements_of(lines, _needles()))
    unexplained = _unexplained(statements, lines)
    failure = next(_explained(statements, lines), None) or unexplained
    if failure is not None and unexplained is not None and failure.line > unexplained.line:
        kinds = (failure.kind, unexplained.kind)
        consequence = kinds == (BuildFailureKind.MAKE, BuildFailureKind.CMAKE)
        failure = unexplained if consequence else failure
    if failure is not None and _ASSEMBLER_INPUT.match(failure.text):  # cut where it was killed
        killed = [s for s in statements if "illed" in s.text]
        failure = next(_explained(killed, lines), failure)
    if failure is None or (failure.text.startswith("WARNING") and unexplained is None):
        return None
    refused = refused_options(s.text for s in statements) if "kconfig.cmake" in failure.text else ()
    if refused:  # the only messages of Kconfig's that this log has
        option = refused[0]
        return replace(
            failure,
            cause=f"CONFIG_{option.symbol} was set to {option.wanted} and got {option.got}: "
            f"{option.why}.",
            fix=option.fix,
        )
    failure = replace(failure, stage=_stage(failure, lines), image=image_of(failure.line, lines))
    if _ASSEMBLER_INPUT.match(failure.text):
        # The assembler names a temporary file; the step that failed names the source.
        steps = [(s.line, m) for s in statements if (m := _OBJECT_FAILED.match(s.text))]
        if above := [match["source"] for line, match in steps if line <= failure.line]:
            cause = f"{failure.cause} The source is {above[-1]}."
            failure = replace(failure, file=above[-1], at=None, cause=cause)
    if failure.at is None:
        failure = _located(failure, statements)
    missing = failure.kind is BuildFailureKind.COMPILE and _NO_HEADER.search(failure.text)
    if missing and failure.file:
        before = (x.text for x in lines.numbered(failure.line - MOST_LINES + 1, failure.line))
        fix = _fix_for_header(missing["header"], failure.where, failure.file, [*calls, *before])
        return replace(failure, fix=fix or failure.fix)
    if failure.subject is not None and "undefined symbol" in failure.text:
        parsed = next((match for s in statements if (match := _PARSED.match(s.text))), None)
        base = Path(parsed["file"]).parent if parsed else None
        if names := similar_options(failure.subject, base) if base else ():
            return replace(failure, fix=f"{failure.fix} Names like it: {', '.join(names)}.")
    return failure


# Failures before a build gets to its (first) link.
_BEFORE_LINK = (
    *(BuildFailureKind.WORKSPACE, BuildFailureKind.BOARD, BuildFailureKind.MODULE),
    *(BuildFailureKind.CMAKE, BuildFailureKind.DEVICETREE, BuildFailureKind.BINDING),
    *(BuildFailureKind.KCONFIG, BuildFailureKind.COMPILE, BuildFailureKind.VERSION),
)
_IMAGE = LinePattern(
    ("Performing ",), re.compile(r"Performing (?:build|configure) step for '(?P<image>[^']+)'")
)
_TARGET = LinePattern(
    ("running target ",), re.compile(r"^-- west build: running target (?P<target>\S+)")
)
_OBJECT_FAILED = re.compile(
    r"^FAILED: (?:\[code=\d+\] )?\S*?\.dir/(?P<source>\S+?)\.o(?:bj)?(?:\s|$)"
)


def _stage(failure: BuildFailure, lines: Lines) -> str:
    if target := next(_TARGET.found_in(lines), None):
        return f"at its target {target.match['target']}"
    links = (found.line.number for found in messages.signs()["linked"].found_in(lines))
    linked = next(links, failure.line) < failure.line
    after = linked and failure.kind not in _BEFORE_LINK
    return "after a link" if after else "before its link"


def image_of(line: int, lines: Lines) -> str | None:
    """The image that a build of several images was at, on this line of its log."""
    above = [found for found in _IMAGE.found_in(lines) if found.line.number <= line]
    return above[-1].match["image"] if above else None


def _explained(statements: Sequence[Statement], lines: Lines) -> Iterator[BuildFailure]:
    """The failures that a rule explains. The first counts: the others mostly follow from it."""
    application = _application(statements)
    for number, statement in enumerate(statements):
        if _GOES_ON.search(statement.text):
            # A message of several paragraphs, to CMake's next one.
            following = lines.numbered(statement.line, statement.line + MOST_LINES)
            words = takewhile(lambda line: not line.text.startswith("CMake Error"), following)
            statement = replace(statement, text=joined(list(words)))
        elif refused := _COMPILER.match(statement.text):
            # An error in a macro is located where the macro is used: its last expansion.
            file, at = refused["file"], refused["at"]
            for after in statements[number + 1 :]:
                if after.line >= statement.line + MOST_LINES:
                    break
                if _COMPILER.match(after.text) or ": note: each undeclared" in after.text:
                    break
                if used := _EXPANDED.match(after.text):
                    file, at = used["file"], used["at"]
            statement = replace(statement, file=file, at=int(at))
        elif statement.file is not None and application is not None:
            statement = replace(statement, file=str(Path(application, statement.file)))
        if failure := _by_rule(statement):
            yield failure


def _by_rule(statement: Statement) -> BuildFailure | None:
    """The first rule of the table that matches a statement explains it."""
    rules = read_facts(_Rule, _TABLE)
    failures = (failure for rule in rules if (failure := rule.read(statement)))
    return next(failures, None)


# Starts of messages that no rule explains; west also reports how its commands ended.
_SPEAKERS = (
    ("CMake Error", BuildFailureKind.CMAKE),
    ("FATAL ERROR: command exited", BuildFailureKind.NOT_KNOWN),
    ("FATAL ERROR: ", BuildFailureKind.WORKSPACE),
)


# Lines that only name the failed step, mostly after the message of the command.
_STEP_FAILED = re.compile(
    r"^(?:FAILED: |(?:[^\s:]+: )?\*\*\* (?:\[|Deleting file)|ninja: build stopped)"
)
_SAYS_NOTHING = re.compile(
    r"^(?:\S*(?:make|scons)\b|FAILED: |ninja: |compilation terminated|\d+ errors? generated|\s)"
    r"|recipe for target"
)
_ADVICE = re.compile(r"\b(?:To fix, run:|Please) +(?P<advice>\S.{1,200}?)\.?$")


def _unexplained(statements: Sequence[Statement], lines: Lines) -> BuildFailure | None:
    """The first statement that reports a failure, quoted; if all of them only name the step, with
    the line above the first."""
    reports = [s for s in statements if messages.signs()["stopped"].search(s.text)]
    if not reports:
        return None
    spoken = next((s for s in reports if not _STEP_FAILED.match(s.text)), None)
    stopped = spoken or next((s for s in reports if not s.text.startswith("FAILED: ")), reports[0])
    raised = next((s for s in statements if RAISED.match(s.text)), None)
    first = raised if raised is not None and raised.line < stopped.line else stopped
    speakers = (kind for words, kind in _SPEAKERS if first.text.startswith(words))
    above = reversed(lines.numbered(first.line - _ABOVE, first.line) if first is stopped else [])
    words = (x.text for x in above if spoken is None and not _SAYS_NOTHING.search(x.text))
    before = next(words, "")
    quoted = f"{first.text} (above it: {before})" if before else first.text
    if failure := _by_rule(replace(first, text=quoted)):
        return replace(failure, text=first.text)
    advice = _ADVICE.search(first.text)  # the message's own
    fix = f"Do what the message says: {advice['advice']}." if advice else ""
    if complaint := _COMPLAINT.match(first.text):
        fix = f"Correct what the project's CMake complains of: {complaint['text']}"
    kind, cause = next(speakers, BuildFailureKind.NOT_KNOWN), f"The build stopped: {quoted}"
    return BuildFailure(kind, first.line, first.text, cause, fix, first.file, first.at)


def _application(statements: Sequence[Statement]) -> str | None:
    matches = (match for s in statements if (match := _APPLICATION.match(s.text)))
    return next((match["folder"].strip() for match in matches), None)


def _located(failure: BuildFailure, statements: Sequence[Statement]) -> BuildFailure:
    """Adds the line that names the subject: in a configuration file, an overlay or the
    application's CMakeLists.txt, if that can be read."""
    overlays = [Path(m["file"].strip()) for s in statements if (m := _OVERLAY.match(s.text))]
    if overlays and _END_OF_SOURCES.search(failure.text):
        return replace(failure, file=str(overlays[-1]))
    if failure.subject is None:
        return failure
    files: list[Path] = []
    if failure.kind is BuildFailureKind.KCONFIG:
        merged = (match for s in statements if (match := _FRAGMENT.match(s.text)))
        files = [Path(match["file"]) for match in merged][::-1]
    elif failure.kind is BuildFailureKind.CMAKE and (application := _application(statements)):
        files = [Path(application, "CMakeLists.txt")]
    elif failure.kind is BuildFailureKind.DEVICETREE:
        files = overlays
    subject = re.escape(failure.subject)
    named = re.compile(rf"(?<![\w/.]){subject}\b|CONFIG_{subject}\b")
    lines = ((file, *line) for file in files for line in enumerate(text_of(file).splitlines(), 1))
    places = [(file, number) for file, number, text in lines if named.search(text)]
    # Other nodes of an overlay may have a property of that name.
    if not places or (failure.kind is BuildFailureKind.DEVICETREE and len(places) > 1):
        return failure
    return replace(failure, file=str(places[0][0]), at=places[0][1])


_INCLUDE_FOLDER = re.compile(r"-(?:I|isystem)\s*(?P<folder>/[^\s\"']+)")
_ZEPHYR = "zephyr"  # before Zephyr 3.1 its headers had names without that folder
_ALIKE = 0.8
_LISTS = "CMakeLists.txt"
_MOST_FOLDERS = 2_000
_NOT_SEARCHED = ("build", "node_modules")


def _fix_for_header(header: str, where: str, file: str, calls: Iterable[str]) -> str | None:
    """The fix for a header that the compiler does not find, from the folders that the log names: it
    has another name in an include folder, a similar spelling, or lies elsewhere in the project.
    None if its place is not certain.

    ``file`` includes it (``where``: with the line). ``calls``: of the compiler, among other lines
    of a log.
    """
    source = Path(file)
    matches = (m for call in calls for m in _INCLUDE_FOLDER.finditer(call))
    folders = list(dict.fromkeys(Path(m["folder"]) for m in matches))
    if any((folder / _ZEPHYR / header).is_file() for folder in folders):
        return f"Write #include <{_ZEPHYR}/{header}> in {where}, in place of {header}."
    lists = next((f / _LISTS for f in source.parents if (f / _LISTS).is_file()), None)
    text = text_of(lists) if lists is not None else ""
    # The line of a CMakeLists.txt whose custom command writes the header.
    if made := re.search(rf"\bOUTPUT\s[^()]*{re.escape(header)}\b", text):
        line = f"{lists}:{text.count(chr(10), 0, made.start()) + 1}"
        return (
            f"Add {header}, which {line} generates, to the sources of the target that includes it "
            f"(target_sources(TARGET PRIVATE ...) with its whole path): nothing asks for it before "
            f"{where} is compiled."
        )
    own = [f for f in folders if lists is not None and f.is_relative_to(lists.parent)]
    beside = (file for folder in (*own, source.parent) for file in folder.glob("*.h*"))
    names = {file.name: file.parent for file in beside}
    if alike := get_close_matches(header, names, 1, _ALIKE):
        return f"Correct {header} in {where}: there is {alike[0]} in {names[alike[0]]}."
    places = sorted(_folders_with(header, lists.parent)) if lists is not None else []
    if lists is None or len(places) != 1:
        return None
    folder = os.path.relpath(places[0], lists.parent)
    return (
        f"Add the folder {folder}, which has {header}, to the target's include folders in {lists}: "
        f"target_include_directories(TARGET PRIVATE {folder}), in Zephyr with app for TARGET."
    )


def _folders_with(header: str, root: Path) -> Iterator[Path]:
    """The folders below ``root`` from which ``header`` is found."""
    for number, (directory, folders, _) in enumerate(os.walk(root)):
        if number >= _MOST_FOLDERS:
            return
        folders[:] = [f for f in folders if not f.startswith((".", *_NOT_SEARCHED))]
        if Path(directory, header).is_file():
            yield Path(directory)
