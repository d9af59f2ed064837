"""A bundle is a stranger's: whatever is wrong with one is told by name, and nothing leaves its
folder."""

from __future__ import annotations

import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from harness.run.bundle import MANIFEST, BadBundle, unpack

from .forging import archive, compressed, described, file, members, packed, special

Forge = Callable[[dict[str, bytes]], bytes]


def with_member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> Forge:
    """One more member than the manifest says, in front of the others."""

    def forge(content: dict[str, bytes]) -> bytes:
        head, *rest = (file(n, data) for n, data in content.items())
        return compressed(archive([head, special(name, kind, link), *rest]))

    return forge


def listed(name: str) -> Forge:
    """A member that the manifest knows, under a name that leads out."""
    return lambda content: packed(described({**content, name: b"x"}))


def without(name: str) -> Forge:
    def forge(content: dict[str, bytes]) -> bytes:
        del content[name]
        return packed(content)

    return forge


def changed(name: str, data: bytes) -> Forge:
    return lambda content: packed({**content, name: data})


def twice(content: dict[str, bytes]) -> bytes:
    every = [file(name, data) for name, data in content.items()]
    return compressed(archive([*every, every[-1]]))


def sparse(content: dict[str, bytes]) -> bytes:
    """Four gigabytes that take no place in the archive."""
    head = file(MANIFEST, content[MANIFEST])
    member = tarfile.TarInfo("work/program.pte")
    member.type = tarfile.GNUTYPE_SPARSE
    return compressed(archive([head, (member, b"")]))


def a_long_name(content: dict[str, bytes]) -> bytes:
    head = file(MANIFEST, content[MANIFEST])
    return compressed(archive([head, file("work/" + "x" * 300, b"")]))


def bomb(content: dict[str, bytes]) -> bytes:
    """A few kilobytes that unpack to more than the test accepts."""
    head = file(MANIFEST, content[MANIFEST])
    return compressed(archive([head, file("work/s0i0.bin", bytes(64 << 20))]))


def without_size(content: dict[str, bytes]) -> bytes:
    """A frame whose header does not say how much it unpacks to."""
    return zstandard.ZstdCompressor(write_content_size=False).compress(packed_plain(content))


def packed_plain(content: dict[str, bytes]) -> bytes:
    return archive(file(name, data) for name, data in content.items())


def followed(content: dict[str, bytes]) -> bytes:
    return packed(content) + b"more"


FORGED: dict[str, tuple[Forge, str]] = {
    "text": (lambda c: b"a text of somebody's", "cannot be read"),
    "nothing": (lambda c: b"", "cannot be read"),
    "no size": (without_size, "cannot be read"),
    "no archive": (lambda c: compressed(b"x" * 4096), "cannot be read"),
    "another archive": (lambda c: packed({"a.txt": b"x"}), "manifest.json does not list"),
    "an empty archive": (lambda c: packed({}), "manifest.json does not list"),
    "a manifest that is text": (changed(MANIFEST, b"hello"), "does not list"),
    "a manifest that is not UTF-8": (changed(MANIFEST, b"\xff"), "does not list"),
    "a manifest that is a list": (changed(MANIFEST, b"[]"), "does not list"),
    "a digest that is a number": (
        lambda c: packed(described(c, files={"a": 1})),
        "is not what manifest.json lists",
    ),
    "newer": (lambda c: packed(described(c, format=4)), "this version reads 3"),
    "older": (lambda c: packed(described(c, format=2)), "format is 2, and this version reads 3"),
    "up and out": (listed("../escaped"), "escaped"),
    "up and out of a folder": (listed("work/../../escaped"), "escaped"),
    "absolute": (listed("/tmp/escaped"), "escaped"),
    "a hidden file": (listed(".profile"), "profile"),
    "another folder": (listed("bin/sh"), "bin/sh"),
    "a new line in a name": (listed("work/a\nb"), "not a file of a bundle"),
    "not in the manifest": (
        with_member("work/extra.bin"),
        "extra.bin' is not what manifest.json lists",
    ),
    "twice": (twice, "not a file of a bundle"),
    "a symbolic link": (with_member("work/l", tarfile.SYMTYPE, "/etc"), "not a file of a bundle"),
    "a hard link": (with_member("work/l", tarfile.LNKTYPE, "../x"), "not a file of a bundle"),
    "a device": (with_member("work/l", tarfile.CHRTYPE), "not a file of a bundle"),
    "a FIFO": (with_member("work/l", tarfile.FIFOTYPE), "not a file of a bundle"),
    "a folder": (with_member("work", tarfile.DIRTYPE), "not a file of a bundle"),
    "a sparse file": (sparse, "not a file of a bundle"),
    "a long name": (a_long_name, "not a file of a bundle"),
    "a bomb": (bomb, "larger than the 33554432 bytes accepted"),
    "a member less": (without("console.log"), "console.log' is not what manifest.json lists"),
    "another content": (changed("work/s0-0.bin", b"x" * 48), "not what manifest.json lists"),
    "something behind it": (followed, "cannot be read"),
}


@pytest.mark.parametrize("name", FORGED)
def test_it_is_refused(name: str, bundle: Path, tmp_path: Path) -> None:
    """With a sentence and a next step; and nothing is written but in the folder."""
    forge, problem = FORGED[name]
    forged = tmp_path / "forged.tar.zst"
    forged.write_bytes(forge(members(bundle)))
    into = tmp_path / "deep" / "into"
    into.mkdir(parents=True)
    with pytest.raises(BadBundle, match=problem) as caught:
        unpack(forged, into, 32 << 20)
    assert caught.value.hint
    assert {path.name for path in tmp_path.iterdir()} == {"deep", "forged.tar.zst"}
    assert {path.name for path in into.parent.iterdir()} == {"into"}
    assert not [path for path in into.rglob("*") if path.is_symlink()]


def test_wherever_it_is_cut_it_is_cut_off(bundle: Path, tmp_path: Path) -> None:
    """The last byte matters as much as the first."""
    whole = bundle.read_bytes()
    seed = 16
    print(f"seed {seed}")
    cuts = [20, 30, 100, len(whole) - 1, *random.Random(seed).sample(range(20, len(whole)), 12)]
    for number, cut in enumerate(cuts):
        (tmp_path / "cut").write_bytes(whole[:cut])
        (tmp_path / str(number)).mkdir()
        with pytest.raises(BadBundle, match="cannot be read"):
            unpack(tmp_path / "cut", tmp_path / str(number))


def test_no_flipped_bit_is_taken_for_the_bundle(bundle: Path, tmp_path: Path) -> None:
    """Each is an error of a bundle; none gets through, none is a traceback."""
    whole = bundle.read_bytes()
    seed = 17
    print(f"seed {seed}")
    for number, at in enumerate(random.Random(seed).sample(range(len(whole)), 40)):
        data = bytearray(whole)
        data[at] ^= 1 << number % 8
        (tmp_path / "flipped").write_bytes(data)
        into = tmp_path / str(number)
        into.mkdir()
        try:
            unpack(tmp_path / "flipped", into)
        except BadBundle:
            continue
        for name, content in members(bundle).items():  # an unused bit of a header
            assert name == MANIFEST or (into / name).read_bytes() == content


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadBundle, match="cannot be read"):
        unpack(tmp_path / "none.tar.zst", tmp_path)
