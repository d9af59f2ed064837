"""The bugs of ``hil bench mutants``: what each replaces, and which runs must fail for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, model_validator

from harness.case.case import parse_case
from harness.errors import UsageError
from harness.system import strict_yaml
from harness.target.data import Data, Text

LIST = Path(__file__).with_name("mutants.yaml")
_Count = Annotated[int, Field(ge=1, le=99)]


class SuiteCheck(Data):
    """A conformance suite, and which of its tests (pytest's ``-k``)."""

    name: Text
    tests: Text


class Mutant(Data):
    """One bug. ``find`` stands in ``file`` exactly ``of`` times; its ``nth`` becomes ``put``.

    ``part``: what of the build the file is in; None for the checkout. ``cases`` (TARGET/MODEL),
    then ``suite``, are run until one fails. ``equivalent``: why no run can notice it; it does not
    count then.
    """

    bug: Text
    file: Text
    find: Text
    put: str
    part: Text | None = None
    nth: _Count = 1
    of: _Count = 1
    cases: tuple[Text, ...] = ()
    suite: SuiteCheck | None = None
    equivalent: Text | None = None

    @model_validator(mode="after")
    def _makes_sense(self) -> Mutant:
        if self.nth > self.of:
            raise ValueError(f"there is no number {self.nth} of {self.of}")
        if not self.cases and self.suite is None:
            raise ValueError("neither `cases` nor a `suite` to notice it")
        if self.find == self.put:
            raise ValueError("`put` is what is there already")
        if Path(self.file).is_absolute() or ".." in Path(self.file).parts:
            raise ValueError(f"file {self.file} is not below the checkout")
        for case in self.cases:
            try:
                parse_case(case)
            except UsageError as error:
                raise ValueError(error.message) from error
        return self

    def planted(self, text: str) -> str | None:
        """``text`` with the bug in it; None when what is looked for is not there so often."""
        pieces = text.split(self.find)
        if len(pieces) - 1 != self.of:
            return None
        before, after = pieces[: self.nth], pieces[self.nth :]
        return self.find.join(before) + self.put + self.find.join(after)


class MutantList(Data):
    """``written_for``: the commit of ExecuTorch in whose files all of them have their place."""

    written_for: Text
    mutants: dict[Text, Mutant]


def read_mutants(path: Path = LIST) -> MutantList:
    """Raises TargetError (file and line) for a list that is malformed."""
    document = strict_yaml.read(path)
    try:
        return MutantList.model_validate(document.data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = tuple(first["loc"])
        said = str(first["msg"]).removeprefix("Value error, ")
        shown = ".".join(map(str, where))
        raise document.place(where).error(f"{shown}: {said}") from error
