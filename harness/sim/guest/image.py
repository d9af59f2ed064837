"""The guest's image: a kernel and an initramfs, from packages and the runner, kept by content.

The same packages, settings and runner make the same bytes. No root is needed and nothing is
mounted: the initramfs is an archive in cpio's "newc" format (Linux,
Documentation/driver-api/early-userspace/buffer-format.rst). The project's own files in it come from
targets/linux.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from harness.sim.guest.kernel import Kernel, guest_kernel
from harness.system import artifact_cache, paths
from harness.system.files import disk_errors, read_regular

RUNNER = "/bin/executor_runner"
_FILE = "initramfs.cpio"


@dataclass(frozen=True)
class ImageSettings:
    """The settings of a target that decide the content of its image.

    ``modules``: kernel modules for the machine's devices; their dependencies are found. ``npu``:
    also our Ethos-U driver."""

    hostname: str
    console: str
    modules: tuple[str, ...]
    npu: bool = False


@dataclass(frozen=True)
class Image:
    kernel: Path
    initramfs: Path


def image(settings: ImageSettings, runner: Path, root: Path | None = None) -> Image:
    """Return the image with ``runner`` in it, and the files below ``root``, which it needs there.

    Raises NoGuestPackages, DriverNotBuilt, InfraError."""
    kernel = guest_kernel(settings.modules, npu=settings.npu)
    with disk_errors("making the guest's image"):
        content = initramfs(settings, kernel, read_regular(runner), _below(root))
        key = hashlib.sha256(content).hexdigest()[:24]
        place = paths.cache_dir("guest") / "images" / key

        def fill(empty: Path) -> None:
            (empty / _FILE).write_bytes(content)

        artifact_cache.cached(place, key, fill)
    return Image(kernel.image, place / _FILE)


def initramfs(
    settings: ImageSettings,
    kernel: Kernel,
    runner: bytes,
    besides: Mapping[str, CpioEntry] = MappingProxyType({}),
) -> bytes:
    folder = paths.data_root() / "targets" / "linux"
    own = {path.name: path.read_text() for path in sorted(folder.iterdir()) if path.is_file()}
    inittab = own["inittab"].replace("@CONSOLE@", settings.console)
    entries = {
        "init": link_entry("bin/busybox"),
        "bin/busybox": file_entry(read_regular(kernel.shell), executable=True),
        "bin/sh": link_entry("busybox"),
        RUNNER.lstrip("/"): file_entry(runner, executable=True),
        "dev/console": device_entry(5, 1),
        "etc/hostname": file_entry(f"{settings.hostname}\n".encode()),
        "etc/init.sh": file_entry(own["init.sh"].encode(), executable=True),
        "etc/inittab": file_entry(inittab.encode()),
        "etc/sysctl.conf": file_entry(own["sysctl.conf"].encode()),
        "etc/passwd": file_entry(b"root::0:0:root:/root:/bin/sh\n"),
        "etc/group": file_entry(b"root:x:0:\n"),
        "etc/modules": file_entry("".join(f"{path.name}\n" for path in kernel.modules).encode()),
        "root": directory_entry(),
        "tmp": directory_entry(),
        **{f"lib/modules/{m.name}": file_entry(read_regular(m)) for m in kernel.modules},
        **besides,
    }
    return archive(entries)


def _below(root: Path | None) -> dict[str, CpioEntry]:
    """Return the files of a folder, by name; executable ones, as the dynamic linker is."""
    if root is None:
        return {}
    return {
        str(path.relative_to(root)): file_entry(read_regular(path), executable=True)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


_MAGIC = b"070701"
_END = "TRAILER!!!"


@dataclass(frozen=True)
class CpioEntry:
    """``mode`` has the type of file; ``content`` of a symbolic link is what it points to."""

    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


def directory_entry() -> CpioEntry:
    return CpioEntry(stat.S_IFDIR | 0o755)


def file_entry(content: bytes, *, executable: bool = False) -> CpioEntry:
    return CpioEntry(stat.S_IFREG | (0o755 if executable else 0o644), content)


def link_entry(to: str) -> CpioEntry:
    return CpioEntry(stat.S_IFLNK | 0o777, to.encode())


def device_entry(major: int, minor: int) -> CpioEntry:
    return CpioEntry(stat.S_IFCHR | 0o600, b"", (major, minor))


def archive(entries: Mapping[str, CpioEntry]) -> bytes:
    """``entries`` by path without a leading slash; directories above them are made."""
    every: dict[str, CpioEntry] = {}
    for path in sorted(entries):
        parts = path.split("/")
        for depth in range(1, len(parts)):
            every.setdefault("/".join(parts[:depth]), directory_entry())
        every[path] = entries[path]
    pieces = [_piece(number, path, every[path]) for number, path in enumerate(every, start=1)]
    return b"".join([*pieces, _piece(0, _END, CpioEntry(0))])


def _piece(number: int, path: str, entry: CpioEntry) -> bytes:
    name = path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    size, device = len(entry.content), entry.device
    # inode, mode, uid, gid, links, time, size, device of the file system, device, name, checksum
    fields = (number, entry.mode, 0, 0, links, 0, size, 0, 0, *device, len(name), 0)
    header = _MAGIC + b"".join(b"%08X" % field for field in fields)
    return _padded(header + name) + _padded(entry.content)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
