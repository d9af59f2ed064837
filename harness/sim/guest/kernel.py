"""Prepares the parts of a Linux guest besides the runner.

They are Debian's kernel with the modules it needs, its shell, and the harness's kernel module for
an NPU that is a program on the host.

``docker/guest-packages.txt`` lists Debian's packages. They are fetched once and without root from
this machine's package archives, through apt with its own state, so nothing is installed here and no
architecture is added. ``guest_packages`` of the settings may name a folder that has them already.

The module is built from targets/linux/ethosu like any out-of-tree module (Linux,
Documentation/kbuild/modules.rst), with Debian's headers of that kernel, which are unpacked for it
and removed afterwards. The same packages, sources and compiler make the same bytes."""

from __future__ import annotations

import hashlib
import lzma
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from harness.core.errors import InfraError
from harness.system import artifact_cache, paths, toolchain
from harness.system.call import CallFailed, call
from harness.system.files import disk_errors, text_of
from harness.system.settings import settings

_SUFFIXES = (".ko", ".ko.xz")
_SECONDS = 300
_CROSS = "aarch64-linux-gnu-"
_FILE = "hil_ethosu.ko"
_FLAGS = "-g0 -Werror"
_BUILD_SECONDS = 600
_LAYOUT = 2  # raise it when what a directory of the cache holds changes

KERNEL, SHELL = "linux-image-arm64", "busybox-static"
# What a module is built from: of the kernel's configuration, of all, and what builds it.
HEADERS, COMMON, KBUILD = "linux-headers-arm64", "linux-headers-common", "linux-kbuild"
_ARCHITECTURE = "arm64"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}  # what Debian calls them
_APT_SECONDS = 900
_HOW = (
    "where there is no such archive, put the .deb files into a folder and name it with "
    "`guest_packages` of your settings"
)


class NoGuestPackages(InfraError):
    """``step``: which part of getting them failed; ``said``: its last output."""

    def __init__(self, step: str, said: str) -> None:
        super().__init__(f"the packages of the Linux guest: {step}: {said}", hint=_HOW)


def wanted_packages() -> tuple[str, ...]:
    """Return the names in the list."""
    lines = (paths.data_root() / "docker" / "guest-packages.txt").read_text().splitlines()
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def identity() -> list[object]:
    """Plain data that changes when other packages would be used."""
    given = settings().guest_packages
    if given is None:
        return list(wanted_packages())
    stats = ((path.name, path.stat()) for path in sorted(given.glob("*.deb")))
    return [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats]


def packages(wanted: Sequence[str] = ()) -> dict[str, Path]:
    """Return the .deb file of every package of the list (or of ``wanted``), by its name there.

    The name may stand for the newest of many. Fetches those that are not cached. Raises
    NoGuestPackages, ToolMissing without apt."""
    names = wanted or wanted_packages()
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
    """Return the name of each package's file in ``place``."""
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
    """Return a pattern of the package names that a name without a kernel's release stands for.

    An example: "linux-headers-6.1.0-56-arm64" for "linux-headers-arm64"."""
    flavour = next((f for f in (f"-{_ARCHITECTURE}", "-common") if name.endswith(f)), "")
    return rf"{re.escape(name.removesuffix(flavour))}-\d[^\s,_]*{flavour}"


def _architecture(name: str) -> str:
    """Return the architecture in a file name; kbuild's programs run on the builder."""
    if name == KBUILD:
        return _native()
    return "all" if name == COMMON else _ARCHITECTURE


def _native() -> str:
    machine = platform.machine()
    if machine not in _MACHINES:
        raise NoGuestPackages("choosing those that run here", f"none are for {machine}")
    return _MACHINES[machine]


