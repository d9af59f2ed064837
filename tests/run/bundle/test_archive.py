"""A bundle is a stranger's: whatever is wrong with one is told by name, and nothing leaves its
folder."""

from __future__ import annotations

import json
import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.run.bundle.archive import (
    MANIFEST,
    MAX_BYTES,
    BadBundle,
    BundleEscapes,
    BundleNewer,
    BundleTooLarge,
    NotABundle,
    unpack,
)

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
    member = tarfile.TarInfo("program.pte")
    member.type = tarfile.GNUTYPE_SPARSE
    return compressed(archive([head, (member, b"")]))


def a_long_name(content: dict[str, bytes]) -> bytes:
    head = file(MANIFEST, content[MANIFEST])
    return compressed(archive([head, file("inputs/" + "x" * 300, b"")]))


def bomb(content: dict[str, bytes]) -> bytes:
    """Honest in its manifest, and far beyond what is accepted."""
    manifest = json.loads(content[MANIFEST])
    manifest["files"]["inputs/s0i0.bin"] = {"size": MAX_BYTES + 1, "sha256": "0" * 64}
    return packed({**content, MANIFEST: json.dumps(manifest).encode()})


def lying_bomb(content: dict[str, bytes]) -> bytes:
    """Its manifest knows of two kilobytes, its archive of 64 MiB."""
    head = file(MANIFEST, content[MANIFEST])
    return compressed(archive([head, file("inputs/s0i0.bin", bytes(64 << 20))]))


def followed(content: dict[str, bytes]) -> bytes:
    return packed(content) + b"more"


def followed_inside(content: dict[str, bytes]) -> bytes:
    plain = archive(file(name, data) for name, data in content.items())
    return compressed(plain + b"x" * 512)


FORGED: dict[str, tuple[Forge, type[UsageError], str]] = {
    "text": (lambda c: b"a text of somebody's", NotABundle, "not compressed"),
    "nothing": (lambda c: b"", NotABundle, "not compressed"),
    "no archive": (lambda c: compressed(b"x" * 4096), NotABundle, "no tar archive"),
    "another archive": (lambda c: packed({"a.txt": b"x"}), NotABundle, "first member"),
    "a manifest that is text": (changed(MANIFEST, b"hello"), NotABundle, "not JSON"),
    "a manifest that is a list": (changed(MANIFEST, b"[]"), BadBundle, "does not list"),
    "a size that is a text": (
        lambda c: packed(described(c, files={"a": {"size": "1", "sha256": ""}})),
        BadBundle,
        "does not list",
    ),
    "newer": (lambda c: packed(described(c, format=2)), BundleNewer, "this reads 1"),
    "older than the first": (
        lambda c: packed(described(c, format=0)),
        BadBundle,
        "does not list",
    ),
    "up and out": (listed("../escaped"), BundleEscapes, "escaped"),
    "up and out of a folder": (listed("inputs/../../escaped"), BundleEscapes, "escaped"),
    "absolute": (listed("/tmp/escaped"), BundleEscapes, "escaped"),
    "a hidden file": (listed(".profile"), BundleEscapes, "profile"),
    "another folder": (listed("bin/sh"), BundleEscapes, "bin/sh"),
    "a new line in a name": (listed("inputs/a\nb"), BundleEscapes, "no file of a bundle"),
    "not in the manifest": (with_member("inputs/extra.bin"), BundleEscapes, "is not in manifest"),
    "twice": (twice, BundleEscapes, "no file of a bundle"),
    "a symbolic link": (with_member("inputs/l", tarfile.SYMTYPE, "/etc"), BundleEscapes, "regular"),
    "a hard link": (with_member("inputs/l", tarfile.LNKTYPE, "../x"), BundleEscapes, "regular"),
    "a device": (with_member("inputs/l", tarfile.CHRTYPE), BundleEscapes, "regular"),
    "a FIFO": (with_member("inputs/l", tarfile.FIFOTYPE), BundleEscapes, "regular"),
    "a folder": (with_member("inputs", tarfile.DIRTYPE), BundleEscapes, "regular"),
    "a sparse file": (sparse, BundleEscapes, "regular"),
    "a long name": (a_long_name, BundleEscapes, "no file of a bundle"),
    "a bomb": (bomb, BundleTooLarge, "are accepted"),
    "a bomb that lies": (lying_bomb, BadBundle, ""),
    "a member less": (without("console.log"), BadBundle, "no console.log"),
    "another content": (changed("outputs/s0-0.bin", b"x" * 48), BadBundle, "not what was"),
    "something behind it": (followed, BadBundle, "cannot be decompressed"),
    "something behind the archive": (followed_inside, BadBundle, "follows its end"),
}


@pytest.mark.parametrize("name", FORGED)
def test_it_is_refused(name: str, bundle: Path, tmp_path: Path) -> None:
    """With its own error, which has a next step; and nothing is written but in the folder."""
    forge, kind, said = FORGED[name]
    forged = tmp_path / "forged.tar.zst"
    forged.write_bytes(forge(members(bundle)))
    into = tmp_path / "deep" / "into"
    into.mkdir(parents=True)
    with pytest.raises(kind, match=said) as caught:
        unpack(forged, into)
    assert type(caught.value) is kind
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
        with pytest.raises(BadBundle, match="cannot be decompressed"):
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
        except (BadBundle, NotABundle, BundleEscapes, BundleTooLarge, BundleNewer):
            continue
        for name, content in members(bundle).items():  # an unused bit of a header
            assert name == MANIFEST or (into / name).read_bytes() == content


def test_a_folder_that_it_was_unpacked_to(bundle: Path, tmp_path: Path) -> None:
    """Is as good as the file; a link in it, a file less, another file are told."""
    folder, (one, two, three, four) = tmp_path / "folder", [tmp_path / n for n in "1234"]
    for path in (folder, one, two, three, four):
        path.mkdir()
    manifest = unpack(bundle, folder)
    with pytest.raises(NotABundle, match=MANIFEST):
        unpack(folder, one)
    (folder / MANIFEST).write_text(manifest.text())
    assert unpack(folder, two) == manifest
    (folder / "console.log").write_bytes(b"")
    with pytest.raises(BadBundle, match=r"console\.log"):
        unpack(folder, three)
    (folder / "console.log").unlink()
    (folder / "console.log").symlink_to("/etc/passwd")
    with pytest.raises(BundleEscapes, match="is a link"):
        unpack(folder, four)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        unpack(tmp_path / "none.tar.zst", tmp_path)
