"""Tries a fix before it is proposed: links again in a scratch folder, with one change."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from harness.core.errors import InfraError
from harness.link.build import compile_step
from harness.link.command import BuildCommand, run
from harness.link.failure import Failure, file_name, key
from harness.link.log.parse import parse

GROUP = "--start-group"  # a change: every input in one group, so that their order does not matter
COMPILE = "compile:"  # a change: an option for the objects that need the symbol
WITHOUT = "without:"  # a change: an option that is taken out
LINKS = "the program links."
_MACHINE = ("-mcpu=", "-march=", "-mthumb", "-mfpu=", "-mfloat-abi=", "-m32", "-m64", "--target=")
_SHOWN = {GROUP: "--start-group and --end-group around the inputs"}
_MOST_TRIALS = 8  # of one explanation; a link takes up to seconds
_MOST_SHOWN = 3


@dataclass(frozen=True)
class Edit:
    """A change of a linker script: its new text, and what is new in it."""

    script: Path
    text: str
    shown: str

    def words(self, argv: Sequence[str], directory: Path, made: Path) -> list[str]:
        """A command with the new script, written to ``made``."""
        made.write_text(self.text)
        names = {str(self.script), os.path.relpath(self.script, directory)}
        ends = re.compile(f"(?:^|(?<=[=,T]))(?:{'|'.join(map(re.escape, names))})$")
        return [ends.sub(str(made).replace("\\", r"\\"), word) for word in argv]


@dataclass(frozen=True)
class Trial:
    """``failures``: of the link as it stands. ``build``: the build directory."""

    command: BuildCommand
    failures: tuple[Failure, ...]
    build: Path
    _left: dict[object, tuple[Failure, ...] | None] = field(default_factory=dict)

    def result(
        self, failure: Failure, change: Sequence[str], edit: Edit | None = None
    ) -> str | None:
        """The result of the link with the change, as a sentence; None where it gets no further.

        It gets further if the failure is gone and no more failures remain than there were. The
        change is words for the driver, GROUP, or COMPILE with an option. Beyond a number of
        trials: "".
        """
        change = tuple(change)
        if (change, edit) not in self._left and len(self._left) >= _MOST_TRIALS:
            return ""
        if (change, edit) not in self._left:
            self._left[change, edit] = self._remaining(change, edit)
        left = self._left[change, edit]
        if left is None or key(failure) in map(key, left) or len(left) > len(self.failures):
            return None
        if any(each.subject in (failure.subject, *change) for each in left):
            return None  # by another kind's name, or what the change brings itself
        shown = _shown(change, edit)
        if not left:
            return f"Tried: {shown} {LINKS}"
        names = ", ".join(each.subject for each in left[:_MOST_SHOWN])
        more = f" and {len(left) - _MOST_SHOWN} more" if len(left) > _MOST_SHOWN else ""
        return f"Tried: {shown} {names}{more} {'remain' if left[1:] else 'remains'}."

    @cached_property
    def machine(self) -> tuple[str, ...]:
        """The options that chose the machine when an object of the link was compiled."""
        objects = (word for word in self.command.argv if word.endswith((".o", ".obj")))
        steps = (compile_step(self.build, file_name(word)) for word in objects)
        step = next(filter(None, steps), None)
        return tuple(w for w in step.argv if w.startswith(_MACHINE)) if step is not None else ()

    def _remaining(self, change: tuple[str, ...], edit: Edit | None) -> tuple[Failure, ...] | None:
        """The failures of the link with the change; None if it could not be done."""
        with tempfile.TemporaryDirectory(prefix="hil-link-") as scratch:
            try:
                argv = list(self._argv(change, Path(scratch)))
                if edit is not None:
                    argv = edit.words(argv, self.command.directory, Path(scratch) / "edited.ld")
                text, status = run(argv, self.command.directory)
            except InfraError:
                return None
        return parse(text, failed=True).failures if status != 0 else ()

    def _argv(self, change: tuple[str, ...], scratch: Path) -> Iterator[str]:
        swapped = {self.command.output: str(scratch / "tried.elf")}
        options = [word.removeprefix(COMPILE) for word in change if word.startswith(COMPILE)]
        places = (place.object for each in self.failures for place in each.places)
        for name in set(places) if options else ():
            made = scratch / file_name(name or "")
            step = compile_step(self.build, made.name)
            if step is not None:
                words = [str(made) if word == step.output else word for word in step.argv]
                run([*words, *options], step.directory)
                swapped[step.output] = str(made)
        gone = [word.removeprefix(WITHOUT) for word in change if word.startswith(WITHOUT)]
        argv = (w for w in self.command.argv if not w.startswith("-Wl,-Map") and w not in gone)
        words = [swapped.get(word, word) for word in argv]
        if GROUP in change:
            words = [words[0], "-Wl,--start-group", *words[1:], "-Wl,--end-group"]
        yield from words
        yield from (w for w in change if w != GROUP and not w.startswith((COMPILE, WITHOUT)))


def _shown(change: Sequence[str], edit: Edit | None) -> str:
    gone = [word.removeprefix(WITHOUT) for word in change if word.startswith(WITHOUT)]
    more = (word for word in change if not word.startswith(WITHOUT))
    added = [_SHOWN.get(word, word.removeprefix(COMPILE)) for word in more]
    if edit is not None:
        added.append(f"{'and ' if added else ''}{edit.shown}")
    parts = (("without", gone), ("with", added))
    return " and ".join(f"{how} {' '.join(words)}" for how, words in parts if words)


def told(fix: str, result: str | None) -> str:
    """The fix with what its trial gave."""
    return f"{fix} {result}".strip() if result else fix


def without_repeats(failures: Sequence[Failure]) -> tuple[Failure, ...]:
    """Failures of one cause as one: those of a kind for which the same is to be done."""
    found: dict[tuple[object, ...], Failure] = {}
    for failure in failures:
        about = (failure.kind, failure.cause_kind, failure.fix or failure.line)
        first = found.setdefault(about, failure)
        if first is not failure and failure.subject != first.subject:
            found[about] = replace(first, also=(*first.also, failure.subject))
    return tuple(found.values())
