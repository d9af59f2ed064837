"""Protects a case's name when its target is named by the path of its file, as a user's may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.case import Case, located, parse_case
from harness.config.case_budgets import budgets_of
from harness.config.loading import load_target, loadable_name
from harness.core.errors import UsageError
from harness.judge.reference import reference_path

TARGET = "extends: corstone-300-u55-128\ndescription: mine\n"


@pytest.mark.parametrize(
    ("text", "target", "board", "model"),
    [
        ("host/add", "host", "host", "add"),
        ("host/models/add.py", "host", "host", "models/add.py"),
        ("u55@Sram_Only/add", "u55@Sram_Only", "u55@Sram_Only", "add"),
        ("boards/mine.yaml/add", "boards/mine.yaml", "mine", "add"),
        ("/a/mine.yaml@Sram_Only/add", "/a/mine.yaml@Sram_Only", "mine@Sram_Only", "add"),
    ],
)
def test_the_parts_of_a_case(text: str, target: str, board: str, model: str) -> None:
    case = parse_case(text)
    assert (case.target, case.board) == (target, board)
    assert case.id == f"{board}/{case.name}"
    assert case.model == model
    assert reference_path(Path("r"), Case(target, "add")) == Path(f"r/{board}/add.json")


@pytest.mark.parametrize("text", ["", "host", "host/", "/add", "boards/mine.yaml/"])
def test_what_is_not_a_case(text: str) -> None:
    with pytest.raises(UsageError, match="is not a case"):
        parse_case(text)


def test_a_target_of_a_file_is_found_again_from_every_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.yaml").write_text(TARGET)
    monkeypatch.chdir(tmp_path)
    for said, spelt in (
        ("mine.yaml", "mine.yaml"),
        ("mine.yaml@Sram_Only", "mine.yaml@Sram_Only"),
        ("host", "host"),
        ("corstone-300-u55-128@Shared_Sram", None),
    ):
        target = load_target(said)
        again = loadable_name(target, said)
        assert again == (str(tmp_path / spelt) if spelt and ".yaml" in spelt else target.name)
        monkeypatch.chdir("/")
        assert load_target(again).name == target.name == Case(again, "add").board
        assert budgets_of(Case(again, "add"))
        monkeypatch.chdir(tmp_path)


def test_a_file_is_looked_for_here_and_then_in_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.yaml").write_text(TARGET)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert located("mine.yaml", tmp_path) == str(tmp_path / "mine.yaml")
    assert located("other.yaml", tmp_path) == "other.yaml"
    assert located("host", tmp_path) == "host"


@pytest.mark.parametrize("name", ["x\n::error title=planted::hello", "x\x1b[2J", "x\u2028y"])
def test_a_name_that_a_terminal_or_a_ci_system_would_obey_is_refused(name: str) -> None:
    """A stranger's record may have one; a CI system runs what stands at the start of a line."""
    for case in (("host", name), ("host", "add", name), (name, "add")):
        with pytest.raises(UsageError, match="has control characters") as caught:
            Case(*case)
        assert name not in str(caught.value)


def test_a_model_outside_a_repository_is_shown_by_a_short_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its identity stays the whole path."""
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "sr.py").write_text("")
    case = Case("corstone-300-m55", str(tmp_path / "nets" / "sr.py"))
    monkeypatch.chdir(tmp_path)
    assert case.title == "corstone-300-m55/nets/sr.py"
    monkeypatch.chdir("/")
    assert case.title.endswith("/nets/sr.py")
    monkeypatch.chdir(tmp_path / "nets")
    assert case.title == "corstone-300-m55/sr.py"
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert case.title == "corstone-300-m55/sr.py"
    assert case.id == f"corstone-300-m55/{tmp_path}/nets/sr.py"
