"""What a linker script asserts, throws away and does not keep: registries and static constructors,
to which nothing refers, are lost by --gc-sections or with members that no archive gives."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from harness.link.command import LinkerCall
from harness.link.diagnose.causes import explained, from_message
from harness.link.diagnose.trial import Edit, Trial
from harness.link.diagnose.zephyr import zephyr_build
from harness.link.failure import Failure, FailureKind, archive_of, file_name, member_of
from harness.link.index import LinkIndex, units_of
from harness.system.files import read_regular, text_of

_GC = "--gc-sections"
# An output section with what it takes, and one statement in it.
_BLOCK = re.compile(r"(?P<name>[.\w]+)[^\n:{};]*:[^{};]*\{(?P<inside>[^}]*)\}")
_TAKEN = re.compile(r"(?P<keep>KEEP\s*\(\s*)?\*[\w.]*\s*\((?P<patterns>(?:[^()]|\([^()]*\))*)\)")
_PATTERN = re.compile(r"[.\w*?$\[\]-]+")
_NAME = re.compile(r"[A-Za-z_.][\w.]*")
_CONSTRUCTORS = re.compile(
    r"removing unused section '(?P<section>\.(?:(?:pre)?init_array|ctors)[\w.]*)'"
    r" in file '(?P<file>[^']+)'"
)
_NOTHING = ".hil.nothing"  # a section that no object has
_START_FILES = re.compile(r"crt\w*\.o$")  # the compiler's own, which have an empty one


@dataclass(frozen=True)
class Unkept:
    """A statement of a linker script that takes sections without KEEP."""

    script: Path
    text: str
    start: int
    end: int
    patterns: tuple[str, ...]

    @property
    def place(self) -> str:
        return f"{self.script}:{self.text.count(chr(10), 0, self.start) + 1}"

    @property
    def statement(self) -> str:
        return self.text[self.start : self.end]

    @property
    def kept(self) -> Edit:
        """KEEP around the statement."""
        words = f"KEEP({self.statement})"
        return Edit(self.script, f"{self.text[: self.start]}{words}{self.text[self.end :]}", words)

    def takes(self, section: str) -> bool:
        return any(fnmatchcase(section, pattern) for pattern in self.patterns)


def unkept(scripts: Sequence[Path]) -> Iterator[tuple[str, str, Unkept]]:
    """Name and content of the output section, and the statement without KEEP in it."""
    for script in scripts:
        text = text_of(script)
        for block in _BLOCK.finditer(text):
            for taken in _TAKEN.finditer(text, *block.span("inside")):
                if not taken["keep"]:
                    patterns = tuple(_PATTERN.findall(taken["patterns"]))
                    found = Unkept(script, text, taken.start(), taken.end(), patterns)
                    yield block["name"], block["inside"], found


def explain_registry(
    failure: Failure, condition: str, index: LinkIndex, trial: Trial | None
) -> Failure | None:
    """For an ASSERT about the symbols or the size of an output section whose inputs the link has
    and lost; None for any other."""
    names = set(_NAME.findall(condition))
    for name, inside, statement in unkept(index.call.scripts):
        if name not in names and not any(re.search(rf"\b{n}\s*=", inside) for n in names):
            continue
        lost = [
            (unit, section.name)
            for unit in index.units
            for section in unit.object.sections
            if statement.takes(section.name)
        ]
        if not lost or trial is None:
            continue
        unit, section_name = lost[0]
        whole = ("-Wl,--whole-archive", archive_of(unit.input.word), "-Wl,--no-whole-archive")
        is_lazy = unit.is_member and not unit.input.whole
        for change in ((), whole) if is_lazy else ((),):
            result = trial.result(failure, change, statement.kept)
            if result is not None:
                about = {"unit": unit.name, "section": section_name, "place": statement.place}
                about |= {"archive": file_name(unit.input.word), "whole": " ".join(change)}
                reason = "registry in an archive" if change else "registry lost"
                return explained(failure, reason, result, statement=statement.statement, **about)
    return None


def lost_constructors(call: LinkerCall) -> Failure | None:
    """Static constructors that a link which succeeds throws away: what they register, such as the
    kernels of ExecuTorch, is missing when the program runs."""
    lost = _dropped(call) if _GC in call.argv else []
    if not lost:
        return _unloaded_registration(call)
    section, file = lost[0]
    others = f"{file} and of {len(lost) - 1} more" if len(lost) > 1 else file
    failure = _succeeds(section, file)
    kept = next((each for *_, each in unkept(call.scripts) if each.takes(section)), None)
    if kept is None:
        return explained(failure, "constructors without a place", section=section, file=others)
    with tempfile.TemporaryDirectory(prefix="hil-link-") as scratch:
        argv = kept.kept.words(call.argv, call.directory, Path(scratch) / "kept.ld")
        helps = not _dropped(replace(call, argv=tuple(argv)))
    result = "Tried: none is thrown away then." if helps else None
    about = {"file": others, "place": kept.place, "statement": kept.statement}
    return explained(failure, "constructors not kept", result, section=section, **about)


def _unloaded_registration(call: LinkerCall) -> Failure | None:
    """For an archive's member that registers kernels or a backend of ExecuTorch, and that nothing
    in the program refers to."""
    for each in call.inputs:
        path = each.path
        if path is None or path.suffix != ".a" or each.whole or not _registers(read_regular(path)):
            continue
        whole = ("--whole-archive", each.word, "--no-whole-archive")
        argv = (*call.argv[: each.index], *whole, *call.argv[each.index + 1 :])
        for unit in units_of(path, each.word):
            sections = (
                s.name for s in unit.sections if s.name.startswith((".init_array", ".ctors"))
            )
            section, name = next(sections, None), unit.name
            needs = any(_registers(s.name.encode()) for s in unit.globals if not s.defined)
            if section is None or not needs or _loads(call, name):
                continue
            helps = _loads(replace(call, argv=argv), name)
            result = "Tried: the program has it then." if helps else None
            words = " ".join(f"-Wl,{w}" if w.startswith("--") else w for w in whole)
            about = {"unit": name, "archive": file_name(each.word), "whole": words}
            return explained(_succeeds(section, name), "registration not loaded", result, **about)
    return None


def _registers(content: bytes) -> bool:
    return b"register_kernels" in content or b"register_backend" in content


def _loads(call: LinkerCall, member: str) -> bool:
    """Whether a link loads this member of an archive: GNU ld writes (ARCHIVE)MEMBER."""
    text = _linked(call, "--trace", "--trace")
    return member in text or f"({archive_of(member)}){member_of(member)}" in text


def _linked(call: LinkerCall, *options: str) -> str:
    """Links once more with these options; returns what the linker writes."""
    with tempfile.TemporaryDirectory(prefix="hil-link-") as scratch:
        again = call.with_output(Path(scratch) / "x.elf")
        return replace(again, argv=(*again.argv, *options)).run()[0]


def _succeeds(section: str, file: str) -> Failure:
    text = f"{section} of {file} is not in the program"
    kind = FailureKind.DISCARDED_SECTION
    return Failure(kind, "gnu", 0, text, sections=(section,), files=(file,))


def _dropped(call: LinkerCall) -> list[tuple[str, str]]:
    text = _linked(call, "--print-gc-sections")
    found = ((m["section"], m["file"]) for m in _CONSTRUCTORS.finditer(text))
    return [(section, file) for section, file in found if not _START_FILES.search(file)]


_ASSERT = re.compile(r"\bASSERT\s*\((?P<condition>.+?),\s*\"(?P<text>[^\"]+)\"\s*\)", re.DOTALL)
_INCLUDED = re.compile(r'#include\s+"([^"]+)"')
_INIT = re.compile(r"\.z_init_(?P<given>[A-Z]\w*?)_\d+_$")
_LEVEL = re.compile(r"(?:EARLY|PRE_KERNEL_[12]|POST_KERNEL|APPLICATION|SMP)\d+")


def _bad_level(failure: Failure, index: LinkIndex) -> Failure | None:
    """Zephyr asserts that each SYS_INIT has a known level and a numeric priority. Names the object
    that has another: include/zephyr/init.h writes both into the name of its section."""
    for unit in index.units if "initialization levels" in failure.text else ():
        found = (m["given"] for s in unit.object.sections if (m := _INIT.match(s.name)))
        given = next((name for name in found if not _LEVEL.fullmatch(name)), None)
        if given is not None:
            failure = replace(failure, kind=FailureKind.ASSERTION)
            return explained(failure, "bad level", unit=unit.name, given=given)
    return None


def explain_assertion(failure: Failure, index: LinkIndex, trial: Trial | None = None) -> Failure:
    """Adds the condition that does not hold, its place in the linker script, and the section that
    was lost if that is why."""
    failure = from_message(failure, trial)
    if levels := _bad_level(failure, index):
        return levels
    for script in index.call.scripts:
        text = text_of(script)
        for assertion in _ASSERT.finditer(text):
            if assertion["text"] in failure.text:
                condition = " ".join(assertion["condition"].split())
                place = _fragment_with(assertion[0], script) or _line_of(
                    script, text, assertion.start()
                )
                failure = from_message(replace(failure, kind=FailureKind.ASSERTION))
                failure = explained(failure, "assertion", place=place, condition=condition)
                return explain_registry(failure, condition, index, trial) or failure
    return failure


def _fragment_with(statement: str, script: Path) -> str | None:
    """The file and line that a statement of Zephyr's generated linker script comes from: a file
    that zephyr_linker_sources() names, relative to Zephyr's folder of headers."""
    zephyr = zephyr_build(script.parent.parent)
    if zephyr is None:
        return None
    for snippets in sorted((script.parent / "include" / "generated").glob("snippets-*.ld")):
        for name in _INCLUDED.findall(text_of(snippets)):
            fragment = Path(os.path.normpath(zephyr.base / "include" / name))
            text = text_of(fragment)
            if (offset := text.find(statement)) >= 0:
                return _line_of(fragment, text, offset)
    return None


