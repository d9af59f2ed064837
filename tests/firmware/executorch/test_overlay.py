"""Protects that a build finds a checkout and its parts where ExecuTorch's CMake looks for them, by
links that follow what is there, and that what it writes beside its sources is in a copy."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness.firmware.checkout import Checkout, specs
from harness.firmware.executorch.overlay import Overlay, lay
from tests.firmware.executorch.conftest import Source
from tests.firmware.executorch.small import commit, edit, sdk_platform


@pytest.fixture
def board(tmp_path: Path) -> Path:
    (tmp_path / "board").mkdir()
    return tmp_path / "board"


def laid(small: Source, board: Path | None) -> Overlay:
    return lay(small.find(), small.folder / "tree", board)


def same(link: Path, target: Path) -> bool:
    return link.resolve() == target.resolve()


def test_all_is_where_it_is_looked_for(read_only: Source, board: Path) -> None:
    overlay = laid(read_only, board)
    assert overlay.checkout.name == "executorch"
    for name in ("CMakeLists.txt", "backends", "third-party/CMakeLists.txt", "version.txt"):
        assert same(overlay.checkout / name, read_only.root / name)
    for name, part in read_only.find().parts.items():
        place = specs()[name].place
        if name != "flatcc":
            at = overlay.checkout if place.startswith("third-party") else overlay.sdk
            assert same(at / place.removeprefix("examples/arm/arm-scratch/ethos-u/"), part.folder)
    for name in ("corstone-300", "corstone-320"):
        assert same(overlay.sdk / "core_platform" / "targets" / name, board)


def test_the_repository_is_left_out(read_only: Source, board: Path) -> None:
    """CMake that asks git would lock the index of the user's."""
    assert not (laid(read_only, board).checkout / ".git").exists()


def test_it_follows_the_checkout(small: Source, board: Path) -> None:
    """Files come and go with branches, and parts are given elsewhere."""
    overlay = laid(small, board)
    (small.root / "docs").rename(small.root / "documents")
    moved = small.parts["json"].rename(small.folder / "json")
    again = lay(small.find(json=moved), small.folder / "tree", board)
    assert again == overlay
    assert not os.path.lexists(overlay.checkout / "docs")
    assert same(overlay.checkout / "documents", small.root / "documents")
    assert same(overlay.checkout / "third-party" / "json", moved)


def test_links_that_are_right_stay(read_only: Source, board: Path) -> None:
    """Their times are none of ninja's business, but a link that is gone for a moment would be."""
    overlay = laid(read_only, board)

    def numbers() -> dict[Path, int]:
        return {path: path.lstat().st_ino for path in overlay.checkout.parent.rglob("*")}

    before = numbers()
    laid(read_only, board)
    assert numbers() == before


def test_flatcc_is_a_copy_without_what_was_built_there(small: Source, board: Path) -> None:
    mine = small.parts["flatcc"]
    for name in ("lib", "build", "src/lib"):
        (mine / name).mkdir()
        (mine / name / "x").write_text("")
    copy = laid(small, board).checkout / "third-party" / "flatcc"
    assert not copy.is_symlink()
    assert (copy / "include/flatcc/flatcc.h").read_bytes() == (
        mine / "include/flatcc/flatcc.h"
    ).read_bytes()
    assert not (copy / "lib").exists()
    assert not (copy / "build").exists()
    assert (copy / "src" / "lib" / "x").is_file()
    assert not (copy / ".git").exists()


def test_the_copy_is_kept_and_follows_its_source(small: Source, board: Path) -> None:
    copy = laid(small, board).checkout / "third-party" / "flatcc"
    (copy / "lib").mkdir()
    laid(small, board)
    assert (copy / "lib").is_dir()
    edit(small.parts["flatcc"] / "src" / "runtime.c", "return 1", "return 2")
    commit(small.parts["flatcc"], "two")
    laid(small, board)
    assert "return 2" in (copy / "src" / "runtime.c").read_text()
    assert not (copy / "lib").exists()


def test_a_copy_that_was_killed_is_made_again(read_only: Source, board: Path) -> None:
    """Even when the part is back at what it was: A, then B half copied, then A again."""
    overlay = laid(read_only, board)
    copy, stamp = (overlay.checkout / "third-party" / n for n in ("flatcc", ".flatcc.identity"))
    wanted = sorted(path.relative_to(copy) for path in copy.rglob("*"))
    stamp.unlink()  # which is done first
    shutil.rmtree(copy / "src")
    laid(read_only, board)
    assert sorted(path.relative_to(copy) for path in copy.rglob("*")) == wanted
    assert stamp.is_file()


def with_sdk(small: Source) -> Checkout:
    return small.find(core_platform=sdk_platform(small.folder / "sdk"))


def test_the_sdks_own_platform_is_there_as_a_whole(read_only: Source) -> None:
    """Its targets include what lies beside them, and beside core_platform."""
    checkout = with_sdk(read_only)
    beside = read_only.folder / "sdk" / "core_software"
    (beside / "core_driver").mkdir(parents=True)
    (beside / "common.cmake").write_text("")
    overlay = lay(checkout, read_only.folder / "tree", None)
    board = overlay.sdk / "core_platform" / "targets" / "corstone-300"
    for name in ("CMakeLists.txt", "../common/startup.cpp", "../../../core_software/common.cmake"):
        assert (board / name).is_file()
    assert same(board / "../../../core_software/core_driver", read_only.parts["core_driver"])
    assert same(overlay.sdk / "core_software" / "common.cmake", beside / "common.cmake")
    driver = overlay.sdk / "core_software" / "core_driver"
    assert same(driver, read_only.parts["core_driver"]), "the given one, not the SDK's"


def test_the_sdks_platform_alone(read_only: Source) -> None:
    checkout = with_sdk(read_only)
    overlay = lay(checkout, read_only.folder / "tree", None)
    names = {path.name for path in (overlay.sdk / "core_software").iterdir()}
    assert names == {"core_driver", "cmsis_6", "cmsis-nn"}
