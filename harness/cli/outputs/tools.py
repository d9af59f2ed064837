"""Of all other verbs: what there is, what is installed, and the project itself."""

from __future__ import annotations

from typing import Any

from typing_extensions import NotRequired, TypedDict

from harness.build.zephyr.examine import Finding


class Gone(TypedDict):
    kind: str
    path: str
    bytes: int


class Pruned(TypedDict):
    dry_run: bool
    bounds: dict[str, Any]
    bytes: int
    gone: list[Gone]
    in_use: list[str]
    cache_bytes_left: int


class Target(TypedDict):
    name: str
    marker: str
    compile_target: str
    description: str
    simulators: dict[str, bool]
    memory_modes: list[str]
    lowerings: dict[str, str]
    differences: dict[str, list[str]]


class Targets(TypedDict):
    targets: list[Target]


class Model(TypedDict):
    name: str
    description: str


class NoModel(TypedDict):
    name: str
    reason: str


class Models(TypedDict):
    models: list[Model]
    unavailable: list[NoModel]


class Tool(TypedDict):
    name: str
    version: str | None
    path: str | None
    required: bool
    how_to_get: str
    note: str | None
    purpose: str


class State(TypedDict):
    """What is kept, in bytes and seconds."""

    path: str
    cache_max: int
    runs_keep_seconds: float
    kinds: list[dict[str, Any]]


class Doctor(TypedDict):
    tools: list[Tool]
    zephyr: list[Finding]
    missing: list[str]
    state: State


class Written(TypedDict):
    written: list[str]


class Download(TypedDict("Download", {"from": str})):  # a keyword of Python
    what: str
    why: str
    megabytes: float


class Workspace(TypedDict):
    workspace: str
    zephyr: str
    manifest: str
    downloads: list[Download]
    megabytes: float
    commands: list[str]
    activate: list[str]
    done: bool


class Completion(TypedDict):
    shell: str
    script: str
    file: str


class Schemas(TypedDict):
    schemas: dict[str, dict[str, Any]]


class Rows(TypedDict):
    """What `hil bench` measured, of the harness itself: not for others to build on."""

    rows: NotRequired[list[dict[str, Any]]]
    notes: NotRequired[list[str]]
    endings: NotRequired[list[dict[str, Any]]]
    sources: NotRequired[Any]
    written_for: NotRequired[Any]
    counts: NotRequired[dict[str, int]]
    mutants: NotRequired[list[dict[str, Any]]]


class Steps(TypedDict):
    steps: dict[str, dict[str, Any]] | list[str]
