"""Protects how a checkout is found to export with, and what is said of it."""

from __future__ import annotations

import shutil
from importlib import metadata
from pathlib import Path

import pytest

from harness.core.errors import InfraError, ToolMissing, UsageError
from harness.export.checkout import find_exporter
from harness.export.exporter import exporter_label

from .conftest import Tree

WHEEL = metadata.version("executorch")


def test_what_a_record_says(tree: Tree) -> None:
    found = find_exporter(tree.root)
    assert found.facts.commit == tree.git("rev-parse", "HEAD")
    assert (found.facts.branch, found.facts.dirty) == ("main", False)
    assert (found.facts.version, found.facts.compiled) == ("9.8.0", WHEEL)
    assert found.facts.notes == (f"exported with the compiled parts of the wheel {WHEEL}",)
    assert exporter_label(found.facts) == f"checkout {found.facts.commit[:8]}"
    assert exporter_label(None, WHEEL) == f"wheel {WHEEL}"


def test_an_edit_is_another_exporter(tree: Tree) -> None:
    before = find_exporter(tree.root)
    tree.write("exir/lowering.py", "STEP = 2\n")
    edited = find_exporter(tree.root)
    assert edited.versions["executorch"] != before.versions["executorch"]
    assert edited.versions["executorch"].startswith("9.8.0, sources ")
    assert exporter_label(edited.facts).endswith("+edits")


def test_the_compiled_parts_count(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    before = find_exporter(tree.root)
    installed = metadata.version

    def other(name: str) -> str:
        return "9.9" if name == "executorch" else installed(name)

    monkeypatch.setattr(metadata, "version", other)
    assert find_exporter(tree.root).versions != before.versions


@pytest.mark.parametrize("text", ['TORCH_VERSION = "1.2.3"\n', "TORCH_VERSION='1.2.3'\n"])
def test_a_pin_on_another_torch_is_noted(text: str, tree: Tree) -> None:
    """A note: whether it matters is found when it is imported."""
    tree.write("torch_pin.py", text)
    found = find_exporter(tree.root)
    torch = metadata.version("torch")
    assert found.pinned == "1.2.3"
    assert found.facts.notes[1:] == (
        f"exported with torch {torch}, the checkout is pinned to 1.2.3",
    )


@pytest.mark.parametrize("text", [None, "", "import sys; sys.exit(1)\n"])
def test_without_a_pin_there_is_no_note(text: str | None, tree: Tree) -> None:
    """And nothing of the checkout is run to find out."""
    if text is None:
        (tree.root / "torch_pin.py").unlink()
    else:
        tree.write("torch_pin.py", text)
    found = find_exporter(tree.root)
    assert (found.pinned, len(found.facts.notes)) == ("", 1)


def test_the_installed_torch_is_as_pinned(tree: Tree) -> None:
    """ "+cpu" is not another version."""
    base = metadata.version("torch").split("+")[0]
    tree.write("torch_pin.py", f'TORCH_VERSION = "{base}"\n')
    assert len(find_exporter(tree.root).facts.notes) == 1


def test_edited_while_it_exports(tree: Tree) -> None:
    found = find_exporter(tree.root)
    found.confirm()
    tree.write("backends/cortex_m/ops/op_add.cpp", "int kernel;\n")
    found.confirm()
    tree.write("exir/new.py", "")
    with pytest.raises(InfraError, match="changed while it exported"):
        found.confirm()


def test_what_is_not_a_checkout(tree: Tree, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a checkout of ExecuTorch"):
        find_exporter(tmp_path)


def test_a_copy_without_a_repository_exports_the_same(tree: Tree) -> None:
    before = find_exporter(tree.root)
    shutil.rmtree(tree.root / ".git")
    after = find_exporter(tree.root)
    assert (after.sources, after.environment) == (before.sources, before.environment)
    assert after.facts.commit.startswith("content ")
    assert not after.facts.dirty
    tree.write("exir/new.py", "")
    assert find_exporter(tree.root).facts.commit != after.facts.commit


def test_the_wheel_must_still_be_found(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its compiled parts are needed, and the harness reads its schemas."""
    monkeypatch.syspath_prepend(tree.root.parent)
    with pytest.raises(UsageError) as caught:
        find_exporter(tree.root)
    assert "--exporter checkout, which also needs the wheel" in str(caught.value.hint)


def test_nothing_installed(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(ToolMissing, match="'torch' is not installed"):
        find_exporter(tree.root)
