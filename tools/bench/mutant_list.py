"""The bugs of ``hil bench mutants``: what each replaces, and which runs must fail for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from harness.config import strict_yaml
from harness.config.case import parse_case
from harness.config.schema import Data, Text, checked_document
from harness.core.errors import UsageError
from tools.clone import project_root

LIST = Path(__file__).with_name("mutants.yaml")
OWN_LISTS = Path(__file__).with_name("own")
_Count = Annotated[int, Field(ge=1, le=99)]
# A test of the project: pytest's node id, or a program of the runner's unit tests.
UNIT_TESTS = ("runner_tests", "ethosu_tests", "ethosu_linux_tests")


@dataclass(frozen=True, kw_only=True)
class SuiteCheck(Data):
    """One of ExecuTorch's suites, and which of its tests (pytest's ``-k``)."""

    name: Text
    tests: Text


@dataclass(frozen=True, kw_only=True)
class Mutant(Data):
    """One bug. ``find`` stands in ``file`` exactly ``of`` times; its ``nth`` becomes ``put``.

    ``equivalent``: why nothing can notice it; it does not count then.
    """

    bug: Text
    file: Text
    find: Text
    put: str
    nth: _Count = 1
    of: _Count = 1
    equivalent: Text | None = None

    def __post_init__(self) -> None:
        if self.nth > self.of:
            raise ValueError(f"there is no number {self.nth} of {self.of}")
        if self.find == self.put:
            raise ValueError("`put` is what is there already")
        if Path(self.file).is_absolute() or ".." in Path(self.file).parts:
            raise ValueError(f"file {self.file} is not below the sources")

    def planted(self, text: str) -> str | None:
        """``text`` with the bug in it; None when what is looked for is not there so often."""
        pieces = text.split(self.find)
        if len(pieces) - 1 != self.of:
            return None
        before, after = pieces[: self.nth], pieces[self.nth :]
        return self.find.join(before) + self.put + self.find.join(after)


@dataclass(frozen=True, kw_only=True)
class CheckoutMutant(Mutant):
    """A bug in a checkout of ExecuTorch.

    ``part``: what of the build the file is in; None for the checkout. ``cases`` (TARGET/MODEL),
    then ``suite``, are run until one fails.
    """

    part: Text | None = None
    cases: tuple[Text, ...] = ()
    suite: SuiteCheck | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.cases and self.suite is None:
            raise ValueError("neither `cases` nor a `suite` to notice it")
        for case in self.cases:
            try:
                parse_case(case)
            except UsageError as error:
                raise ValueError(error.message) from error


def _known(test: str) -> str:
    if test not in UNIT_TESTS and not test.startswith("tests/"):
        raise ValueError(f"{test} is neither below tests/ nor one of {UNIT_TESTS}")
    return test


_Tests = tuple[Annotated[Text, AfterValidator(_known)], ...]


@dataclass(frozen=True, kw_only=True)
class OwnMutant(Mutant):
    """A bug in this project. ``tests``, which are of the default suite, are run until one fails;
    an entry that names none has those that mirror its file. ``room``: run when these notice
    nothing; an entry has its list's."""

    tests: _Tests = ()
    room: _Tests = ()


@dataclass(frozen=True, kw_only=True)
class MutantList(Data):
    """``written_for``: the commit of ExecuTorch in whose files all of them have their place."""

    written_for: Text
    mutants: dict[Text, CheckoutMutant]


@dataclass(frozen=True, kw_only=True)
class OwnList(Data):
    """Bugs of one room, and the ``tests`` of the room, the cheapest first."""

    tests: _Tests = ()
    mutants: dict[Text, OwnMutant]


def read_mutants(path: Path = LIST) -> MutantList:
    """Raises TargetError (file and line) for a list that is malformed."""
    return checked_document(MutantList, strict_yaml.read(path))


def read_own(folder: Path = OWN_LISTS) -> Mapping[str, OwnMutant]:
    """All lists of the folder. Raises TargetError, also for a name that is there twice, and for a
    bug that no test is for."""
    return dict(_own(folder))


def _own(folder: Path) -> Iterator[tuple[str, OwnMutant]]:
    seen: set[str] = set()
    for path in sorted(folder.glob("*.yaml")):
        document = strict_yaml.read(path)
        listed = checked_document(OwnList, document)
        for name, mutant in listed.mutants.items():
            tests = mutant.tests or _mirror(mutant.file)
            room = mutant.room or tuple(test for test in listed.tests if test not in tests)
            place = document.place(("mutants", name))
            if name in seen:
                raise place.error(f"{name} is in another list, too")
            if not (tests or room):
                raise place.error(f"{name}: no `tests` to notice it")
            yield name, replace(mutant, tests=tests, room=room)
        seen.update(listed.mutants)


def _mirror(file: str) -> tuple[str, ...]:
    """The test file of a module; none when there is none."""
    module = Path(file)
    test = Path("tests", *module.parts[1:-1], f"test_{module.stem}.py")
    is_there = module.parts[0] == "harness" and (project_root() / test).is_file()
    return (str(test),) if is_there else ()
