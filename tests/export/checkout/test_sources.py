"""Protects what stands for a checkout's exporter: every change that an export can see, and none
that it cannot."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness.export.checkout import ExporterIncomplete, read_sources

from .conftest import Tree


def identity(tree: Tree) -> str:
    return read_sources(tree.root).identity()


SEEN = {
    "an edit": ("exir/lowering.py", "STEP = 2\n"),
    "a new file": ("backends/arm/new.py", ""),
    "a new list of operators": ("backends/cortex_m/ops/operators.yaml", "- func: other\n"),
    "the version": ("version.txt", "9.9.0\n"),
}
UNSEEN = {
    "a kernel": ("backends/cortex_m/ops/op_add.cpp", "int sub;\n"),
    "a new kernel": ("backends/cortex_m/ops/op_sub.cpp", "int sub;\n"),
    "a script beside the packages": ("tools/build.py", "1\n"),
    "an ignored file": ("exir/compiled.so", "1\n"),
    "a kind that no wheel carries": ("extension/data.json", "{1}"),
}


@pytest.mark.parametrize("what", SEEN)
def test_what_an_export_can_see(what: str, tree: Tree) -> None:
    before = identity(tree)
    tree.write(*SEEN[what])
    edited = identity(tree)
    assert edited != before
    assert read_sources(tree.root).edited == (SEEN[what][0],)
    tree.commit()
    assert identity(tree) == edited, "the same content is the same exporter, committed or not"
    assert read_sources(tree.root).edited == ()


@pytest.mark.parametrize("what", UNSEEN)
def test_what_it_cannot_see(what: str, tree: Tree) -> None:
    """So that after an edited kernel, or between commits of kernels, nothing is exported again."""
    before = identity(tree)
    tree.write(*UNSEEN[what])
    assert identity(tree) == before
    tree.git("add", "-A", "-f")
    tree.git("commit", "-qm", "x", "--allow-empty")
    assert identity(tree) == before


def test_a_deleted_file(tree: Tree) -> None:
    before = identity(tree)
    (tree.root / "exir/lowering.py").unlink()
    assert identity(tree) != before
    assert "exir/lowering.py" not in read_sources(tree.root).files


def test_a_pipe_is_not_read(tree: Tree) -> None:
    """It would wait for ever."""
    (tree.root / "exir/lowering.py").unlink()
    os.mkfifo(tree.root / "exir/lowering.py")
    assert "exir/lowering.py" not in read_sources(tree.root).files


def test_a_link_to_elsewhere_is_what_it_shows(tree: Tree, tmp_path: Path) -> None:
    """As Python reads it."""
    (tmp_path / "elsewhere.py").write_text("STEP = 1\n")
    (tree.root / "exir/new.py").symlink_to(tmp_path / "elsewhere.py")
    before = identity(tree)
    (tmp_path / "elsewhere.py").write_text("STEP = 2\n")
    assert identity(tree) != before


def test_wherever_it_lies(tree: Tree, tmp_path: Path) -> None:
    shutil.copytree(tree.root, tmp_path / "copy")
    assert read_sources(tmp_path / "copy").identity() == identity(tree)


@pytest.mark.parametrize("name", ["exir/__init__.py", "schema/program.fbs", "version.txt"])
def test_a_missing_piece_is_named(name: str, tree: Tree) -> None:
    (tree.root / name).unlink()
    with pytest.raises(ExporterIncomplete, match=f"the checkout has no {name}") as caught:
        read_sources(tree.root)
    assert caught.value.facts == {"missing": name, "path": str(tree.root)}
    assert "git -C" in str(caught.value.hint)
