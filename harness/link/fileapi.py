"""CMake's cache and File API of a build directory: targets, their sources and their links.

Format: the manual page cmake-file-api(7), object kind "codemodel", major version 2. CMake writes
the reply when something (an editor, `west spdx`, the harness) has requested it before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_API = Path(".cmake") / "api" / "v1"
_LINKED = {"EXECUTABLE", "SHARED_LIBRARY", "MODULE_LIBRARY"}


@dataclass(frozen=True)
class CMakeTarget:
    """One target; all paths are absolute. ``link`` are the fragments of its link command as
    (role, text), role one of "flags", "libraries", "libraryPath", "frameworkPath"."""

    name: str
    type: str  # "EXECUTABLE", "STATIC_LIBRARY", "OBJECT_LIBRARY", ...
    artifacts: tuple[Path, ...]
    sources: tuple[Path, ...]  # those that are compiled
    objects: Path  # the folder of its objects
    source_directory: Path
    link: tuple[tuple[str, str], ...]

    def object_of(self, source: Path) -> Path:
        """Where CMake's generators put a source's object; the suffix is the platform's."""
        try:
            below = source.relative_to(self.source_directory)
        except ValueError:
            below = Path(source.name)
        made = [self.objects / f"{below}{suffix}" for suffix in (".o", ".obj")]
        return next((path for path in made if path.is_file()), made[0])

    @property
    def links(self) -> bool:
        return self.type in _LINKED

    def libraries(self) -> tuple[str, ...]:
        return tuple(text for role, text in self.link if role == "libraries")


def cache_entries(build: Path) -> dict[str, str]:
    """The variables of CMakeCache.txt; {} without one."""
    file = build / "CMakeCache.txt"
    text = file.read_text("utf-8", "replace") if file.is_file() else ""
    return dict(re.findall(r"^([\w-]+):\w+=(.+)$", text, re.MULTILINE))


def ask(build: Path) -> None:
    """Requests the reply: CMake writes it when it configures ``build`` the next time."""
    query = build / _API / "query" / "codemodel-v2"
    query.parent.mkdir(parents=True, exist_ok=True)
    query.touch()


def read_targets(build: Path) -> tuple[CMakeTarget, ...]:
    """The targets of the newest reply; ``()`` without one, or with one that cannot be read."""
    reply = build / _API / "reply"
    indexes = sorted(reply.glob("index-*.json"))
    if not indexes:
        return ()
    try:
        return tuple(_targets(reply, json.loads(indexes[-1].read_text())))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ()  # written by hand or half written: compile_commands.json may know


def _targets(reply: Path, index: dict[str, Any]) -> Iterator[CMakeTarget]:
    models = [
        entry["jsonFile"]
        for entry in index["objects"]
        if entry["kind"] == "codemodel" and entry["version"]["major"] == 2
    ]
    for name in models[:1]:
        model = json.loads((reply / name).read_text())
        top, build = Path(model["paths"]["source"]), Path(model["paths"]["build"])
        for configuration in model["configurations"][:1]:
            for entry in configuration["targets"]:
                yield _target(json.loads((reply / entry["jsonFile"]).read_text()), top, build)


def _target(reply: dict[str, Any], top: Path, build: Path) -> CMakeTarget:
    sources = [source for source in reply.get("sources", ()) if "compileGroupIndex" in source]
    fragments = reply.get("link", {}).get("commandFragments", ())
    return CMakeTarget(
        name=reply["name"],
        type=reply["type"],
        artifacts=tuple(build / artifact["path"] for artifact in reply.get("artifacts", ())),
        sources=tuple(top / source["path"] for source in sources),
        objects=build / reply["paths"]["build"] / "CMakeFiles" / f"{reply['name']}.dir",
        source_directory=top / reply["paths"]["source"],
        link=tuple((fragment["role"], fragment["fragment"]) for fragment in fragments),
    )
