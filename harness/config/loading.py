"""targets/*.yaml -> Target. What is wrong in a file is a TargetError, "file:line: message".

``NAME@Mode`` is the target NAME with another memory mode of its NPU, or without an NPU with
another lowering of its programs.
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.config import npu
from harness.config.model import Host, Limits, Qemu, Region, Simulators, Target, Variant, Zephyr
from harness.config.reading import read_target
from harness.core.errors import NotThere, TargetError, Unknown, UsageError
from harness.formats.cop import PRODUCTS
from harness.system import paths
from harness.system.settings import MOST_FACTOR, is_factor, settings

__all__ = [
    "Host",
    "Limits",
    "Qemu",
    "Region",
    "Simulators",
    "Target",
    "Variant",
    "Zephyr",
    "limit_factor",
    "load_target",
    "load_targets",
    "spelled",
    "target_directories",
    "target_files",
]


def limit_factor(said: str, what: str = "the limit factor") -> float:
    """By which time limits are multiplied. Raises UsageError; ``what``: who said it."""
    try:
        factor = float(said)
    except ValueError:
        factor = math.nan
    if not is_factor(factor):
        raise UsageError(f"{what} is {said!r}, not a number above 0 and up to {MOST_FACTOR}")
    return factor


def target_directories(environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """The project's ``targets``, and those of the user's settings."""
    ours = paths.data_root() / "targets"
    return tuple(dict.fromkeys((ours, *settings(environ=environ).targets)))


def target_files(directories: tuple[Path, ...] | None = None) -> dict[str, Path]:
    """Every target file by target name. Two files of one name are a TargetError."""
    found: dict[str, Path] = {}
    for directory in directories or target_directories():
        if not directory.is_dir():
            raise UsageError(
                f"{directory} is not a directory of targets",
                hint="`targets` of your settings names it",
                path=directory,
            )
        for path in sorted(directory.glob("*.yaml")):
            if path.stem in found and found[path.stem] != path:
                raise TargetError(
                    path,
                    1,
                    f"there is another target {path.stem!r}: {found[path.stem]}",
                    hint="give it another name; `extends` takes over the rest",
                )
            found[path.stem] = path
    return found


def load_targets(directories: tuple[Path, ...] | None = None) -> tuple[Target, ...]:
    """All targets, in the order of their names."""
    files = target_files(directories)
    return tuple(read_target(files[name], files) for name in sorted(files))


def load_target(name: str, directories: tuple[Path, ...] | None = None) -> Target:
    """One target, by name or by the path of its ``.yaml``, with ``@Mode`` where it has an NPU,
    or ``@lowering`` where it has others."""
    files = target_files(directories)
    stem, mode = npu.split_mode(name)
    if stem in files:
        return read_target(files[stem], files, mode)
    path = Path(stem)
    if path.suffix == ".yaml":
        if not path.is_file():
            raise NotThere(stem, "target file", hint="or a name of `hil targets`")
        siblings = {p.stem: p for p in path.absolute().parent.glob("*.yaml")}
        return read_target(path, {**files, **siblings}, mode)
    raise Unknown(
        f"unknown target {stem!r}",
        stem,
        sorted(files),
        close=_alike(stem, files),
        listing="known: ",
    )


def spelled(target: Target, said: str) -> str:
    """What loads ``target`` again, from every directory: its name, without a default memory mode
    that ``said`` may have named; or the path of its file, where ``said`` is one."""
    if not npu.split_mode(said)[0].endswith(".yaml"):
        return target.name
    _, at, mode = target.name.partition("@")
    return f"{target.file}{at}{mode}"


def _alike(name: str, known: Iterable[str]) -> list[str]:
    """The same board and NPU with other MACs, else the names that look most alike."""
    family = name.rpartition("-")[0]
    if family.rpartition("-")[2] in PRODUCTS:
        kin = [other for other in known if other.rpartition("-")[0] == family]
        if kin:
            return sorted(kin, key=lambda other: (len(other), other))
    return difflib.get_close_matches(name, known, n=3, cutoff=0.5)
