"""Bundles as nobody's `hil bundle` makes them."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import zstandard

from harness.run.bundle import MANIFEST, sha256


def members(bundle: Path) -> dict[str, bytes]:
    """All of a sound one, the manifest too."""
    plain = zstandard.ZstdDecompressor().decompress(bundle.read_bytes())
    with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
        return {m.name: archive.extractfile(m).read() for m in archive.getmembers()}  # type: ignore[union-attr]


def archive(content: Iterable[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for member, data in content:
            tar.addfile(member, io.BytesIO(data))
    return made.getvalue()


def file(name: str, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    return member, data


def special(name: str, kind: bytes, link: str = "") -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member, b""


def compressed(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def described(content: Mapping[str, bytes], **fields: Any) -> dict[str, bytes]:
    """With the manifest that fits, but for ``fields`` of it."""
    rest = {name: data for name, data in content.items() if name != MANIFEST}
    manifest = {
        **json.loads(content[MANIFEST]),
        "files": {name: sha256(data) for name, data in rest.items()},
        **fields,
    }
    return {MANIFEST: json.dumps(manifest).encode(), **rest}


def packed(content: Mapping[str, bytes]) -> bytes:
    return compressed(archive(file(name, data) for name, data in content.items()))


def edited(bundle: Path, out: Path, name: str, change: Callable[[dict[str, Any]], object]) -> Path:
    """A bundle whose JSON member ``name`` is another, and whose manifest says so."""
    content = members(bundle)
    fields = json.loads(content[name])
    change(fields)
    content[name] = json.dumps(fields).encode()
    out.write_bytes(packed(described(content)))
    return out
