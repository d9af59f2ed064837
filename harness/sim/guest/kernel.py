"""What of a kernel's package a guest needs: the kernel, and modules with what they depend on."""

from __future__ import annotations

import hashlib
import lzma
import re
import shutil
import subprocess
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from harness.core.errors import InfraError
from harness.sim.guest.packages import Package
from harness.system import paths, toolchain
from harness.system.files import disk_errors

_SUFFIXES = (".ko", ".ko.xz")
_SECONDS = 300


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
