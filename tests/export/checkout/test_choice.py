"""Protects what ``--exporter`` asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.export.checkout import selected_exporter
from harness.export.exporter import WHEEL, choose_exporter
from harness.firmware.choice import NoCheckout

from .conftest import Tree


@pytest.mark.parametrize("word", [None, "wheel"])
def test_the_wheel_exports_unless_asked(word: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also beside a checkout's firmware."""
    monkeypatch.setenv("EXECUTORCH_ROOT", "/e")
    choice = choose_exporter(word, Path("/c"))
    assert selected_exporter(choice) is None
    assert (choice == WHEEL) is (word is None), "the checkout may take its place"


def test_the_checkout_is_named_as_for_the_firmware(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EXECUTORCH_ROOT", "/e")
    assert choose_exporter("checkout", Path("/c")).root == Path("/c")
    assert choose_exporter("checkout", None).root == Path("/e")
    monkeypatch.delenv("EXECUTORCH_ROOT")
    (tmp_path / "pyproject.toml").write_text('[tool.hil]\nexecutorch = "x"\n')
    assert choose_exporter("checkout", None).root == tmp_path / "x"


def test_without_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EXECUTORCH_ROOT", raising=False)
    with pytest.raises(NoCheckout, match="--exporter checkout needs a checkout of ExecuTorch"):
        choose_exporter("checkout", None)


def test_found(tree: Tree) -> None:
    found = selected_exporter(choose_exporter("checkout", tree.root))
    assert found is not None
    assert found.root == tree.root
