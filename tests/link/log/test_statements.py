"""Protects that a message is read as one statement however its log wrapped it, at the place
where the user can mend it, and in the words of GCC."""

from __future__ import annotations

import pytest

from harness.link.log.lines import lines_of
from harness.link.log.statements import Statement, statements_of

_BLOCK = """\
CMake Error at {file}:12 (message):
  The board has
  no overlay.
Call Stack (most recent call first):
  /z/cmake/modules/boards.cmake:9 (include)
  /app/nn.cmake:7 (find_board)
  /app/CMakeLists.txt:3 (include)
  /app/CMakeLists.txt:2 (find_package)
-- Configuring incomplete
"""


def _statements(log: str, *words: str) -> list[Statement]:
    return list(statements_of(lines_of(log), words))


@pytest.mark.parametrize(
    ("file", "place"),
    [
        ("/app/sub/CMakeLists.txt", ("/app/sub/CMakeLists.txt", 12)),
        ("/z/cmake/modules/dts.cmake", ("/app/CMakeLists.txt", 3)),
    ],
    ids=("the user's", "Zephyr's own"),
)
def test_a_block_of_cmakes_is_at_the_outermost_caller(file: str, place: tuple[str, int]) -> None:
    (block,) = _statements(_BLOCK.format(file=file))
    assert block.text == f"CMake Error at {file}:12 (message): The board has no overlay."
    assert (block.file, block.at) == place


def test_what_only_find_package_calls_has_no_place() -> None:
    own = ("  /app/nn.cmake:7 (find_board)\n", "  /app/CMakeLists.txt:3 (include)\n")
    log = _BLOCK.format(file="/z/cmake/modules/dts.cmake")
    (block,) = _statements(log.replace(own[0], "").replace(own[1], ""))
    assert (block.file, block.at) == (None, None)


def test_a_block_of_a_build_within_a_build() -> None:
    (block,) = _statements("  CMake Error at a.cmake:1 (if):\n    One\n    word.\n  -- Done\n")
    assert block.text == "CMake Error at a.cmake:1 (if): One word."


@pytest.mark.parametrize(
    "end", ["\n", "error: another\n", "-- Found Dtc\n", "CMake Error at a.cmake:1 (if):\n"]
)
def test_a_paragraph_ends_where_another_message_begins(end: str) -> None:
    """A word that was broken behind its hyphen is whole."""
    log = f"warning: NPU has a non-\nbool type, in\n/a/Kconfig\n{end}more: \n"
    first, *_ = _statements(log)
    assert first == Statement(1, "warning: NPU has a non-bool type, in /a/Kconfig")


def test_a_traceback_ends_at_its_exception() -> None:
    log = "Traceback (most recent call last):\n  File 'a'\nKeyError: 'npu'\nValueError: 1\n"
    first, second = _statements(log)
    assert first.text.endswith("File 'a' KeyError: 'npu'")
    assert second == Statement(4, "ValueError: 1")
    (endless,) = _statements("Traceback (most recent call last):\n  File 'a'\n  File 'b'\n")
    assert endless.text == "Traceback (most recent call last):"


def test_of_other_lines_only_those_with_a_word() -> None:
    log = "one\ntwo words\nthree\n"
    assert _statements(log) == []
    assert _statements(log, "word") == [Statement(2, "two words")]


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        (
            '"src/dsp.c",41  Error[Pe020]: identifier "taps" is undefined',
            'src/dsp.c:41: error: identifier "taps" is undefined',
        ),
        (
            "Fatal Error[Pe035]: #error directive: no FPU D:\\my app\\port.c 79",
            "D:\\my app\\port.c:79: error: #error no FPU",
        ),
        (
            '"src/dsp.c", line 3: Error:  #5: cannot open source input file "dsp.h": '
            "No such file or directory",
            "src/dsp.c:3: error: dsp.h: No such file or directory",
        ),
        (
            "src/dsp.c:3:10: fatal error: 'taps.h' file not found",
            "src/dsp.c:3:10: fatal error: taps.h: No such file or directory",
        ),
        ("device tree error: nn", "devicetree error: nn"),
    ],
    ids=("IAR", "IAR's window", "armcc", "clang", "Zephyr before 2.2"),
)
def test_other_words_than_gccs(printed: str, text: str) -> None:
    (statement,) = _statements(f"{printed}\n")
    assert statement.text == text
