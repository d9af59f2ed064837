"""Of `link`."""

from __future__ import annotations

from typing_extensions import TypedDict

from harness.formats.linker_map import Contributor, Orphan
from harness.link.check import HookFinding
from harness.link.failure import CodePlace


class LinkFailure(TypedDict):
    kind: str
    linker: str
    line: int
    text: str
    symbol: str | None
    demangled: str | None
    mangled: str | None
    region: str | None
    bytes: int | None
    sections: list[str]
    files: list[str]
    places: list[CodePlace]
    definitions: list[CodePlace]
    attribute: str | None
    binding: str | None
    contributors: list[Contributor]
    orphans: list[Orphan]
    cause_kind: str | None
    cause: str
    fix: str


class BuildStop(TypedDict):
    kind: str
    line: int
    text: str
    cause: str
    fix: str
    file: str | None
    at: int | None
    subject: str | None


class LinkExplained(TypedDict):
    source: str
    failed: bool
    linked: bool
    stopped: BuildStop | None
    output: str | None
    objects_read: bool
    failures: list[LinkFailure]


class LinkReduced(TypedDict):
    directory: str
    objects: list[str]
    stubs: list[str]
    inputs_before: int
    words: int
    message: str
    failure: LinkFailure


class LinkChecked(TypedDict):
    overridable: bool
    findings: list[HookFinding]
