"""The settings of a user's repository: ``hil.toml``, or ``[tool.hil]`` of its ``pyproject.toml``.

The next such file above a directory holds for all below it. Paths in it are relative to it.
The environment, and after it the command line, are stronger. ``settings.yaml`` describes every
setting, and the environment variables that users may set, for the documentation.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from harness.core.errors import UsageError
from harness.system.files import read_regular, text_of

OWN = "hil.toml"
_MOST_BYTES = 1 << 20
_PROJECT = "pyproject.toml"
_TABLE = "[tool.hil"
VARIABLE = "HIL_PROJECT"
BYTES: Mapping[str, float] = {
    "B": 1,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}
SECONDS: Mapping[str, float] = {"h": 3600, "d": 86400, "w": 7 * 86400}
ROOT_VARIABLE = "EXECUTORCH_ROOT"  # names a checkout of ExecuTorch
_QUANTITIES = {"cache_max": (BYTES, "10 GiB"), "runs_keep": (SECONDS, "30 d")}
FvpPolicy = Literal["fail", "skip"]
Factor = float  # above 0, at most MOST_FACTOR
MOST_FACTOR = 1000
UnprovenPolicy = Literal["fail", "note"]
PoolsPolicy = Literal["enlarged", "own"]
_CHOICES = {
    "fvp_missing": get_args(FvpPolicy),
    "pools": get_args(PoolsPolicy),
    "unproven": get_args(UnprovenPolicy),
}


@dataclass(frozen=True)
class Settings:
    """``folder``: of the file, None when there is none and all the rest says nothing."""

    folder: Path | None = None
    targets: tuple[Path, ...] = ()
    default_targets: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    references: Path | None = None
    budgets: Path | None = None
    cache: Path | None = None
    executorch: Path | None = None
    parts: tuple[str, ...] = ()  # NAME=DIR
    pools: PoolsPolicy = "enlarged"
    cache_max: int = 10 << 30  # bytes
    runs_keep: float = 30 * 86400.0  # seconds
    store: str | None = None  # a URL, or the whole path of a folder
    fvp_missing: FvpPolicy | None = None
    limit_factor: Factor = 1.0
    guest_packages: Path | None = None
    fvp_image: Path | None = None
    unproven: UnprovenPolicy | None = None


class SettingsError(UsageError):
    """``path``: the file."""

    def __init__(self, file: Path, what: str, hint: str = "") -> None:
        super().__init__(f"{file}: {what}", hint=hint or None, path=file)


def settings(directory: Path | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """What holds in ``directory`` (None: the current one). Raises SettingsError."""
    file = settings_file(directory, environ)
    return Settings() if file is None else _read(file, file.stat().st_mtime_ns)


def is_strict(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a result without an accepted reference fails: as the settings say, else in CI. Raises
    SettingsError."""
    said = settings(environ=environ).unproven
    return in_ci(environ) if said is None else said == "fail"


def settings_file(
    directory: Path | None = None, environ: Mapping[str, str] = os.environ
) -> Path | None:
    """The file that holds in ``directory``: ``$HIL_PROJECT``, which names it or its folder, else
    the next one above. Raises SettingsError for one that cannot be read."""
    named = environ.get(VARIABLE)
    if named:
        start = Path(named).absolute()
        if start.is_file():
            return start
        found = _in(start)
        if found is None:
            raise SettingsError(
                start,
                f"${VARIABLE} names it, and it has no settings of hil",
                f"write {OWN} there, or `[tool.hil]` into its {_PROJECT}",
            )
        return found
    start = (directory or Path.cwd()).absolute()
    return next((file for file in map(_in, (start, *start.parents)) if file is not None), None)


def _in(folder: Path) -> Path | None:
    own, project = folder / OWN, folder / _PROJECT
    if own.is_file():
        return own
    # what is wrong in a project that says nothing of us is not our business
    return project if _TABLE in text_of(project) else None


@lru_cache(maxsize=8)
def _read(file: Path, _time: int) -> Settings:
    if sys.version_info >= (3, 11):
        import tomllib  # most projects say nothing of us, and a run is over before this is read
    else:
        import tomli as tomllib
    try:
        content: Any = tomllib.loads(read_regular(file, _MOST_BYTES).decode())
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(file, f"cannot be read: {error}") from error
    except ValueError as error:
        raise SettingsError(
            file, f"is not TOML: {error}", "texts are in quotes, lists in brackets"
        ) from error
    if file.name == _PROJECT:
        content = content.get("tool", {}).get("hil", {})
    if not isinstance(content, dict):
        raise SettingsError(file, "hil under [tool] is not a table", "write [tool.hil]")
    return Settings(folder=file.parent, **dict(_checked(file, content)))


def _checked(file: Path, content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    known = {field.name: str(field.type) for field in fields(Settings) if field.name != "folder"}
    for key, value in content.items():
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise SettingsError(
                file, f"no setting is named {key!r}{meant}", f"there are: {', '.join(known)}"
            )
        parsed, what, example = _parsed(file, key, known[key], value)
        if parsed is None:
            raise SettingsError(file, f"{key} is not {what}", f"for example {key} = {example}")
        yield key, parsed


def _parsed(file: Path, key: str, kind: str, value: Any) -> tuple[Any, str, str]:
    """The parsed value of a setting, None for one that it may not have; a description of the values
    that it may have, and an example. ``kind``: the type of the field."""
    if kind.startswith("tuple"):
        texts = isinstance(value, list) and all(isinstance(v, str) and v for v in value)
        each = [_path(file, v) if "Path" in kind else v for v in value] if texts else None
        return None if each is None else tuple(each), "a list of texts", '["..."]'
    if key in _QUANTITIES:
        units, example = _QUANTITIES[key]
        number = quantity(value, units) if isinstance(value, str) else None
        whole = number if number is None or not kind.startswith("int") else int(number)
        return whole, "a number with a unit", f'"{example}"'
    if key in _CHOICES:
        words = _CHOICES[key]
        allowed = " or ".join(f'"{word}"' for word in words)
        return value if value in words else None, allowed, f'"{words[0]}"'
    if kind == "Factor":
        factor = float(value) if is_factor(value) else None
        return factor, f"a number above 0 and up to {MOST_FACTOR}", "2.5"
    parsed = None
    if isinstance(value, str) and value:
        parsed = place(file.parent, value) if kind.startswith("str") else _path(file, value)
    return parsed, "the path of a folder", '"..."'


def is_factor(value: object) -> bool:
    """Whether time limits can be multiplied by it; False for NaN."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 0 < value <= MOST_FACTOR  # type: ignore[operator]


def quantity(said: str, units: Mapping[str, float]) -> float | None:
    """ "1.5 GiB" in units of one; None unless it is a number with one of the units."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)", said.strip())
    if match is None or match[2] not in units:
        return None
    return float(match[1]) * units[match[2]]


def place(folder: Path, said: str) -> str:
    """A URL as it is; the path of a folder, of which ``folder`` is the start, whole."""
    return said if "://" in said else os.path.abspath(folder / Path(said).expanduser())


def _path(file: Path, said: str) -> Path:
    return Path(os.path.abspath(file.parent / Path(said).expanduser()))


def is_on(value: str) -> bool:
    """As CI systems set a variable: empty, 0, false and no are off."""
    return value.lower() not in ("", "0", "false", "no")


def in_ci(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this is CI, where nobody looks on and defaults are the strict ones."""
    return is_on(environ.get("CI", ""))
