"""The failures of a suite that are known and explained; strict: one that passes is an error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from harness.conformance.model import Verdict
from harness.system import strict_yaml

_REQUIRED = frozenset({"reason", "finding"})
_CONDITIONS = frozenset({"elf_has", "elf_lacks"})


@dataclass(frozen=True)
class Expectation:
    reason: str
    finding: str  # the heading of docs/findings.md
    elf_has: str | None = None
    elf_lacks: str | None = None

    def applies_to(self, elf: bytes) -> bool:
        return (self.elf_has is None or self.elf_has.encode() in elf) and (
            self.elf_lacks is None or self.elf_lacks.encode() not in elf
        )


def load(path: Path) -> dict[str, Expectation]:
    """By test id. Raises TargetError (file and line) when the file is malformed."""
    document = strict_yaml.read(path)
    expected: dict[str, Expectation] = {}
    for test, entry in document.data.items():
        place = document.place((test,))
        if not isinstance(entry, dict) or not (_REQUIRED <= set(entry) <= _REQUIRED | _CONDITIONS):
            raise place.error(
                f"{test} needs the keys reason and finding, and may have elf_has and elf_lacks"
            )
        if not all(isinstance(value, str) and value.strip() for value in entry.values()):
            raise place.error(f"the values of {test} are texts")
        expected[test] = Expectation(**{key: value.strip() for key, value in entry.items()})
    return expected


def applying(expected: dict[str, Expectation], elf: Path) -> dict[str, Expectation]:
    """Those that are meant for this runner."""
    content = elf.read_bytes()
    return {test: one for test, one in expected.items() if one.applies_to(content)}


def apply(verdicts: Iterable[Verdict], expected: dict[str, Expectation]) -> tuple[Verdict, ...]:
    """A failure that was expected becomes ``xfailed``; a pass that was not, ``failed``."""
    return tuple(_apply(verdict, expected.get(verdict.id)) for verdict in verdicts)


def _apply(verdict: Verdict, expectation: Expectation | None) -> Verdict:
    if expectation is None:
        return verdict
    if verdict.result == "failed":
        return replace(verdict, result="xfailed", cause=f"{expectation.reason} [{verdict.cause}]")
    if verdict.result == "passed":
        return replace(
            verdict,
            result="failed",
            cause=f"was expected to fail ({expectation.reason}) and passed: take it out of the "
            "expectation file",
        )
    return verdict


def strangers(verdicts: Iterable[Verdict], expected: dict[str, Expectation]) -> tuple[str, ...]:
    """Complaints about expectations for tests that the whole suite does not have."""
    known = {verdict.id for verdict in verdicts}
    return tuple(
        f"the expectation file names {test}, which the suite does not have"
        for test in expected
        if test not in known
    )
