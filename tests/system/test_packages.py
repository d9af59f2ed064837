"""Protects what a user of another system is told to install."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from harness.system import packages
from harness.system.packages import how_to_get, purpose_of, this_system, with_its_kind
from harness.system.toolchain import specs

DEBIAN = {"PRETTY_NAME": "Debian GNU/Linux 12 (bookworm)", "ID": "debian"}
MINT = {"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}
ROCKY = {"ID": "rocky", "ID_LIKE": "rhel centos fedora"}


@pytest.mark.parametrize(
    ("release", "system"),
    [(DEBIAN, "debian"), (MINT, "ubuntu"), (ROCKY, "fedora"), ({"ID": "arch"}, None)],
)
def test_the_system(
    monkeypatch: pytest.MonkeyPatch, release: dict[str, str], system: str | None
) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)
    assert this_system() == system


def test_a_system_that_does_not_say_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> dict[str, str]:
        raise FileNotFoundError

    monkeypatch.setattr(platform, "freedesktop_os_release", missing)
    assert this_system() is None


@pytest.mark.parametrize(
    ("system", "said"),
    [
        ("debian", "apt-get install ninja-build chromium"),
        ("ubuntu", "apt-get install ninja-build"),  # chromium is a snap there
        ("fedora", "dnf install ninja-build chromium"),
        (
            None,
            "Debian: apt-get install ninja-build chromium; Ubuntu: apt-get install ninja-build; "
            "Fedora: dnf install ninja-build chromium",
        ),
    ],
)
def test_the_command(monkeypatch: pytest.MonkeyPatch, system: str | None, said: str) -> None:
    monkeypatch.setattr(packages, "this_system", lambda: system)
    assert how_to_get("ninja-build", "chromium") == said


def test_what_a_system_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "this_system", lambda: "ubuntu")
    assert how_to_get("chromium") == "Ubuntu has no package for chromium"
    monkeypatch.setattr(packages, "this_system", lambda: None)
    assert (
        how_to_get("cmake") == "Debian and Ubuntu: apt-get install cmake; Fedora: dnf install cmake"
    )


def test_two_tools_of_one_package_are_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "this_system", lambda: "fedora")
    assert how_to_get("clang", "clang") == "dnf install clang"


PURPOSES = {"run", "linux", "executorch", "zephyr", "dev"}


def test_every_tool_has_its_package_in_the_list() -> None:
    assert {purpose_of(spec.package) for spec in specs().values()} <= PURPOSES
    assert {package.purpose for package in packages.packages().values()} == PURPOSES
    for spec in specs().values():
        if spec.required:
            assert purpose_of(spec.package) == "run"


def test_what_a_target_with_linux_needs_is_named_at_once() -> None:
    """And that only our own tests need chromium does not make anybody install it."""
    assert {"g++-aarch64-linux-gnu", "qemu-user-static"} <= set(with_its_kind("make"))
    assert with_its_kind("clang") == ("clang",)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone whose script only writes down what it was called with."""
    script = tmp_path / "scripts" / "install-packages.sh"
    script.parent.mkdir()
    script.write_text('echo "$@" > "$1/called"\n')
    monkeypatch.setattr(packages.paths, "import_root", lambda: tmp_path)
    monkeypatch.setattr(packages, "this_system", lambda: "debian")
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    monkeypatch.delenv("HIL_NO_SYSTEM_PACKAGES", raising=False)
    packages.packages()
    return tmp_path


def test_a_clone_installs_what_linux_needs_on_first_use(clone: Path) -> None:
    assert packages.install("qemu-user-static")
    assert (clone / "called").read_text() == f"{clone} {clone}/.hil/bootstrap.log . linux\n"


@pytest.mark.parametrize("package", ["cmake", "chromium", "gperf"])
def test_nothing_else_is_installed_behind_a_user_s_back(clone: Path, package: str) -> None:
    assert not packages.install(package)
    assert not (clone / "called").exists()


@pytest.mark.parametrize("reason", ["refused", "no apt", "no clone", "fails"])
def test_where_nothing_can_be_installed_the_tool_stays_missing(
    clone: Path, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason == "refused":
        monkeypatch.setenv("HIL_NO_SYSTEM_PACKAGES", "1")
    elif reason == "no apt":
        monkeypatch.setattr(packages, "this_system", lambda: "fedora")
    elif reason == "no clone":
        (clone / "scripts" / "install-packages.sh").unlink()
    else:
        (clone / "scripts" / "install-packages.sh").write_text("exit 3\n")
    assert not packages.install("qemu-user-static")
