"""Asks each FVP binary once for its version and its parameters.

A model with an unknown parameter ends before its program begins, with a message that no public
document has. So every name is looked up before a run. The answers are in the cache.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import filter as matching
from pathlib import Path
from typing import Any

from harness.config.fvp import Fvp
from harness.config.loading import place_of_fvp_parameter
from harness.config.target import Target
from harness.core.errors import InfraError
from harness.system.artifact_cache import cached
from harness.system.call import CallFailed, call
from harness.system.files import disk_errors, sha256_of
from harness.system.paths import cache_dir
from harness.system.toolchain import Tool

_QUERY_SECONDS = 120
_LISTED = re.compile(r"^\s*([A-Za-z_][\w.\-\[\]]*)\s*=", re.MULTILINE)
_MOST_CLOSE = 3


@dataclass(frozen=True)
class FvpDescription:
    """The answers of an FVP about itself.

    ``sha256``: of the binary. ``version``: all that it prints. ``parameters``: none when it does
    not list them."""

    sha256: str
    version: str
    parameters: tuple[str, ...]


def describe(program: Path, environment: Mapping[str, str]) -> FvpDescription:
    """Asks the FVP, or reads what it said before. Raises InfraError."""
    with disk_errors(f"reading {program}"):
        digest = sha256_of(program)

    def ask(_place: Path) -> dict[str, Any]:
        listed = _LISTED.findall(_ask(program, "--list-params", environment))
        version = _ask(program, "--version", environment).strip()
        return {"version": version, "parameters": list(dict.fromkeys(listed))}

    with disk_errors("keeping what the FVP says of itself"):
        said = cached(cache_dir("fvp") / digest, digest, ask).facts
    return FvpDescription(digest, said["version"], tuple(said["parameters"]))


def _ask(program: Path, option: str, environment: Mapping[str, str]) -> str:
    """Return the output of the FVP; "" when it fails: a run then shows why."""
    try:
        return call([program, option], _QUERY_SECONDS, environment={**os.environ, **environment})
    except (CallFailed, OSError):
        return ""


def check_parameters(
    target: Target, tool: Tool, environment: Mapping[str, str], names: Iterable[str]
) -> None:
    """Raise InfraError for names that the FVP does not list."""
    known = describe(tool.path, environment).parameters
    unknown = [name for name in names if known and not matching(known, name)]
    if not unknown:
        return
    close = {name: close_names(name, known) for name in unknown}
    lines = (
        f"{name} ({place_of_fvp_parameter(target, name)}"
        + (f"; it has {', '.join(close[name])})" if close[name] else ")")
        for name in unknown
    )
    raise InfraError(
        f"{tool} has no parameter {', '.join(lines)}",
        hint=f"correct the name; `{tool.name} --list-params` lists what this version has",
        kind="fvp_parameter",
        path=tool.path,
        unknown=close,
    )


def close_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the same below another instance, the other way round, or what looks similar."""
    names = tuple(known)
    same = [n for n in names if n.endswith(f".{name}") or name.endswith(f".{n}")]
    similar = get_close_matches(name, names, n=_MOST_CLOSE, cutoff=0.7)
    return tuple(dict.fromkeys((*same, *similar)))[:_MOST_CLOSE]


def version_note(settings: Fvp, tool: Tool) -> tuple[str, ...]:
    """Return a sentence about a version of which the project has no facts."""
    if any(f"{tool.version}.".startswith(f"{known}.") for known in settings.versions):
        return ()
    known = " and ".join(settings.versions) or "none"
    return (f"this FVP is version {tool.version}; the versions with known parameters: {known}",)
