"""Of `size`, `gate` and `open`."""

from __future__ import annotations

from typing import Literal

from typing_extensions import NotRequired, TypedDict


class Part(TypedDict):
    path: str
    bytes: int
    count: int


class Anatomy(TypedDict):
    file: str
    source: NotRequired[str]
    kind: str
    total: int
    unknown: int
    parts: list[Part]
    memory: list[Part]
    dropped: list[Part]
    notes: list[str]


class Anatomies(TypedDict):
    firmware: list[Anatomy]


class UsedFigure(TypedDict):
    name: str
    bytes: int
    of: int | None
    meaning: str


class Use(TypedDict):
    case: str
    run_dir: str
    figures: list[UsedFigure]


class Change(TypedDict):
    kind: Literal["added", "removed", "grew", "shrank", "renamed"]
    path: str
    old: int
    new: int
    delta: int
    old_path: str | None


class SizeDifference(TypedDict):
    old: str
    new: str
    old_total: int
    new_total: int
    delta: int
    parts: list[Change]
    memory: list[Change]
    why: list[str]


class GatedFigure(TypedDict):
    figure: str
    state: str
    measured: int | None
    accepted: int | None
    limit: int | None
    causes: list[str]


class GatedSubject(TypedDict):
    subject: str
    toolchain: str
    state: Literal["failed", "new", "ok"]
    figures: list[GatedFigure]
    accept: str | None


class Gate(TypedDict):
    failed: bool
    gates: list[GatedSubject]


class Pages(TypedDict):
    pages: list[str]