_THROWN = re.compile(r"/DISCARD/\s*:\s*\{(?P<inside>[^}]*)\}")


def explain_discarded(failure: Failure, index: LinkIndex, trial: Trial | None) -> Failure:
    """Adds the place in the linker script that throws the section away."""
    failure = from_message(failure)
    section = failure.sections[0] if failure.sections else ""
    for script in index.call.scripts:
        text = text_of(script)
        for block in _THROWN.finditer(text):
            for pattern in re.finditer(r"[\w.*$\[\]-]+", block["inside"]):
                if pattern[0].strip("*") and fnmatchcase(section, pattern[0]):
                    at = block.start("inside") + pattern.start()
                    place = _line_of(script, text, at)
                    own = f"{section} : {{ KEEP(*({section})) }}"
                    parts = (text[: block.start()], own, text[block.start() : at])
                    edited = " ".join((*parts, _NOTHING, text[at + len(pattern[0]) :]))
                    edit = Edit(script, edited, own)
                    result = trial.result(failure, (), edit) if trial is not None else None
                    about = {"section": section, "place": place, "pattern": pattern[0]}
                    return explained(failure, "thrown away", result, **about)
    return failure


def _line_of(file: Path, text: str, offset: int) -> str:
    return f"{file}:{text.count(chr(10), 0, offset) + 1}"
