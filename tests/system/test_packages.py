"""Protects what a user of another system is told to install."""

from __future__ import annotations

import pytest

from harness.system import packages
from harness.system.packages import PURPOSES, how_to_get, purpose_of, system_in, with_its_kind
from harness.system.toolchain import SPECS

DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nID=debian\n'
MINT = "ID=linuxmint\nID_LIKE='ubuntu debian'\n"
ROCKY = 'ID="rocky"\nID_LIKE="rhel centos fedora"\n'


@pytest.mark.parametrize(
    ("text", "system"),
    [(DEBIAN, "debian"), (MINT, "ubuntu"), (ROCKY, "fedora"), ("ID=arch\n", None), ("", None)],
)
def test_the_system(text: str, system: str | None) -> None:
    assert system_in(text) == system


@pytest.mark.parametrize(
    ("system", "said"),
    [
        ("debian", "apt-get install ninja-build chromium"),
        ("ubuntu", "apt-get install ninja-build"),  # chromium is a snap there
        ("fedora", "dnf install ninja-build chromium"),
        (None, "Debian: apt-get install ninja-build chromium; Ubuntu: apt-get install ninja-build; "
               "Fedora: dnf install ninja-build chromium"),
    ],
)  # fmt: skip
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
    assert how_to_get("clang-format", "clang-tidy") == "dnf install clang-tools-extra"


def test_every_tool_has_its_package_in_the_list() -> None:
    assert {purpose_of(spec.package) for spec in SPECS.values()} <= set(PURPOSES)
    assert {package.purpose for package in packages.packages().values()} == set(PURPOSES)
    for spec in SPECS.values():
        if spec.required:
            assert purpose_of(spec.package) == "run"


def test_what_a_target_with_linux_needs_is_named_at_once() -> None:
    """And that only our own tests need chromium does not make anybody install it."""
    assert {"g++-aarch64-linux-gnu", "qemu-user-static"} <= set(with_its_kind("make"))
    assert with_its_kind("clang-format") == ("clang-format",)
