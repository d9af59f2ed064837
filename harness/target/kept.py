"""A target as it was read the last time: reading YAML and checking it takes 0.2 s, this 2 ms.

An entry of ``.hil/cache/targets`` is found by who asks for what and by the code that reads it, and
has the sha256 of every file that was read. It is believed where all of these files are what they
were and its own first line is the sha256 of the rest; else it is read anew, errors included.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from harness.formats import cop
from harness.system import paths
from harness.system.files import read_regular, write_whole
from harness.system.json_file import MALFORMED
from harness.target import budget, fvp, model, npu
from harness.target.data import Data
from harness.target.model import SimulatorName, Target

_KIND = ""  # no field and no key of a file is called so


def remembered(path: Path, files: Mapping[str, Path], mode: str | None) -> Target | None:
    """None where it has to be read."""
    try:
        digest, _, text = read_regular(_entry(path, files, mode)).partition(b"\n")
        if hashlib.sha256(text).hexdigest().encode() != digest:
            return None
        entry = json.loads(text)
        for name, was in entry["read"].items():
            if hashlib.sha256(read_regular(Path(name))).hexdigest() != was:
                return None
        found = _decoded(entry["target"])
    except (OSError, *MALFORMED):
        return None
    return found if isinstance(found, Target) else None


def remember(
    path: Path,
    files: Mapping[str, Path],
    mode: str | None,
    target: Target,
    read: Mapping[Path, str],
) -> None:
    """``read``: the sha256 of each file, as it was when it was read."""
    entry = {
        "read": {str(file.absolute()): digest for file, digest in read.items()},
        "target": _encoded(target),
    }
    text = json.dumps(entry, separators=(",", ":")).encode()
    place = _entry(path, files, mode)
    with suppress(OSError):  # a cache that cannot be written only costs time
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, hashlib.sha256(text).hexdigest().encode() + b"\n" + text)


def _entry(path: Path, files: Mapping[str, Path], mode: str | None) -> Path:
    """``files`` say which file another one extends."""
    names = {name: str(file.absolute()) for name, file in files.items()}
    asked = json.dumps([str(path.absolute()), mode, names, _code()], sort_keys=True)
    return paths.cache_dir("targets") / f"{hashlib.sha256(asked.encode()).hexdigest()[:32]}.json"


@cache
def _code() -> str:
    """Digest of everything of ours that makes a Target of files."""
    root = paths.import_root() / "harness"
    digest = hashlib.sha256()
    own = sorted((root / "target").glob("*.py"))
    for file in (*own, root / "system" / "strict_yaml.py", Path(cop.__file__)):
        digest.update(read_regular(file))
    return digest.hexdigest()


@cache
def _kinds() -> Mapping[str, type[Data]]:
    found: Iterator[Any] = (
        one for module in (model, npu, fvp, budget) for one in vars(module).values()
    )
    return {one.__name__: one for one in found if isinstance(one, type) and issubclass(one, Data)}


def _encoded(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        own = {one.name: _encoded(getattr(value, one.name)) for one in fields(value)}
        return {_KIND: type(value).__name__, **own}
    if isinstance(value, dict):
        return {key: _encoded(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_encoded(item) for item in value]
    if isinstance(value, SimulatorName):
        return {_KIND: "SimulatorName", "value": value.value}
    return {_KIND: "Path", "value": str(value)} if isinstance(value, Path) else value


def _decoded(value: Any) -> Any:
    """Raises one of MALFORMED."""
    if isinstance(value, list):
        return tuple(map(_decoded, value))
    if not isinstance(value, dict):
        return value
    if _KIND not in value:
        return {key: _decoded(item) for key, item in value.items()}
    kind = value[_KIND]
    if kind == "Path":
        return Path(value["value"])
    if kind == "SimulatorName":
        return SimulatorName(value["value"])
    return _kinds()[kind](**{key: _decoded(v) for key, v in value.items() if key != _KIND})
