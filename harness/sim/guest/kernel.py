"""A guest's kernel: what of its package is needed, and a module of ours that is built for it.

The module is the driver of an NPU that is a program on the host. It is built from
targets/linux/ethosu as any module is that is not the kernel's (Linux,
Documentation/kbuild/modules.rst), with Debian's headers of that very kernel, which are unpacked
for it and gone afterwards. The same packages, sources and compiler make the same bytes; they are
kept by content.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from harness.core.errors import InfraError
from harness.sim.guest.packages import COMMON, HEADERS, KBUILD, Package
from harness.system import paths, toolchain
from harness.system.files import disk_errors, write_whole

_SUFFIXES = (".ko", ".ko.xz")
_SECONDS = 300
_CROSS = "aarch64-linux-gnu-"
_FILE = "hil_ethosu.ko"
_FLAGS = "-g0 -Werror"
_BUILD_SECONDS = 600


class NotInKernel(InfraError):
    """``module`` is neither in the package nor in the kernel itself."""

    def __init__(self, package: str, module: str) -> None:
        super().__init__(f"{package} has no module {module}")
        self.module = module


@dataclass(frozen=True)
class Kernel:
    """``modules`` in an order in which they can be loaded."""

    image: Path
    modules: tuple[Path, ...]
    version: str


def unpack(package: Package, folder: Path) -> None:
    """All files of a package below ``folder``. Raises InfraError for what is none."""
    done = subprocess.run(
        [str(toolchain.locate("dpkg-deb")), "-x", str(package.path), str(folder)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise InfraError(f"{package.path} cannot be unpacked: {said}", path=package.path)


def kernel_of(package: Package, modules: Sequence[str]) -> Kernel:
    """The kernel of a package with ``modules`` and all that they need; kept by content.

    Raises NotInKernel, InfraError.
    """
    key = hashlib.sha256(" ".join([package.sha256, *modules]).encode()).hexdigest()[:24]
    place = paths.cache_dir("guest") / "kernels" / key
    with disk_errors("unpacking the guest's kernel"):
        place.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(str(place.with_suffix(".lock"))):
            if not (place / "vmlinuz").is_file():
                _pick(package, modules, place)
    names = (place / "order").read_text().split()
    version = (place / "version").read_text()
    return Kernel(place / "vmlinuz", tuple(place / name for name in names), version)


def _pick(package: Package, modules: Sequence[str], place: Path) -> None:
    whole = place.with_name(f"{place.name}.{uuid.uuid4().hex[:8]}")
    try:
        unpack(package, whole)
        (image,) = (whole / "boot").glob("vmlinuz-*")
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        found = _in_order(package, whole, modules)
        for name, content in found.items():
            (place / f"{name}.ko").write_bytes(content)
        (place / "order").write_text("\n".join(f"{name}.ko" for name in found))
        (place / "version").write_text(image.name.removeprefix("vmlinuz-"))
        image.rename(place / "vmlinuz")  # last: a folder without it is not whole
    finally:
        shutil.rmtree(whole, ignore_errors=True)


def _in_order(package: Package, whole: Path, wanted: Sequence[str]) -> dict[str, bytes]:
    """The content of modules, each behind those that it depends on."""
    (tree,) = (p for parent in ("lib", "usr/lib") for p in (whole / parent / "modules").glob("*"))
    files = {
        path.name.split(".")[0].replace("-", "_"): path
        for path in tree.rglob("*.ko*")
        if path.name.endswith(_SUFFIXES)
    }
    built_in = {Path(line).stem.replace("-", "_") for line in _built_in(tree)}
    found: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in found or name in built_in:
            return
        if name not in files:
            raise NotInKernel(package.name, name)
        content = files[name].read_bytes()
        if files[name].suffix == ".xz":
            content = lzma.decompress(content)
        for needed in depends(content):
            add(needed)
        found[name] = content

    for name in wanted:
        add(name.replace("-", "_"))
    return found


def _built_in(tree: Path) -> list[str]:
    file = tree / "modules.builtin"
    return file.read_text().splitlines() if file.is_file() else []


def depends(module: bytes) -> list[str]:
    """What a module says that it needs: "depends=a,b" in its .modinfo (Linux, scripts/mod)."""
    match = re.search(rb"\0depends=([\w,-]*)\0", module)
    names = match[1].decode().split(",") if match else []
    return [name.replace("-", "_") for name in names if name]


class DriverNotBuilt(InfraError):
    """``said``: the last of what its build said."""

    def __init__(self, why: str, said: str) -> None:
        super().__init__(f"the guest's kernel module cannot be built: {why}: {said}")
        self.why = why
        self.said = said


def driver(packages: Mapping[str, Package], version: str) -> Path:
    """The module for the kernel of this version. Raises DriverNotBuilt, ToolMissing, InfraError."""
    files = sorted(path for path in source_directory().iterdir() if path.is_file())
    sources = {path.name: path.read_bytes() for path in files}
    parts = [packages[name] for name in (HEADERS, COMMON, KBUILD)]
    facts = [
        *(package.sha256 for package in parts),
        *(f"{name} {hashlib.sha256(content).hexdigest()}" for name, content in sources.items()),
        *(str(toolchain.require(name)) for name in ("make", f"{_CROSS}gcc")),
        *(version, _FLAGS),
    ]
    key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:24]
    kept = paths.cache_dir("guest") / "drivers" / key / _FILE
    with disk_errors("building the guest's kernel module"):
        kept.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(str(kept.with_suffix(".lock"))):
            if not kept.is_file():
                # Not below our own directories: make cannot do with a space in a path.
                with tempfile.TemporaryDirectory(prefix="hil-driver-") as folder:
                    write_whole(kept, _built(parts, version, sources, Path(folder)))
    return kept


def source_directory() -> Path:
    return paths.data_root() / "targets" / "linux" / "ethosu"


def _built(parts: list[Package], version: str, sources: Mapping[str, bytes], folder: Path) -> bytes:
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
    _make(headers, module)
    return (module / _FILE).read_bytes()


def _make(headers: Path, module: Path) -> None:
    words = {
        "M": module,
        "ARCH": "arm64",
        "CROSS_COMPILE": _CROSS,
        "CC": toolchain.locate(f"{_CROSS}gcc"),  # Debian's own is named with its version
        "KCFLAGS": f"{_FLAGS} -ffile-prefix-map={module}=.",
    }
    try:
        done = subprocess.run(
            [
                *(str(toolchain.locate("make")), "-s", "-C", str(headers)),
                *(f"{name}={value}" for name, value in words.items()),
                "modules",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            timeout=_BUILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DriverNotBuilt("make", f"no end after {_BUILD_SECONDS} s") from error
    if done.returncode or not (module / _FILE).is_file():
        said = done.stdout.decode("utf-8", "replace").strip().splitlines()
        errors = [line for line in said if "error:" in line] or said[-1:]
        raise DriverNotBuilt("make", errors[0] if errors else f"status {done.returncode}")
