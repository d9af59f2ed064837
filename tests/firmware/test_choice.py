"""Protects the one place that decides whose firmware is run: the three ways to name a checkout,
which of them also asks for it, and what is said when none does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pytest

from harness.core.errors import Unknown, UsageError
from harness.firmware.choice import FirmwareChoice, NoCheckout, choose
from harness.firmware.names import firmware_words
from harness.firmware.source import FirmwareSource, source_named
from harness.plugin.options import OPTIONS

BUNDLED, EXECUTORCH = source_named("bundled"), source_named("executorch")
WHEEL = source_named("wheel")


class ChooseIn(Protocol):
    """``choose`` in a folder; ``variable``: $EXECUTORCH_ROOT."""

    def __call__(
        self,
        folder: Path,
        word: str | None,
        executorch: Path | None,
        parts: Sequence[str] = (),
        *,
        variable: str = "",
    ) -> FirmwareChoice: ...


@pytest.fixture
def choose_in(monkeypatch: pytest.MonkeyPatch) -> ChooseIn:
    def chosen(
        folder: Path,
        word: str | None,
        executorch: Path | None,
        parts: Sequence[str] = (),
        *,
        variable: str = "",
    ) -> FirmwareChoice:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("EXECUTORCH_ROOT", variable)
        return choose(word, executorch, parts)

    return chosen


def project(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("word", "option", "sources"),
    [
        (None, None, (BUNDLED,)),
        (None, "/c", (EXECUTORCH,)),
        ("bundled", "/c", (BUNDLED,)),
        ("executorch", None, (EXECUTORCH,)),
        ("executorch", "/c", (EXECUTORCH,)),
        ("both", "/c", (BUNDLED, EXECUTORCH)),
        ("wheel", "/c", (WHEEL,)),
        ("bundled+wheel", None, (BUNDLED, WHEEL)),
    ],
)
def test_only_the_command_line_asks_for_executorch(
    word: str | None,
    option: str | None,
    sources: tuple[FirmwareSource, ...],
    tmp_path: Path,
    choose_in: ChooseIn,
) -> None:
    """A variable that is set for other tools does not change what `hil run` runs."""
    root = None if option is None else Path(option)
    choice = choose_in(tmp_path, word, root, variable="/e")
    assert choice.sources == sources
    wanted = Path(option or "/e") if EXECUTORCH in sources else None
    assert choice.root == wanted


def test_every_face_takes_the_same_words() -> None:
    (option,) = (one for one in OPTIONS if one.name == "firmware")
    assert option.choices == firmware_words()


def test_the_command_line_before_the_environment_before_the_project(
    tmp_path: Path, choose_in: ChooseIn
) -> None:
    below = project(tmp_path, '[tool.hil]\nexecutorch = "src/executorch"\n') / "a" / "b"
    below.mkdir(parents=True)

    def root(option: Path | None, variable: str) -> Path | None:
        return choose_in(below, "both", option, variable=variable).root

    assert root(Path("/c"), "/e") == Path("/c")
    assert root(None, "/e") == Path("/e")
    assert root(None, "") == tmp_path / "src/executorch"


def test_the_nearest_project_that_says_it(tmp_path: Path, choose_in: ChooseIn) -> None:
    """One without a word of us inside another one is not the nearest."""
    project(tmp_path, '[tool.hil]\nexecutorch = "outer"\n')
    inner = project(tmp_path / "inner", "[tool.other]\nexecutorch = 1\n")
    assert choose_in(inner, "executorch", None, ()).root == tmp_path / "outer"
    project(inner, '[tool.hil]\nexecutorch = "/own"\n')
    assert choose_in(inner, "executorch", None, ()).root == Path("/own")


@pytest.mark.parametrize("word", ["executorch", "both"])
def test_without_a_checkout_the_three_ways_are_said(
    word: str, tmp_path: Path, choose_in: ChooseIn
) -> None:
    with pytest.raises(NoCheckout, match=f"--firmware {word} needs a checkout") as caught:
        choose_in(tmp_path, word, None, ())
    hint = str(caught.value.hint)
    assert all(way in hint for way in ("--executorch DIR", "$EXECUTORCH_ROOT", "[tool.hil]"))
    assert caught.value.facts["option"] == f"--firmware {word}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.hil\n", "is not TOML: "),
        ("[tool.hil]\nexecutorch = 3\n", "is not the path"),
        ('[tool.hil]\nexecutorch = ""\n', "is not the path"),
        ("[tool.hil.executorch]\nroot = 'x'\n", "is not the path"),
    ],
)
def test_a_malformed_project_is_named(
    tmp_path: Path, text: str, message: str, choose_in: ChooseIn
) -> None:
    project(tmp_path, text)
    with pytest.raises(UsageError, match=message) as caught:
        choose_in(tmp_path, "executorch", None, ())
    assert caught.value.path == str(tmp_path / "pyproject.toml")
    assert choose_in(tmp_path, None, None, ()).root is None  # nobody asked


def test_a_project_that_says_nothing_of_us(tmp_path: Path, choose_in: ChooseIn) -> None:
    project(tmp_path, "tool = 3\n")
    with pytest.raises(NoCheckout):
        choose_in(tmp_path, "executorch", None, ())


def test_parts_of_the_command_line_lie_over_those_of_the_settings(
    tmp_path: Path, choose_in: ChooseIn
) -> None:
    """Folders of the settings start at their file."""
    project(tmp_path, '[tool.hil]\nparts = ["cmsis-nn=/e/nn", "gflags=third_party/gflags"]\n')
    words = ("cmsis-nn=/c/nn", "json=/c/json")
    parts = choose_in(tmp_path, "both", tmp_path, words).parts
    assert parts == {
        "cmsis-nn": Path("/c/nn"),
        "gflags": tmp_path / "third_party/gflags",
        "json": Path("/c/json"),
    }


@pytest.mark.parametrize(
    ("words", "settings", "kind"),
    [
        (("cmsis-nn",), "", UsageError),
        (("cmsis_nn=/x",), "", Unknown),
        ((), "parts = ['nothing']", UsageError),
    ],
)
def test_a_malformed_part_is_wrong_usage(
    words: tuple[str, ...],
    settings: str,
    kind: type[UsageError],
    tmp_path: Path,
    choose_in: ChooseIn,
) -> None:
    project(tmp_path, f"[tool.hil]\n{settings}\n")
    with pytest.raises(kind):
        choose_in(tmp_path, "executorch", tmp_path, words)


def test_nothing_is_looked_for_when_only_the_bundled_runner_is_wanted() -> None:
    assert choose(None, None, ()).checkout() is None
