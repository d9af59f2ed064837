"""Reads a board's serial line: frames with numbers and checksums, and their damage. Pure.

The format is targets/runner/ports/serial_frames.h. Only frames after the beginning of the expected
run count: a board may have sent anything before, and an older program may still run while the next
one is flashed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

_MOST_LINE = 1024  # the longest frame has 417 bytes
_FRAME = re.compile(rb"@([0-9a-f]{4})([BLFX]) (.*) ([0-9a-f]{8})\r?", re.DOTALL)
_FILE = re.compile(rb"(s\d{1,4}-\d{1,4}\.bin) (\d{1,9}) (\d{1,9}) ((?:[0-9a-f]{2}){0,64})")
_BEGINS = b"@0000B "
_MOST_FILE = 64 << 20


class Frame(NamedTuple):
    """``kind``: B begins a run, L is a line of the log, F a part of a file, X the exit status."""

    number: int
    kind: str
    content: bytes


class LineDamaged(Exception):
    """Bytes were lost or changed; the message has the expected frame and the byte of the line."""


class BoardRestarted(Exception):
    """The board began again."""


class FrameReader:
    """One run of the program image ``run``. Bytes may come in pieces of any size."""

    def __init__(self, run: str) -> None:
        self.began = False
        self.other_run: str | None = None  # an image that the board ran instead
        self.received = 0  # bytes
        self.spoilt: int | None = None  # where the first frame before the beginning was damaged
        self._run = run.encode()
        self._rest = b""
        self._next = 0
        self._last_begin = False  # the line before was some run's beginning

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the run's frames, in order. Raises LineDamaged, BoardRestarted."""
        self._rest += data
        while b"\n" in self._rest:
            line, _, rest = self._rest.partition(b"\n")
            self._rest = rest
            frame = self._frame(line)
            self.received += len(line) + 1
            if frame is not None:
                yield frame
        if len(self._rest) > _MOST_LINE:
            self._damaged("no end of a frame in so many bytes")
            self.received += len(self._rest)
            self._rest = b""

    def _frame(self, line: bytes) -> Frame | None:
        # A board that is reset begins in the middle of a line.
        begin = line.find(_BEGINS, 1)
        frame = _parsed(line) or (_parsed(line[begin:]) if begin > 0 else None)
        if not self.began:
            if frame is None and line.startswith(b"@") and self.spoilt is None:
                self.spoilt = self.received
            return None if frame is None else self._before(frame)
        if frame is None:
            self._damaged("the checksum is not right")
        elif frame.number == (self._next - 1) & 0xFFFF:
            self._damaged("the frame before it came twice; does the line echo?")
        elif frame.kind == "B":
            raise BoardRestarted(f"frame {self._next - 1}")
        elif frame.number != self._next & 0xFFFF:
            self._damaged(f"frame {frame.number} came instead")
        self._next += 1
        return frame

    def _before(self, frame: Frame) -> Frame | None:
        follows, self._last_begin = self._last_begin, frame.kind == "B"
        if frame.kind == "B":
            self.began = frame.content == self._run
            self.other_run = None if self.began else frame.content.decode("ascii", "replace")
            self._next = 1
            return frame if self.began else None
        if frame.number == 1 and not follows:
            raise missing_beginning(self.received)
        return None

    def _damaged(self, problem: str) -> None:
        """Ignored before the beginning: a board may have sent anything."""
        if self.began:
            raise LineDamaged(f"frame {self._next} at byte {self.received}: {problem}")


def _parsed(line: bytes) -> Frame | None:
    match = _FRAME.fullmatch(line)
    if match is None or crc32(line[1 : match.end(3)]) != int(match[4], 16):
        return None
    return Frame(int(match[1], 16), match[2].decode(), match[3])


def missing_beginning(offset: int) -> LineDamaged:
    return LineDamaged(f"frame 0 at byte {offset}: the beginning of the run is missing")


def add_part(files: dict[str, bytes], content: bytes) -> None:
    """Add the part of an output file in a frame.

    Raises ValueError for a part that no runner sends."""
    match = _FILE.fullmatch(content)
    if match is None:
        raise ValueError("not a part of an output file")
    name, offset, size = match[1].decode(), int(match[2]), int(match[3])
    before = files.get(name, b"")
    files[name] = before + bytes.fromhex(match[4].decode())
    if offset != len(before) or len(files[name]) > size or size > _MOST_FILE:
        raise ValueError(f"{name}: bytes from {offset} of {size} do not follow")
