"""The guest's driver of an NPU that is a program on the host: a kernel module of ours.

It is built from targets/linux/ethosu as any module is that is not the kernel's (Linux,
Documentation/kbuild/modules.rst), with Debian's headers of that very kernel, which are unpacked
for it and gone afterwards. The same packages, sources and compiler make the same bytes; they are
kept by content.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock

from harness.core.errors import InfraError
from harness.sim.guest.kernel import unpack
from harness.sim.guest.packages import COMMON, HEADERS, KBUILD, Package
from harness.system import paths, toolchain
from harness.system.files import disk_errors, write_whole

_CROSS = "aarch64-linux-gnu-"
_FILE = "hil_ethosu.ko"
_FLAGS = "-g0 -Werror"
_SECONDS = 600


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
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DriverNotBuilt("make", f"no end after {_SECONDS} s") from error
    if done.returncode or not (module / _FILE).is_file():
        said = done.stdout.decode("utf-8", "replace").strip().splitlines()
        errors = [line for line in said if "error:" in line] or said[-1:]
        raise DriverNotBuilt("make", errors[0] if errors else f"status {done.returncode}")
