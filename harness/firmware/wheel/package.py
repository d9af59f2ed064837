"""ExecuTorch's wheel for Linux on AArch64: of it what a C++ program needs, fetched once and kept.

It is of the version that exports, from where pip takes everything else ($PIP_INDEX_URL; a folder
that has the wheel: $PIP_FIND_LINKS with $PIP_NO_INDEX=1), without installing anything. What was
fetched is kept with its sha256, and from then on no network is asked.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from filelock import FileLock

from harness.core.errors import InfraError
from harness.system import paths
from harness.system.files import disk_errors, sha256_of, write_whole

DISTRIBUTION = "executorch"
PLATFORM = "manylinux_2_28_aarch64"
# Linked, or opened by what is linked: the runtime, the operators' kernels and a backend.
LIBRARIES = tuple(
    f"lib{DISTRIBUTION}{name}.so"
    for name in ("", "_threadpool", "_kernels_optimized", "_kernels_quantized", "_backend_xnnpack")
)
_FOLDERS = ("include", "share/cmake")
_STAMP = "wheel.json"
_SECONDS = 900


class NoWheel(InfraError):
    """pip has no wheel of ``version``; ``said``: the last of what it said."""

    kind = "no_wheel"

    def __init__(self, version: str, said: str) -> None:
        super().__init__(
            f"ExecuTorch {version}, which exports here, is not to be had for Linux on AArch64: "
            f"{said}",
            hint="pip fetches it once, from where it takes everything else; without a network, put "
            f"{DISTRIBUTION}-{version}-*-{PLATFORM}.whl into a folder and say PIP_NO_INDEX=1 "
            "PIP_FIND_LINKS=FOLDER",
        )
        self.version = version
        self.said = said


class WheelLacks(InfraError):
    """A wheel without its C++ runtime. ``missing``: the first of what it has not."""

    kind = "wheel_lacks"

    def __init__(self, wheel: str, missing: str) -> None:
        super().__init__(
            f"{wheel} has no {missing}, and no program can be linked with it",
            hint="the wheels of ExecuTorch 1.5.1 have it; which version is installed decides",
        )
        self.wheel = wheel
        self.missing = missing


@dataclass(frozen=True)
class RuntimeWheel:
    """``root``: the package's folder, with the C++ part of it; ``sha256``: of the wheel's file."""

    version: str
    file: str
    sha256: str
    root: Path

    @property
    def note(self) -> str:
        """For a record."""
        return (
            f"the runtime and the kernels are those of {self.file} ({self.sha256[:12]}), started "
            "by a program of the harness's own"
        )


def runtime_wheel() -> RuntimeWheel:
    """That of the exporter's version. Raises NoWheel, WheelLacks, InfraError (disk full)."""
    version = metadata.version(DISTRIBUTION).partition("+")[0]
    store = paths.cache_dir("wheels")
    place = store / f"{DISTRIBUTION}-{version}-{PLATFORM}"
    with disk_errors("keeping ExecuTorch's wheel"):
        store.mkdir(parents=True, exist_ok=True)
        with FileLock(str(store / "lock")):
            return _kept(place, version) or _fetched(place, version)


def _kept(place: Path, version: str) -> RuntimeWheel | None:
    """None when not all of it is there."""
    try:
        said = json.loads((place / _STAMP).read_text())
        return RuntimeWheel(version, str(said["file"]), str(said["sha256"]), place / DISTRIBUTION)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _fetched(place: Path, version: str) -> RuntimeWheel:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    _download(version, place)
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = _wanted(archive, wheel.name)
        archive.extractall(place, names)
    said = {"file": wheel.name, "sha256": sha256_of(wheel)}
    wheel.unlink()
    write_whole(place / _STAMP, json.dumps(said, indent=1) + "\n")
    return RuntimeWheel(version, said["file"], said["sha256"], place / DISTRIBUTION)


def _wanted(archive: zipfile.ZipFile, wheel: str) -> list[str]:
    """The members that are unpacked, all of what a program needs. Raises WheelLacks."""
    folders = tuple(f"{DISTRIBUTION}/{folder}/" for folder in _FOLDERS)
    libraries = [f"{DISTRIBUTION}/lib/{name}" for name in LIBRARIES]
    members = archive.namelist()
    for wanted in (*folders, *libraries):
        if not any(name.startswith(wanted) for name in members):
            raise WheelLacks(wheel, wanted)
    return [name for name in members if name.startswith(folders) or name in libraries]


def _download(version: str, folder: Path) -> None:
    words = (
        *(sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"),
        *("download", f"{DISTRIBUTION}=={version}", "--no-deps", "--only-binary=:all:"),
        *("--platform", PLATFORM, "--retries", "2", "--dest", str(folder), "--quiet"),
    )
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NoWheel(version, f"no end after {_SECONDS} s") from error
    if done.returncode:
        lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
        raise NoWheel(version, lines[-1] if lines else f"pip ended with {done.returncode}")
