"""Protects what is made of a log as a whole: messages that belong together, and links that failed
without a message."""

from __future__ import annotations

import pytest

from harness.link.build_failure import build_failure
from harness.link.failure import FailureKind, LinkCause
from harness.link.log.parse import parse
from tests.link.log.reading import LINK_FAILED, only


def test_interleaved_links_keep_their_functions_apart() -> None:
    text = """\
[10/12] Linking CXX executable one.elf
ld: one.dir/alpha.c.obj: in function `first':
ld: two.dir/beta.c.obj: in function `second':
/src/alpha.c:1: undefined reference to `a'
[11/12] Building C object other.c.obj
/src/beta.c:2: undefined reference to `b'
"""
    one, two = parse(text).failures
    assert (one.places[0].object, one.places[0].function) == ("one.dir/alpha.c.obj", "first")
    assert (two.places[0].object, two.places[0].function) == ("two.dir/beta.c.obj", "second")


def test_every_use_of_one_symbol_is_one_failure() -> None:
    text = """\
main.o: In function `main':
/h/main.c:20: undefined reference to `foo'
/h/main.c:22: undefined reference to `foo'
main.o:/h/main.c:24: more undefined references to `foo' follow
"""
    failure = only(text)
    assert [place.line for place in failure.places] == [20, 22, 24]


@pytest.mark.parametrize(
    "text",
    [
        "ld: warning: undefined reference to `w'",
        "closer.c:(.text+0xc): warning: _close is not implemented and will always fail",
        "[1/2] Building C object undefined.c.obj\nmain.c:3: error: expected ';'",
        "Warning: L6314W: No section matches pattern *(x).",
        "",
    ],
)
def test_what_is_not_a_link_failure_is_none(text: str) -> None:
    assert not parse(text).failures


@pytest.mark.parametrize(
    ("text", "linked", "stopped"),
    [
        ("", False, False),
        ("\x00\xb3\x1f random \x07\x99 bytes \ufffd", False, False),
        ("hello\nworld", False, False),
        ("make: *** No rule to make target 'x.elf'.  Stop.", False, True),
        ("main.c:3:5: error: expected ';'\nninja: build stopped: subcommand failed.", False, True),
        ("[3/3] Linking CXX executable x.elf\nFAILED: y.bin\nninja: build stopped", True, True),
        ("arm-none-eabi-gcc -c a.c -o a.o", False, False),
        ("arm-none-eabi-gcc -mcpu=cortex-m55 a.o -o x.elf", True, False),
        ("[1/1] Linking C executable x.elf", True, False),
        ("[19/141] Linking C static library libapp.a", False, False),  # a log that was cut
        ("[ 40%] Built target core", False, False),
        ("[100%] Built target x.elf", True, False),
        ("fatal: not a git repository: .git\n[100%] Built target x.elf", True, False),
        ("fatal: No names found, cannot describe anything.", False, False),
        ("Error: 0, warnings: 3", False, False),
        ("/bin/sh: 1: doxygen: not found\n[100%] Built target x.elf", True, False),
        (
            'linking...\nProgram Size: Code=1 RO-data=2\n"x.axf" - 0 Error(s), 0 Warning(s).',
            True,
            False,
        ),
        ("Finished: 0 information, 2 warning and 0 error messages.", True, False),
        (
            "Memory region         Used Size  Region Size  %age Used\n FLASH: 1 KB 2 KB 50.00%",
            True,
            False,
        ),
    ],
)
def test_whether_a_log_shows_a_link_that_went_well(text: str, linked: bool, stopped: bool) -> None:
    """What cannot be recognised is not green."""
    parsed = parse(text)
    assert not parsed.failures
    assert (parsed.linked, build_failure(text) is not None) == (linked, stopped)


def test_fatal_warnings_are_failures_when_nothing_else_is() -> None:
    text = "ld: warning: undefined reference to `w'\n" + LINK_FAILED
    assert parse(text).failures[0].symbol == "w"


@pytest.mark.parametrize(
    "gave_up",
    [
        "collect2: Fehler: ld gab 1 als Ende-Status zur\u00fcck",
        "collect2: erreur: ld a retourn\u00e9 le statut de sortie 1",
        "collect2: b\u0142\u0105d: ld zwr\u00f3ci\u0142 1 kod wyj\u015bcia",
        "collect2: \u9519\u8bef\uff1ald \u8fd4\u56de 1",
        "collect2: ld returned 1 exit status",
        "Finished: 0 information, 0 warning, 0 error and 1 fatal error messages.",
    ],
)
def test_a_link_that_failed_is_known_in_every_language(gave_up: str) -> None:
    assert parse(f"{gave_up}\n").failed
    failure = only(f"/x/arm-none-eabi-ld: Der Stapel passt nicht\n{gave_up}")
    assert failure.attribute == "Der Stapel passt nicht"


def test_what_lld_suggests_is_no_place() -> None:
    text = (
        "ld.lld: error: undefined symbol: one\n>>> referenced by a.c:1\n>>>       a.o:(f)\n"
        ">>> did you mean: two\n>>> defined in: b.o\n"
    )
    assert [p.object for p in only(text).places] == ["a.o"]


def test_the_exit_status_stands_for_the_drivers_words() -> None:
    """A linker called by us has no driver to say that it failed; nothing is put into its mouth."""
    said = "/x/ld: The heap does not fit: 12 bytes\n"
    assert not parse(said).failed
    assert [f.kind for f in parse(said, failed=True).failures] == [FailureKind.UNKNOWN]
    (silent,) = parse("", failed=True).failures
    assert (silent.kind, silent.line) == (FailureKind.UNKNOWN, 1)
    assert silent.text == "the linker failed and said nothing"


def test_what_repeats_a_reason_is_not_a_failure_of_its_own() -> None:
    repeat = "ld: failed to merge target specific data of file a.o\n"
    reason = "ld: error: a.o uses VFP register arguments, x.elf does not\n"
    assert only(repeat).attribute == "object attributes"
    assert only(reason + repeat).attribute == "VFP"
    assert len(parse(reason + repeat.replace("a.o", "b.o")).failures) == 2


@pytest.mark.parametrize(
    ("text", "cause_kind"),
    [
        (
            "libm.so.6: error adding symbols: DSO missing from command line",
            LinkCause.LIBRARY_NOT_LINKED,
        ),
        ("lib.a: error adding symbols: archive has no index; run ranlib", LinkCause.NO_INDEX),
        ("lib.a: error adding symbols: malformed archive", None),
        (
            "ld: internal error: symbol index out of range\n" + LINK_FAILED,
            LinkCause.LINKER_DEFECT,
        ),
    ],
)
def test_a_cause_that_a_message_states_is_kept_as_data(
    text: str, cause_kind: LinkCause | None
) -> None:
    assert only(text).cause_kind is cause_kind
