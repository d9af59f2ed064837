"""Fetches Debian's packages for a Linux guest, once and without root, and caches them.

``docker/guest-packages.txt`` lists them. They come from this machine's package archives, through
apt with its own state, so that nothing is installed here and no architecture is added.
``guest_packages`` of the settings may name a folder that has them already. Afterwards no network is
needed."""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from harness.core.errors import InfraError
from harness.system import artifact_cache, paths, toolchain
from harness.system.call import CallFailed, call
from harness.system.files import disk_errors
from harness.system.settings import settings

KERNEL, SHELL = "linux-image-arm64", "busybox-static"
# What a module is built from: of the kernel's configuration, of all, and what builds it.
HEADERS, COMMON, KBUILD = "linux-headers-arm64", "linux-headers-common", "linux-kbuild"
_ARCHITECTURE = "arm64"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}  # what Debian calls them
_SECONDS = 900
_HOW = (
    "where there is no such archive, put the .deb files into a folder and name it with "
    "`guest_packages` of your settings"
)


class NoGuestPackages(InfraError):
    """``step`` of fetching them failed; ``said``: its last output."""

    def __init__(self, step: str, said: str) -> None:
        super().__init__(f"the packages of the Linux guest: {step}: {said}", hint=_HOW)
        self.step = step
        self.said = said


def wanted_packages() -> tuple[str, ...]:
    """The names in the list."""
    lines = (paths.data_root() / "docker" / "guest-packages.txt").read_text().splitlines()
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def identity() -> list[object]:
    """Plain data that changes when other packages would be used."""
    given = settings().guest_packages
    if given is None:
        return list(wanted_packages())
    stats = ((path.name, path.stat()) for path in sorted(given.glob("*.deb")))
    return [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats]


def packages() -> dict[str, Path]:
    """The .deb file of every package of the list, by its name there, which may stand for the newest
    of many; fetches those that are not cached.

    Raises NoGuestPackages, ToolMissing without apt.
    """
    names = wanted_packages()
    given = settings().guest_packages
    if given is not None:
        return _given(given, names)
    key = hashlib.sha256(" ".join(names).encode()).hexdigest()[:16]
    place = paths.cache_dir("guest") / "packages" / key
    with disk_errors("keeping the guest's packages"):
        files = artifact_cache.cached(place, key, lambda empty: _fetch(empty, names)).facts
    return {name: place / files[name] for name in names}


def _given(folder: Path, names: Sequence[str]) -> dict[str, Path]:
    found = {}
    for name in names:
        real = rf"(?:{re.escape(name)}|{_with_release(name)})"
        pattern = re.compile(rf"{real}_[^_]+_{_architecture(name)}\.deb")
        files = sorted(p for p in folder.glob("*.deb") if pattern.fullmatch(unquote(p.name)))
        if not files:
            raise NoGuestPackages(f"looking into {folder}", f"it has no {name}")
        found[name] = files[-1]
    return found


def _fetch(place: Path, names: Sequence[str]) -> dict[str, str]:
    """The name of each package's file in ``place``."""
    apt = _Apt(place / "apt")
    apt.run("reading the lists of packages", "apt-get", "update")
    files, needed = {}, ""
    for name in names:
        real, needed = apt.newest(name, needed)
        folder = place / name
        folder.mkdir()
        of = f"{real}:{_native()}" if name == KBUILD else real
        apt.run(f"downloading {real}", "apt-get", "download", of, folder=folder)
        (fetched,) = folder.glob("*.deb")
        files[name] = f"{name}/{fetched.name}"
    shutil.rmtree(apt.folder)  # the lists are larger than the packages
    return files


def _with_release(name: str) -> str:
    """A pattern of the names of packages that a name without a kernel's release stands for:
    "linux-headers-6.1.0-56-arm64" for "linux-headers-arm64"."""
    flavour = next((f for f in (f"-{_ARCHITECTURE}", "-common") if name.endswith(f)), "")
    return rf"{re.escape(name.removesuffix(flavour))}-\d[^\s,_]*{flavour}"


def _architecture(name: str) -> str:
    """The architecture in a package's file name. Programs of kbuild run on the building machine."""
    if name == KBUILD:
        return _native()
    return "all" if name == COMMON else _ARCHITECTURE


def _native() -> str:
    machine = platform.machine()
    if machine not in _MACHINES:
        raise NoGuestPackages("choosing those that run here", f"none are for {machine}")
    return _MACHINES[machine]


class _Apt:
    """apt for other architectures, with a state of its own in ``folder``; the archives, and whom
    they are signed by, are the system's (apt.conf(5))."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for below in ("lists/partial", "archives/partial"):
            (folder / below).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()

    def newest(self, name: str, needed: str) -> tuple[str, str]:
        """The package itself, or the one of the newest kernel that its name stands for: one that
        the packages so far need, or that it needs itself. Also returns the needs of all."""
        pattern = _with_release(name)
        for _ in range(2):
            found = re.search(pattern, needed)
            name = found[0] if found else name
            said = self.run(f"looking {name} up", "apt-cache", "show", "--no-all-versions", name)
            needed += "".join(re.findall(r"^Depends: .*\n", said, re.MULTILINE))
            if found:
                break
        return name, needed

    def run(self, step: str, program: str, *words: str, folder: Path | None = None) -> str:
        settings = {
            "APT::Architecture": _ARCHITECTURE,
            "APT::Architectures": ",".join(dict.fromkeys((_ARCHITECTURE, _native()))),
            "APT::Sandbox::User": "",
            "Dir::State": self.folder,
            "Dir::State::status": self.folder / "status",
            "Dir::Cache": self.folder,
            "Acquire::Languages": "none",
        }
        options = [w for name, value in settings.items() for w in ("-o", f"{name}={value}")]
        try:
            argv = (toolchain.locate(program), *options, *words)
            return call(argv, _SECONDS, cwd=folder or self.folder)
        except CallFailed as error:
            raise NoGuestPackages(step, str(error)) from error
