"""One self-contained page: a treemap to zoom into, a table to search, differences in colour."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.core.errors import NotThere
from harness.core.safe_text import plain
from harness.size.anatomy import Anatomy, Part, PartPath
from harness.system.files import disk_errors, write_whole

_RESERVED = "reserved: pools, stacks, .bss"
_TEMPLATE = Path(__file__).with_name("page.html")


def write_page(path: Path, title: str, new: Anatomy, old: Anatomy | None = None) -> None:
    """Raises NotThere, DiskError."""
    if not path.parent.is_dir():
        raise NotThere(path.parent, "directory", hint="the page would go there")
    with disk_errors("writing the page"):
        write_whole(path, render_page(title, new, old))


def render_page(title: str, new: Anatomy, old: Anatomy | None = None) -> str:
    earlier = Anatomy(new.kind, 0, ()) if old is None else old
    placed, reserved = _split(new.parts)
    placed_before, reserved_before = _split(earlier.parts)
    views = (
        ("placed by the linker" if reserved else "file", placed, placed_before),
        (_RESERVED, reserved, reserved_before),
        ("memory it asks for", new.memory, earlier.memory),
        ("dropped by the linker", new.dropped, earlier.dropped),
    )
    data = {
        "title": title,
        "compared": old is not None,
        "beside": _RESERVED,
        "views": [
            {"name": name, "rows": _rows(after, before, {**earlier.users, **new.users})}
            for name, after, before in views
            if after or before
        ],
    }
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    page = _TEMPLATE.read_text(encoding="utf-8")
    return page.replace("{{title}}", html.escape(plain(title))).replace("{{data}}", text)


def _split(parts: Sequence[Part]) -> tuple[list[Part], list[Part]]:
    """The parts that the linker placed, and those it reserved (pools, stacks, .bss): in one map the
    reserved ones would cover the rest."""
    reserved = [part for part in parts if part.path[1:2] == ("reserved",)]
    return [part for part in parts if part.path[1:2] != ("reserved",)], reserved


def _rows(new: Sequence[Part], old: Sequence[Part], users: Mapping[PartPath, str]) -> list[Any]:
    """[path, new bytes, old bytes] of every part of either; a constant's path names its user."""
    after = {p.path: p.bytes for p in new}
    before = {p.path: p.bytes for p in old}

    def names(path: PartPath) -> list[str]:
        user = users.get(path)
        return [plain(name) for name in ((*path[:-1], user, path[-1]) if user else path)]

    return [[names(p), after.get(p, 0), before.get(p, 0)] for p in sorted({*after, *before})]
