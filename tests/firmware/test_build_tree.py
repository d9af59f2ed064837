"""A build that was cancelled goes on where it stopped, if ninja can see all that changed since."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from harness.firmware.build_tree import BuildTree, SourcesChanged


@pytest.fixture
def tree(tmp_path: Path) -> BuildTree:
    source = tmp_path / "a.cpp"
    source.write_text("int a;")
    place = tmp_path / "place"
    (place / "build").mkdir(parents=True)
    return BuildTree(place, ["facts"], lambda: [source])


def cancelled(tree: BuildTree, edit: bool = False) -> None:
    """Builds half."""
    with suppress(KeyboardInterrupt), tree.building(SourcesChanged("it")) as usable:
        assert not usable
        (tree.folder / "build.ninja").write_text("# configured")
        (tree.folder / "half.o").touch()
        if edit:
            (tree.place.parent / "a.cpp").write_text("int b;")
        raise KeyboardInterrupt


def test_a_cancelled_build_goes_on(tree: BuildTree) -> None:
    cancelled(tree)
    with tree.building(SourcesChanged("it")) as usable:
        assert usable
        assert (tree.folder / "half.o").exists()


def test_sources_edited_after_the_cancellation_are_built_anew_by_ninja(tree: BuildTree) -> None:
    cancelled(tree)
    (tree.place.parent / "a.cpp").write_text("int b;")
    with tree.building(SourcesChanged("it")) as usable:
        assert usable


def test_sources_edited_during_the_build_begin_anew(tree: BuildTree) -> None:
    """Ninja might take an object that was compiled meanwhile for a new one."""
    cancelled(tree, edit=True)
    with tree.building(SourcesChanged("it")) as usable:
        assert not usable
        assert not (tree.folder / "half.o").exists()


def test_a_source_with_an_old_time_begins_anew(tree: BuildTree) -> None:
    cancelled(tree)
    source = tree.place.parent / "a.cpp"
    source.write_text("int b;")
    os.utime(source, (1, 1))
    with tree.building(SourcesChanged("it")) as usable:
        assert not usable


class Killed(BaseException):
    """Nothing runs after it in a process that was killed."""


@pytest.mark.parametrize("edit", [False, True])
def test_a_killed_build_goes_on_if_nothing_was_edited(tree: BuildTree, edit: bool) -> None:
    """On a busy machine an interrupt ends before all sources of a checkout are looked at."""
    with suppress(Killed), tree.building(SourcesChanged("it")):
        (tree.folder / "build.ninja").write_text("# configured")
        raise Killed
    if edit:  # perhaps while it was compiled
        (tree.place.parent / "a.cpp").write_text("int b;")
    with tree.building(SourcesChanged("it")) as usable:
        assert usable != edit
