"""Packages: from a folder, from what was kept, and why there are none."""

from __future__ import annotations

import platform
import stat
from pathlib import Path

import pytest

from harness.sim.guest.kernel import NoGuestPackages, packages, wanted_packages
from tools.clone import project_root

KERNEL = "linux-image-6.1.0-56-arm64_6.1.192-2_arm64.deb"
SHELL = "busybox-static_1%3a1.35.0-4+deb12u1_arm64.deb"
HEADERS = "linux-headers-6.1.0-56-arm64_6.1.192-2_arm64.deb"
COMMON = "linux-headers-6.1.0-56-common_6.1.192-2_all.deb"
KBUILD = "linux-kbuild-6.1_6.1.192-2_amd64.deb"
OTHERS = {HEADERS: "linux-headers-arm64", COMMON: "linux-headers-common", KBUILD: "linux-kbuild"}


def apt(folder: Path, script: str) -> None:
    """A double of apt: what a registry says is not ours to ask for in a test."""
    for name in ("apt-get", "apt-cache"):
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No package is kept, and apt is a double that writes down what it is asked."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    monkeypatch.setenv("HIL_PROJECT", str(tmp_path))
    (tmp_path / "hil.toml").touch()
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    return tmp_path


ANSWERS = f"""
echo "$0 $*" >> {{home}}/asked
for word in "$@"; do last=$word; done
case "$*" in
  *show*linux-image-arm64) echo "Depends: linux-image-6.1.0-56-arm64 (= 6.1.192-2)" ;;
  *show*linux-headers-arm64) echo "Depends: linux-headers-6.1.0-56-arm64 (= 6.1.192-2)" ;;
  *show*linux-headers-6.1.0-56-arm64)
    echo "Depends: linux-headers-6.1.0-56-common (= 6.1.192-2), linux-kbuild-6.1 (= 6.1.192-2)" ;;
  *show*linux-headers-common | *show*linux-kbuild) exit 100 ;;
  *show*) echo "Depends: nothing" ;;
  *download*linux-image-6.1.0-56-arm64) echo kernel > {KERNEL} ;;
  *download*linux-headers-6.1.0-56-arm64) echo headers > {HEADERS} ;;
  *download*linux-headers-6.1.0-56-common) echo common > {COMMON} ;;
  *download*linux-kbuild-6.1:amd64) echo programs > {KBUILD} ;;
  *download*busybox-static) echo shell > {SHELL} ;;
esac
"""


def test_they_are_fetched_once(home: Path) -> None:
    """For another architecture, with a state of its own; the newest kernel is what its name
    stands for. The second time nobody is asked."""
    apt(home, ANSWERS.format(home=home))
    found = packages()
    assert list(found) == list(wanted_packages())
    assert set(found) == {"linux-image-arm64", "busybox-static", *OTHERS.values()}
    assert {found[name].name: name for name in OTHERS.values()} == OTHERS
    assert found["linux-image-arm64"].name == KERNEL
    assert found["busybox-static"].read_text() == "shell\n"
    asked = [line for line in (home / "asked").read_text().splitlines() if " -o " in line]
    assert all("APT::Architecture=arm64" in line for line in asked)
    assert all("APT::Architectures=arm64,amd64" in line for line in asked)
    assert all(f"Dir::State={home}/.hil/cache/guest/packages/" in line for line in asked)
    assert packages() == found
    again = [line for line in (home / "asked").read_text().splitlines() if " -o " in line]
    assert again == asked


def test_what_apt_says_when_it_cannot(home: Path) -> None:
    apt(home, "echo working; echo 'E: no such archive' >&2; exit 100\n")
    with pytest.raises(
        NoGuestPackages, match="reading the lists of packages: E: no such"
    ) as caught:
        packages()
    assert "guest: reading the lists of packages: " in caught.value.message
    assert "guest_packages" in str(caught.value.hint)


def test_a_folder_of_packages(home: Path) -> None:
    """Then no network is needed at all; of several kernels the last in order is taken."""
    folder = home / "debs"
    folder.mkdir()
    for name in (KERNEL, SHELL, *OTHERS, "linux-image-6.1.0-50-arm64_6.1.176-1_arm64.deb"):
        (folder / name).write_bytes(name.encode())
    (home / "hil.toml").write_text('guest_packages = "debs"')
    found = packages()
    assert found["linux-image-arm64"].name == KERNEL
    assert {found[name].name: name for name in OTHERS.values()} == OTHERS
    (folder / SHELL).unlink()
    with pytest.raises(NoGuestPackages, match="it has no busybox-static"):
        packages()


def test_a_machine_whose_name_debian_does_not_know(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs that build a module run here, or nowhere."""
    apt(home, "exit 0\n")
    monkeypatch.setattr(platform, "machine", lambda: "vax")
    with pytest.raises(NoGuestPackages, match="choosing those that run here: none are for vax"):
        packages()


def test_on_aarch64_the_same_architecture_is_asked_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    native = KBUILD.replace("amd64", "arm64")
    apt(home, ANSWERS.format(home=home).replace(":amd64", ":arm64").replace(KBUILD, native))
    assert packages()["linux-kbuild"].name == native
    assert "APT::Architectures=arm64 " in (home / "asked").read_text()


def test_the_list_has_no_name_that_this_machine_would_install() -> None:
    """It stands beside packages.txt because nothing of it is ever installed."""
    own = project_root() / "docker" / "packages.txt"
    assert not set(own.read_text().splitlines()) & set(wanted_packages())