class _Apt:
    """apt for other architectures, with its state in ``folder`` and the system's archives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for below in ("lists/partial", "archives/partial"):
            (folder / below).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()

    def newest(self, name: str, needed: str) -> tuple[str, str]:
        """Return the package itself, or that of the newest kernel that its name stands for.

        The kernel is one that the packages so far need, or that it needs itself. Also returns the
        needs of all."""
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
            # Debian's images for containers keep no caches: each call would read all lists anew
            "Dir::Cache::pkgcache": "pkgcache.bin",
            "Dir::Cache::srcpkgcache": "srcpkgcache.bin",
            "Acquire::Languages": "none",
        }
        options = [w for name, value in settings.items() for w in ("-o", f"{name}={value}")]
        try:
            argv = (toolchain.locate(program), *options, *words)
            return call(argv, _APT_SECONDS, cwd=folder or self.folder)
        except CallFailed as error:
            raise NoGuestPackages(step, str(error)) from error


@dataclass(frozen=True)
class Kernel:
    """``modules`` in an order in which they can be loaded; ``shell`` is busybox."""

    image: Path
    modules: tuple[Path, ...]
    shell: Path
    version: str


def guest_kernel(modules: Sequence[str], *, npu: bool = False) -> Kernel:
    """Return the kernel with ``modules`` and their dependencies.

    ``npu``: also the harness's driver. Raises NoGuestPackages, DriverNotBuilt, ToolMissing,
    InfraError."""
    sources: dict[str, bytes] = {}
    facts: list[object] = [_LAYOUT, identity(), list(modules)]
    if npu:
        files = sorted(path for path in source_directory().iterdir() if path.is_file())
        sources = {path.name: path.read_bytes() for path in files}
        facts += [[name, hashlib.sha256(text).hexdigest()] for name, text in sources.items()]
        facts += [str(toolchain.require(name)) for name in ("make", f"{_CROSS}gcc")]
        facts.append(_FLAGS)
    key = artifact_cache.key_of(facts)
    place = paths.cache_dir("guest") / "kernels" / key
    with disk_errors("making the guest's kernel"):
        made = artifact_cache.cached(place, key, lambda empty: _make(empty, modules, sources)).facts
    found = tuple(place / name for name in made["modules"])
    return Kernel(place / "vmlinuz", found, place / "busybox", made["version"])


def _make(place: Path, modules: Sequence[str], sources: Mapping[str, bytes]) -> dict[str, Any]:
    """Make the kernel's folder. ``sources``: of the harness's module, if it is to be built."""
    if not sources:
        return _unpacked(place, modules)
    plain = guest_kernel(modules)  # unpacked once for both: that takes seconds
    for path in (plain.image, plain.shell, *plain.modules):
        shutil.copy(path, place)
    parts = [packages()[name] for name in (HEADERS, COMMON, KBUILD)]
    # Not below the harness's directories: make fails with a space in a path.
    with tempfile.TemporaryDirectory(prefix="hil-driver-") as folder:
        (place / _FILE).write_bytes(driver(parts, plain.version, sources, Path(folder)))
    return {"modules": [*(path.name for path in plain.modules), _FILE], "version": plain.version}


def _unpacked(place: Path, modules: Sequence[str]) -> dict[str, Any]:
    given = packages()
    whole = place / "unpacked"
    for name in (KERNEL, SHELL):
        unpack(given[name], whole)
    (image,) = (whole / "boot").glob("vmlinuz-*")
    version = image.name.removeprefix("vmlinuz-")
    image.rename(place / "vmlinuz")
    next(whole.rglob("bin/busybox")).rename(place / "busybox")
    found = _in_order(given[KERNEL], whole, modules)
    shutil.rmtree(whole)
    for name, module in found.items():
        (place / f"{name}.ko").write_bytes(module)
    return {"modules": [f"{name}.ko" for name in found], "version": version}


def unpack(package: Path, folder: Path) -> None:
    """Unpacks a package below ``folder``. Raises InfraError for another kind of file."""
    try:
        call((toolchain.locate("dpkg-deb"), "-x", package, folder), _SECONDS)
    except CallFailed as error:
        raise InfraError(f"{package} cannot be unpacked: {error}", path=package) from error


def _in_order(package: Path, whole: Path, wanted: Sequence[str]) -> dict[str, bytes]:
    """Return the content of modules, each after those that it depends on."""
    (tree,) = (p for parent in ("lib", "usr/lib") for p in (whole / parent / "modules").glob("*"))
    files = {
        path.name.split(".")[0].replace("-", "_"): path
        for path in tree.rglob("*.ko*")
        if path.name.endswith(_SUFFIXES)
    }
    listed = text_of(tree / "modules.builtin").splitlines()
    built_in = {Path(line).stem.replace("-", "_") for line in listed}
    found: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in found or name in built_in:
            return
        if name not in files:
            raise InfraError(f"{unquote(package.stem)} has no module {name}", module=name)
        content = files[name].read_bytes()
        if files[name].suffix == ".xz":
            content = lzma.decompress(content)
        for needed in depends(content):
            add(needed)
        found[name] = content

    for name in wanted:
        add(name.replace("-", "_"))
    return found


def depends(module: bytes) -> list[str]:
    """Return the modules that a module needs: "depends=a,b" in its .modinfo."""
    match = re.search(rb"\0depends=([\w,-]*)\0", module)
    names = match[1].decode().split(",") if match else []
    return [name.replace("-", "_") for name in names if name]


class DriverNotBuilt(InfraError):
    """``said``: the last output of its build."""

    def __init__(self, why: str, said: str) -> None:
        super().__init__(f"the guest's kernel module cannot be built: {why}: {said}")


def source_directory() -> Path:
    return paths.data_root() / "targets" / "linux" / "ethosu"


def driver(
    parts: Sequence[Path], version: str, sources: Mapping[str, bytes], folder: Path
) -> bytes:
    """Return the module for this kernel, built in ``folder``. Raises DriverNotBuilt."""
    for package in parts:
        unpack(package, folder)
    system = folder / "usr" / "src"
    headers = system / f"linux-headers-{version}"
    makefile = headers / "Makefile"
    if not makefile.is_file():
        there = sorted(path.name for path in system.glob("linux-headers-*"))
        raise DriverNotBuilt(f"the headers are not those of {version}", ", ".join(there))
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{system}/"))
    module = folder / "module"
    module.mkdir()
    for name, content in sources.items():
        (module / name).write_bytes(content)
    words = {
        "M": module,
        "ARCH": "arm64",
        "CROSS_COMPILE": _CROSS,
        "CC": toolchain.locate(f"{_CROSS}gcc"),  # Debian's own is named with its version
        "KCFLAGS": f"{_FLAGS} -ffile-prefix-map={module}=.",
    }
    settings = (f"{name}={value}" for name, value in words.items())
    argv = (toolchain.locate("make"), "-s", "-C", headers, *settings, "modules")
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    try:
        call(argv, _BUILD_SECONDS, environment=environment)
    except CallFailed as error:
        errors = [line for line in (error.output or "").splitlines() if "error:" in line]
        raise DriverNotBuilt("make", errors[0] if errors else str(error)) from error
    return (module / _FILE).read_bytes()
