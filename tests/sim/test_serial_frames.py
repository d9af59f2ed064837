"""The frames of a board's serial line: what is taken, and what is told of damaged bytes."""

from __future__ import annotations

from zlib import crc32

import pytest

from harness.sim.serial_frames import (
    BoardRestarted,
    Frame,
    FrameReader,
    LineDamaged,
    add_part,
)

RUN = "0123456789abcdef"


def frame(number: int, kind: str, content: str) -> bytes:
    body = f"{number:04x}{kind} {content}".encode()
    return b"@%b %08x\n" % (body, crc32(body))


BEGIN = frame(0, "B", RUN)
ONE, TWO = frame(1, "L", "one"), frame(2, "L", "two")


def read(*pieces: bytes) -> list[Frame]:
    reader = FrameReader(RUN)
    return [found for piece in pieces for found in reader.feed(piece)]


def test_bytes_may_come_in_any_pieces() -> None:
    whole = BEGIN + ONE + frame(2, "X", "0")
    expected = [
        Frame(0, "B", RUN.encode()),
        Frame(1, "L", b"one"),
        Frame(2, "X", b"0"),
    ]
    assert read(whole) == expected
    assert read(*(whole[i : i + 1] for i in range(len(whole)))) == expected
    assert read(whole.replace(b"\n", b"\r\n")) == expected


def test_what_stands_before_the_beginning_is_not_looked_at() -> None:
    """A boot loader, noise, the end of an older run, and another program that still runs."""
    older = frame(0, "B", "f" * 16) + frame(1, "L", "old") + frame(9, "X", "0")
    assert len(read(b"\x00\xffU-Boot 2026\r\n" + older + b"x" * 5000, b"\n" + BEGIN + ONE)) == 2
    assert len(read(b"cut@0001" + BEGIN + ONE)) == 2  # reset in the middle of a line


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (ONE.replace(b"one", b"onf") + TWO, "frame 1 at byte 33: the checksum is not right"),
        (b"junk\n", "frame 1 at byte 33: the checksum is not right"),
        (TWO, "frame 1 at byte 33: frame 2 came instead"),
        (ONE + ONE, "frame 2 at byte 53: the frame before it came twice; does the line echo?"),
        (BEGIN, "frame 1 at byte 33: the frame before it came twice; does the line echo?"),
        (b"x" * 1100, "frame 1 at byte 33: no end of a frame in so many bytes"),
    ],
)
def test_damage_is_reported_with_frame_and_offset(line: bytes, text: str) -> None:
    with pytest.raises(LineDamaged) as error:
        read(BEGIN + line)
    assert str(error.value) == text


def test_a_changed_bit_anywhere_is_found() -> None:
    """Behind the beginning nothing is taken that did not come as it was sent."""
    for position in range(len(ONE + TWO)):
        for bit in range(8):
            changed = bytearray(ONE + TWO)
            changed[position] ^= 1 << bit
            with pytest.raises(LineDamaged):
                read(BEGIN + bytes(changed) + frame(3, "X", "0"))


def test_a_beginning_that_is_missing_is_damage() -> None:
    with pytest.raises(LineDamaged, match="frame 0 at byte 5: the beginning of the run is missing"):
        read(b"@000\n" + ONE)


def test_where_the_beginning_was_spoilt() -> None:
    reader = FrameReader(RUN)
    assert not list(reader.feed(b"boot\n" + BEGIN.replace(b"B", b"b")))
    assert reader.spoilt == 5


@pytest.mark.parametrize("cut", [b"", b"@0002L hal"])
def test_a_board_that_begins_again_is_reported(cut: bytes) -> None:
    with pytest.raises(BoardRestarted, match="frame 1"):
        read(BEGIN + ONE + cut + BEGIN)


def test_another_program_is_reported() -> None:
    reader = FrameReader(RUN)
    assert not list(reader.feed(frame(0, "B", "none") + ONE))
    assert reader.other_run == "none"


def test_numbers_start_over_after_65535() -> None:
    lines = b"".join(frame(number & 0xFFFF, "L", "") for number in range(1, 65540))
    assert len(read(BEGIN + lines)) == 65540


def test_files_are_put_together() -> None:
    files: dict[str, bytes] = {}
    add_part(files, b"s0-0.bin 0 66 " + b"01" * 64)
    add_part(files, b"s0-0.bin 64 66 0203")
    add_part(files, b"s1-0.bin 0 0 ")
    assert files == {"s0-0.bin": b"\x01" * 64 + b"\x02\x03", "s1-0.bin": b""}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"../../etc/passwd 0 1 00", "not a part of an output file"),
        (b"board.json 0 1 00", "not a part of an output file"),
        (b"s0-0.bin 1 2 00", "s0-0.bin: bytes from 1 of 2 do not follow"),
        (b"s0-0.bin 0 1 0000", "s0-0.bin: bytes from 0 of 1 do not follow"),
        (b"s0-0.bin 0 999999999 00", "do not follow"),
    ],
)
def test_what_no_runner_sends_is_not_a_file(content: bytes, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        add_part({}, content)
