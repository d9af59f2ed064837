"""Cause and fix of a failure from its message alone, with the sentences of ``sentences.yaml``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from harness.link.configure.kconfig import RefusedOption
from harness.link.diagnose.options import blamed_on_options
from harness.link.diagnose.symbols import in_zephyr, unknown
from harness.link.facts import read_facts
from harness.link.failure import Failure, FailureKind, LinkCause, archive_of

_WORD = re.compile(r"\{(?P<name>\w+)(?:\|(?P<default>[^}]*))?\}")
_OPTIONAL = re.compile(r"\[\[(?P<text>.*?)\]\]")
# What a linker writes: never the file that was built for another machine.
_OUTPUT = re.compile(r"(?i)\.(?:elf|axf|out|exe)$|(?:^|[/\\])[^./\\]+$")


@dataclass(frozen=True)
class _Sentences:
    """A row of ``sentences.yaml``."""

    kind: FailureKind
    cause_kind: LinkCause
    cause: str
    fix: str
    where: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", FailureKind(self.kind))
        object.__setattr__(self, "cause_kind", LinkCause(self.cause_kind))

    def fits(self, kind: FailureKind, words: Mapping[str, str]) -> bool:
        return kind is self.kind and all(
            re.search(pattern, words[name]) for name, pattern in self.where.items()
        )


@cache
def _rows() -> tuple[_Sentences, ...]:
    return read_facts(_Sentences, Path(__file__).with_name("sentences.yaml"))


def without_objects(
    failure: Failure, inputs: Sequence[str] = (), refused: Sequence[RefusedOption] = ()
) -> Failure:
    """The failure with cause and fix. ``inputs``: of the link line, where the log shows it.
    ``refused``: the options that did not get their value, by Kconfig's warnings in the log."""
    if failure.kind is FailureKind.UNDEFINED_SYMBOL:
        return _undefined(failure, inputs, refused)
    words = _words(failure)
    row = next(row for row in _rows() if row.fits(failure.kind, words))
    return replace(
        failure,
        cause_kind=failure.cause_kind or row.cause_kind,
        cause=_filled(row.cause, words),
        fix=_filled(row.fix, words),
    )


def _undefined(
    failure: Failure, inputs: Sequence[str], refused: Sequence[RefusedOption]
) -> Failure:
    symbol = failure.symbol or ""
    is_zephyr = any(word.endswith("zephyr/kernel/libkernel.a") for word in inputs)
    known = in_zephyr(symbol) if is_zephyr else None
    cause = known or unknown(symbol, failure.places, inputs, failure.linker)
    cause = blamed_on_options(cause, refused)
    needed = f"{symbol} is needed by {failure.places[0]}. " if failure.places else ""
    return replace(failure, cause=needed + cause.cause, fix=cause.fix, cause_kind=cause.kind)


def _words(failure: Failure) -> dict[str, str]:
    inputs = [file for file in failure.files if not _OUTPUT.search(file)]
    file = failure.files[0] if failure.files else ""
    first, other = (*inputs, "", "")[:2]
    mismatch = f"{first} was built for another machine or in another format"
    if other:
        mismatch = f"{first} and {other} were built for different machines or ABIs"
    return {
        "symbol": failure.symbol or "",
        "region": failure.region or "",
        "bytes": str(failure.bytes or ""),
        "attribute": failure.attribute or "",
        "text": failure.text.strip(),
        "cause_kind": failure.cause_kind or "",
        "file": file,
        "library": file or failure.symbol or "",
        "script": failure.attribute or failure.region or file,
        "section": failure.sections[0] if failure.sections else "",
        "sections": ", ".join(failure.sections[:5]),
        "overlapping": " and ".join(failure.sections) or failure.region or "",
        "place": str(failure.places[0]) if failure.places else "",
        "places": " and ".join(map(str, failure.places[:3])),
        "input": first,
        "archive": archive_of(first),
        "mismatch": mismatch,
    }


def _filled(template: str, words: Mapping[str, str]) -> str:
    def optional(match: re.Match[str]) -> str:
        return match["text"] if all(words[m["name"]] for m in _WORD.finditer(match[0])) else ""

    text = _OPTIONAL.sub(optional, template)
    return _WORD.sub(lambda match: words[match["name"]] or match["default"] or "", text)
