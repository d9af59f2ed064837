"""Protects whoever looks: nothing that a guest, a log or a file says acts on a terminal, on XML, on
HTML, on Markdown or on GitHub's log, whichever face shows it."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from rich.text import Text

import harness
from harness.cli.main import main
from harness.core.errors import UsageError
from harness.core.safe_text import as_markdown, counted, plain
from harness.log.parser import parse_console
from harness.report.safe_console import Terminal
from harness.report.size import render_page
from harness.size.anatomy import Anatomy, Part

# What a console may hold -> how it is told.
SAID = {
    "\x1b[31mred\x1b[0m": "red",
    "a\x1b]52;c;aGVsbG8=\x07b": "ab",  # OSC 52 writes the clipboard
    "a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "alink",
    "\x1bP1$r0m\x1b\\x": "x",  # DCS
    "\x1b_G;AAAA\x1b\\x": "x",  # APC: an image
    "\x1b^pm\x1b\\x": "x",
    "\x9d0;title\x9cx": "x",  # the same in eight bits
    "\x9b2Jx": "x",
    "\x1bcx": "x",  # reset
    "\x1b(0x": "x",
    "\x1b#8x": "x",
    "over\b\b\b\bhide": "over\\x08\\x08\\x08\\x08hide",
    "100 %\rPASS": "100 %\\x0dPASS",
    "bell\x07 nul\x00 del\x7f": "bell\\x07 nul\\x00 del\\x7f",
    "\x1b]0;never ends": "\\x1b]0;never ends",
    "\x1b\x1b[[31mx": "\\x1b31mx",
    "abc\u202egpj.exe": "abc\\u202egpj.exe",
    "half \ud800 \ufffe": "half \\ud800 \\ufffe",
    "caf\u00e9 \u2713\tok": "caf\u00e9 \u2713\tok",
    "::error::x": ": :error::x",
    "one\n  ::set-output name=a::b": "one\n  : :set-output name=a::b",
    "##[group]x ##vso[task.x]": "## [group]x ## vso[task.x]",
    "cortex_m::quantized_add.out": "cortex_m::quantized_add.out",
}


@pytest.mark.parametrize("text", SAID)
def test_what_is_shown_of_it(text: str) -> None:
    assert plain(text) == SAID[text]
    assert plain(plain(text)) == plain(text), "to ask twice must do no harm"


def _harmless(text: str) -> None:
    """For a terminal, for XML, and for the log of a CI system."""
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert not re.search(r"^\s*::|##\w*\[", text, re.MULTILINE)
    ElementTree.fromstring(ElementTree.tostring(_element(text)))


def _element(text: str) -> ElementTree.Element:
    element = ElementTree.Element("failure", message=text)
    element.text = text
    return element


def test_whatever_is_put_together() -> None:
    """Pieces of sequences in any order (seed 5)."""
    rng = random.Random(5)
    pieces = [
        "\x1b",
        "[",
        "]",
        "P",
        "\\",
        "31m",
        "\x07",
        "\x9b",
        "\x9c",
        "\b",
        "\r",
        "\n",
        "::",
        "##[",
        "error",
        " ",
        "\x00",
        "\ud800",
        "\uffff",
        "x",
        "\u2028",
        "#",
    ]
    for _ in range(20_000):
        text = "".join(rng.choice(pieces) for _ in range(rng.randint(1, 12)))
        said = plain(text)
        _harmless(said)
        assert plain(said) == said, text


EVIL = "\x1b]52;c;aGk=\x07\x1b[2J\x9b31m\b\b\r::error::pwned ##[group]"


def test_an_error_is_plain_wherever_it_is_shown() -> None:
    error = UsageError(f"no file {EVIL}\n::error::x", hint=EVIL)
    for text in (error.message, str(error), error.hint or ""):
        _harmless(text)


def test_a_console_is_plain_from_where_it_is_read() -> None:
    evil = EVIL.encode("latin-1")
    log = (
        b"::error::Hard fault "
        + evil
        + b"\nE [executorch:a.cpp:1 f()] "
        + evil
        + b" kernel 'a"
        + evil
        + b"' not found.\n"
        + b"Booting Linux on "
        + evil
        + b"\n"
        + evil
    )
    seen = parse_console(log)
    texts = [e.text for e in (*seen.failures, *seen.suspects)]
    texts += [v for e in seen.failures for v in e.facts.values()]
    texts += [seen.last_line, *(p.text for p in seen.progress)]
    assert len(texts) > 4
    for text in texts:
        _harmless(text)


@pytest.mark.parametrize("option", [[], ["--json"], ["--verbose"]])
def test_the_faces_of_a_judged_log(tmp_path: Path, option: list[str]) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"::error::Hard fault. irq=-13 " + EVIL.encode("latin-1") + b"\n")
    result = CliRunner().invoke(main, ["judge", str(log), *option])
    assert result.exit_code == 1
    _harmless(result.stdout)
    if option == ["--json"]:
        assert json.loads(result.stdout)["cause"]["kind"] == "hard_fault"


def test_a_table_is_plain(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever comes to a Terminal; its own styles are the only sequences."""
    terminal = Terminal(force_terminal=False)
    terminal.print(Text("  " + EVIL, style="red"), soft_wrap=True)
    said = capsys.readouterr().out
    assert not set(said) & set("\x1b\x07\x08\x9b\r")
    coloured = Terminal(force_terminal=True, color_system="standard")
    coloured.print(Text(EVIL, style="red"))
    said = capsys.readouterr().out
    assert said.count("\x1b") == 2, "on and off"


def test_a_page_and_markdown_are_plain() -> None:
    part = Part(("file", EVIL, "</script>"), 4)
    page = render_page(EVIL, Anatomy(kind="pte", total=4, parts=(part,)))
    assert not set(page) & set("\x1b\x07\x08\x9b\r")
    assert "</script></" not in page.replace(" ", "")
    said = as_markdown(f"a|b\n# <img> {EVIL} @all [x](y)")
    _harmless(said)
    assert "\n" not in said
    assert "\\|" in said
    assert "&lt;img&gt;" in said
    assert "\\[x\\]" in said


HOMES = {"cli/verb.py", "report/safe_console.py"}


def test_no_face_prints_on_its_own() -> None:
    """There is one way out for people, and it goes through ``plain``."""
    root = Path(harness.__path__[0])
    faces = [p for room in ("cli", "report", "size") for p in (root / room).glob("*.py")]
    assert len(faces) > 15
    for path in faces:
        if path.relative_to(root).as_posix() not in HOMES:
            found = re.findall(
                r"click\.s?echo\(|(?<![\w.])print\(|(?<!\w)Console\(", path.read_text()
            )
            assert not found, f"{path}: {found}"


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 models"), (1, "1 model"), (2, "2 models"), (1234, "1,234 models")]
)
def test_numbers(number: int, said: str) -> None:
    assert counted(number, "model") == said
