"""The guest's image: a kernel and an initramfs, from packages and the runner, kept by content.

The same packages, settings and runner make the same bytes. No root is needed and nothing is
mounted: the archive is written by ``cpio``. What is the project's own in it is in targets/linux.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from harness.sim.guest import cpio
from harness.sim.guest.kernel import Kernel, driver, kernel_of, unpack
from harness.sim.guest.packages import KERNEL, SHELL, Package, packages
from harness.system import paths
from harness.system.files import disk_errors, write_whole
from harness.system.locks import in_use

RUNNER = "/bin/executor_runner"


@dataclass(frozen=True)
class Settings:
    """What of a target decides what is in its image. ``modules``: what the kernel needs to reach
    the machine's devices; what these need is found. ``npu``: also our driver of an Ethos-U."""

    hostname: str
    console: str
    modules: tuple[str, ...]
    npu: bool = False


@dataclass(frozen=True)
class Image:
    """``source``: what it is made of, as a record should say."""

    kernel: Path
    initramfs: Path
    source: str


def image(settings: Settings, runner: Path, root: Path | None = None) -> Image:
    """The image with ``runner`` in it, and the files below ``root``, which it needs there.

    Raises NoGuestPackages, NotInKernel, DriverNotBuilt, InfraError.
    """
    kernel = guest_kernel(settings.modules)
    if settings.npu:
        own = driver(packages(), kernel.version)
        kernel = replace(kernel, modules=(*kernel.modules, own))
    shell = _shell_of(packages()[SHELL])
    with disk_errors("making the guest's image"):
        content = initramfs(settings, kernel, shell, runner.read_bytes(), _below(root))
        place = paths.cache_dir("guest") / "images"
        place.mkdir(parents=True, exist_ok=True)
        file = place / f"{hashlib.sha256(content).hexdigest()[:24]}.cpio"
        in_use(file)
        if not file.is_file() or file.stat().st_size != len(content):
            write_whole(file, content)
    return Image(kernel.image, file, f"Debian's Linux {kernel.version}")


def guest_kernel(modules: Sequence[str]) -> Kernel:
    """The kernel of every image. Raises NoGuestPackages, NotInKernel, InfraError."""
    return kernel_of(packages()[KERNEL], modules)


def initramfs(
    settings: Settings,
    kernel: Kernel,
    shell: bytes,
    runner: bytes,
    besides: Mapping[str, cpio.Entry] = MappingProxyType({}),
) -> bytes:
    own = {path.name: path.read_text() for path in sorted(_own().iterdir()) if path.is_file()}
    inittab = own["inittab"].replace("@CONSOLE@", settings.console)
    entries = {
        "init": cpio.link("bin/busybox"),
        "bin/busybox": cpio.file(shell, executable=True),
        "bin/sh": cpio.link("busybox"),
        RUNNER.lstrip("/"): cpio.file(runner, executable=True),
        "dev/console": cpio.character_device(5, 1),
        "etc/hostname": _text(f"{settings.hostname}\n"),
        "etc/init.sh": cpio.file(own["init.sh"].encode(), executable=True),
        "etc/inittab": _text(inittab),
        "etc/sysctl.conf": _text(own["sysctl.conf"]),
        "etc/passwd": _text("root::0:0:root:/root:/bin/sh\n"),
        "etc/group": _text("root:x:0:\n"),
        "etc/modules": _text("".join(f"{path.name}\n" for path in kernel.modules)),
        "root": cpio.directory(),
        "tmp": cpio.directory(),
        **_modules(kernel.modules),
        **besides,
    }
    return cpio.archive(entries)


def _modules(files: Sequence[Path]) -> dict[str, cpio.Entry]:
    return {f"lib/modules/{path.name}": cpio.file(path.read_bytes()) for path in files}


def _below(root: Path | None) -> dict[str, cpio.Entry]:
    """The files of a folder, by name; executable ones, as the dynamic linker is."""
    files = [] if root is None else sorted(path for path in root.rglob("*") if path.is_file())
    return {
        str(path.relative_to(root)): cpio.file(path.read_bytes(), executable=True)
        for path in files
        if root is not None
    }


def _text(content: str) -> cpio.Entry:
    return cpio.file(content.encode())


def _own() -> Path:
    return paths.data_root() / "targets" / "linux"


def _shell_of(package: Package) -> bytes:
    """busybox, from its package; kept by content."""
    kept = paths.cache_dir("guest") / "shells" / package.sha256[:24]
    if not kept.is_file():
        with disk_errors("unpacking the guest's shell"), tempfile.TemporaryDirectory() as folder:
            unpack(package, Path(folder))
            found = next(p for p in Path(folder).rglob("bin/busybox"))
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_whole(kept, found.read_bytes())
    return kept.read_bytes()
