"""Protects what ``--exporter`` asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.export.exporter import WHEEL, choose_exporter
from harness.firmware.source import NoCheckout

from .conftest import Tree


@pytest.mark.parametrize("word", [None, "wheel"])
def test_the_wheel_exports_unless_asked(word: str | None, tmp_path: Path) -> None:
    """Also beside a checkout's firmware."""
    choice = choose_exporter(word, Path("/c"), environ={"EXECUTORCH_ROOT": "/e"})
    assert choice.find() is None
    assert (choice == WHEEL) is (word is None), "the checkout may take its place"


def test_the_checkout_is_named_as_for_the_firmware(tmp_path: Path) -> None:
    def root(option: str | None, environ: dict[str, str]) -> Path | None:
        named = None if option is None else Path(option)
        return choose_exporter("checkout", named, environ=environ, directory=tmp_path).root

    assert root("/c", {"EXECUTORCH_ROOT": "/e"}) == Path("/c")
    assert root(None, {"EXECUTORCH_ROOT": "/e"}) == Path("/e")
    (tmp_path / "pyproject.toml").write_text('[tool.hil]\nexecutorch = "x"\n')
    assert root(None, {}) == tmp_path / "x"


def test_without_a_checkout(tmp_path: Path) -> None:
    with pytest.raises(NoCheckout, match="--exporter checkout needs a checkout of ExecuTorch"):
        choose_exporter("checkout", None, environ={}, directory=tmp_path)


def test_found(tree: Tree) -> None:
    found = choose_exporter("checkout", tree.root).find()
    assert found is not None
    assert found.root == tree.root
