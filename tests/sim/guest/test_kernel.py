"""What of a kernel's package a guest needs."""

from __future__ import annotations

import lzma
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.core.errors import InfraError
from harness.sim.guest import kernel
from harness.sim.guest.kernel import (
    KERNEL,
    SHELL,
    DriverNotBuilt,
    depends,
    driver,
    guest_kernel,
)


def module(needs: str) -> bytes:
    return b"\x7fELF..\0license=GPL\0depends=" + needs.encode() + b"\0name=x\0"


def package(folder: Path, files: dict[str, bytes]) -> Path:
    """A .deb with ``files``, made by Debian's own tool."""
    tree = folder / "tree"
    for name, content in {**files, "DEBIAN/control": CONTROL}.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    deb = folder / "k.deb"
    subprocess.run(["dpkg-deb", "-b", str(tree), str(deb)], check=True, capture_output=True)
    return deb


CONTROL = b"Package: k\nVersion: 1\nArchitecture: arm64\nMaintainer: n <n@n>\nDescription: k\n"
TREE = "lib/modules/6.1.0/kernel"
FILES = {
    "bin/busybox": b"shell",
    "boot/vmlinuz-6.1.0-test": b"kernel",
    f"{TREE}/fs/9p/9p.ko": module("9pnet,fscache"),
    f"{TREE}/net/9p/9pnet.ko": module(""),
    f"{TREE}/fs/fscache/fscache.ko.xz": lzma.compress(module("netfs")),
    f"{TREE}/drivers/virtio/virtio-mmio.ko": module("virtio"),
    "lib/modules/6.1.0/modules.builtin": b"kernel/drivers/virtio/virtio.ko\nkernel/fs/netfs.ko\n",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kernel's package and the shell's are one of these tests'."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    made = package(tmp_path, FILES)
    monkeypatch.setattr(kernel, "packages", lambda: {KERNEL: made, SHELL: made})
    return tmp_path


def test_modules_come_behind_what_they_need(home: Path) -> None:
    """Compressed or not, with either hyphen; what is in the kernel itself is no file."""
    found = guest_kernel(["virtio_mmio", "9p"])
    assert [path.name for path in found.modules] == [
        "virtio_mmio.ko",
        "9pnet.ko",
        "fscache.ko",
        "9p.ko",
    ]
    assert found.image.read_bytes() == b"kernel"
    assert found.shell.read_bytes() == b"shell"
    assert depends(found.modules[2].read_bytes()) == ["netfs"]


def test_it_is_unpacked_once(home: Path) -> None:
    """Until somebody changes what was unpacked."""
    first = guest_kernel(["9p"])
    (home / "k.deb").rename(home / "away.deb")
    assert guest_kernel(["9p"]) == first
    (home / "away.deb").rename(home / "k.deb")
    first.image.write_bytes(b"edited")
    assert guest_kernel(["9p"]).image.read_bytes() == b"kernel"


def test_a_module_that_is_not_there(home: Path) -> None:
    with pytest.raises(InfraError, match="has no module virtio_gpu") as caught:
        guest_kernel(["virtio_gpu"])
    assert caught.value.facts["module"] == "virtio_gpu"


def test_a_package_that_is_none(home: Path) -> None:
    (home / "k.deb").write_bytes(b"no archive")
    with pytest.raises(InfraError, match="cannot be unpacked"):
        guest_kernel([])


@pytest.mark.skipif(
    shutil.which("aarch64-linux-gnu-gcc") is None, reason="needs aarch64-linux-gnu-gcc"
)
def test_headers_of_another_kernel_and_what_the_compiler_says(tmp_path: Path) -> None:
    """Of Debian's own headers, which take seconds to unpack, each night: test_driver has them."""
    rule = b"modules:\n\t$(CC) -c $(M)/device.c -o $(M)/hil_ethosu.ko\n"
    headers = package(tmp_path, {"usr/src/linux-headers-6.1.0-arm64/Makefile": rule})
    with pytest.raises(DriverNotBuilt, match=r"not those of 9\.9\.9-arm64: linux-headers-6"):
        driver([headers], "9.9.9-arm64", {}, tmp_path / "other")
    sources = {"device.c": b"int wrong = undeclared;\n"}
    with pytest.raises(DriverNotBuilt, match=r"make: .*device\.c:1:\d+:.*undeclared"):
        driver([headers], "6.1.0-arm64", sources, tmp_path / "same")
    sources = {"device.c": b"int right;\n"}
    assert driver([headers], "6.1.0-arm64", sources, tmp_path / "right").startswith(b"\x7fELF")
