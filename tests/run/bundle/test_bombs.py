"""A small bundle cannot take much memory: each bomb is refused in one line, in a process whose peak
is measured."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from harness.run.bundle import FORMAT, MANIFEST, sha256

BIG = 900 << 20
MOST_KB = 200 << 10
_BLOCK = 128 << 10  # the most that a block of a frame may hold (RFC 8878, 3.1.1.2.3)

CHILD = """\
import sys
from pathlib import Path
from harness.core.errors import HarnessError
from harness.run.bundle import read_bundle, unpack
bundle, root = Path(sys.argv[1]), Path(sys.argv[2])
try:
    read_bundle(bundle, root, unpack(bundle, root))
    said = "accepted"
except HarnessError as error:
    said = error.message
status = Path("/proc/self/status").read_text()
(peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
print(peak, said)
"""


class Frame:
    """Zstandard by hand: raw blocks, and blocks of one repeated byte, which take four bytes."""

    def __init__(self) -> None:
        self.blocks: list[tuple[int, int, bytes]] = []  # type, size, content

    def add(self, data: bytes) -> Frame:
        for at in range(0, len(data), _BLOCK):
            piece = data[at : at + _BLOCK]
            self.blocks.append((0, len(piece), piece))
        return self

    def zeros(self, size: int) -> Frame:
        for at in range(0, size, _BLOCK):
            self.blocks.append((1, min(_BLOCK, size - at), b"\0"))
        return self

    def made(self, window: int = 10 << 3) -> bytes:
        """``window``: its descriptor, 10 << 3 is 1 MiB (3.1.1.1.2)."""
        size = sum(length for _, length, _ in self.blocks)
        frame = [b"\x28\xb5\x2f\xfd", bytes([3 << 6, window]), size.to_bytes(8, "little")]
        for number, (kind, length, content) in enumerate(self.blocks):
            last = number == len(self.blocks) - 1
            frame += [(last | kind << 1 | length << 3).to_bytes(3, "little"), content]
        return b"".join(frame)


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    return member.tobuf(tarfile.GNU_FORMAT)


def whole(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def begun(**files: str) -> Frame:
    """With a sound manifest, of these files."""
    text = json.dumps({"format": FORMAT, "files": files}).encode()
    return Frame().add(header(MANIFEST, len(text)) + whole(text))


def of(kind: bytes) -> Callable[[], bytes]:
    """A member of a kind that a general reader reads at once, whatever its size."""
    return lambda: begun().add(header("work/x", BIG, kind)).zeros(BIG + 1024).made()


def first(kind: bytes) -> Callable[[], bytes]:
    return lambda: Frame().add(header("x", BIG, kind)).zeros(BIG + 1024).made()


def empty_members() -> bytes:
    frame = begun(**{f"work/{n}": sha256(b"") for n in range(20_000)})
    return frame.add(b"".join(header(f"work/{n}", 0) for n in range(200_000))).zeros(1024).made()


def empty_members_unlisted() -> bytes:
    many = b"".join(header(f"work/{n}", 0) for n in range(200_000))
    return zstandard.ZstdCompressor().compress(many + bytes(1024))


def listed_file(name: str) -> Callable[[], bytes]:
    """The manifest knows it, with a digest that is wrong: only the end shows that."""
    frame = begun(**{name: "0" * 64}).add(header(name, BIG))
    return frame.zeros(BIG + 1024).made


def json_bomb() -> bytes:
    """What Python makes of it is forty times as large."""
    text = b"[" + b"[]," * (16 << 20) + b"0]"
    frame = begun(**{"record.json": sha256(text)}).add(header("record.json", len(text)))
    return frame.add(whole(text)).zeros(1024).made()


def manifest_bomb() -> bytes:
    text = b'{"format": 3, "files": {"a": [' + b"[]," * ((4 << 20) // 3 - 20) + b"0]}}"
    return Frame().add(header(MANIFEST, len(text)) + whole(text)).zeros(1024).made()


def base_256() -> bytes:
    """GNU's size of any number of bytes, and here a negative one."""
    head = bytearray(header("work/x", 0))
    head[124:136] = b"\xff" * 12
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return begun().add(bytes(head)).zeros(BIG).made()


BOMBS: dict[str, Callable[[], bytes]] = {
    "a pax header": of(tarfile.XHDTYPE),
    "a global pax header": of(tarfile.XGLTYPE),
    "a pax header of Solaris": of(tarfile.SOLARIS_XHDTYPE),
    "a long name": of(tarfile.GNUTYPE_LONGNAME),
    "a long link": of(tarfile.GNUTYPE_LONGLINK),
    "a pax header before all": first(tarfile.XHDTYPE),
    "a sparse file": of(tarfile.GNUTYPE_SPARSE),
    "200,000 empty members": empty_members,
    "200,000 empty members that nothing lists": empty_members_unlisted,
    "a listed file": listed_file("work/s0i0.bin"),
    "a listed JSON file": listed_file("record.json"),
    "JSON of small things": json_bomb,
    "a manifest of small things": manifest_bomb,
    "a manifest without an end": lambda: Frame().add(header(MANIFEST, BIG)).zeros(BIG).made(),
    "a negative size": base_256,
    "zeros at its end": lambda: begun().zeros(BIG).made(),
    "a window of 3 TiB": lambda: begun().zeros(1024).made(window=0xFF),
    "a window of 2 GiB": lambda: begun().zeros(1024).made(window=21 << 3),
    "many frames": lambda: begun().zeros(1024).made() + Frame().zeros(_BLOCK).made() * 7000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_little_memory_and_one_line(name: str, tmp_path: Path) -> None:
    file = tmp_path / "bomb.tar.zst"
    file.write_bytes(BOMBS[name]())
    done = subprocess.run(
        [sys.executable, "-c", CHILD, file, tmp_path / "into"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    peak, _, said = done.stdout.partition(" ")
    print(f"{file.stat().st_size} bytes: {int(peak) // 1024} MiB: {said}")
    assert said.startswith(f"{file} is not a sound bundle: ")
    assert len(said.splitlines()) == 1
    assert int(peak) < MOST_KB
