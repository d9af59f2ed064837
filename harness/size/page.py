"""One self-contained page: a treemap to zoom into, a table to search, differences in colour."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.core.errors import NotThere
from harness.core.plain import plain
from harness.size.anatomy import Anatomy, Part
from harness.system.files import disk_errors, write_whole

_TEMPLATE = Path(__file__).with_name("page.html")


def write_page(path: Path, title: str, new: Anatomy, old: Anatomy | None = None) -> None:
    """Raises NotThere, DiskError."""
    if not path.parent.is_dir():
        raise NotThere(path.parent, "directory", hint="the page would go there")
    with disk_errors("writing the page"):
        write_whole(path, render_page(title, new, old))


def render_page(title: str, new: Anatomy, old: Anatomy | None = None) -> str:
    earlier = Anatomy(new.kind, 0, ()) if old is None else old
    views = (
        ("file" if new.kind != "elf" else "memory regions", new.parts, earlier.parts),
        ("memory it asks for", new.memory, earlier.memory),
        ("dropped by the linker", new.dropped, earlier.dropped),
    )
    data = {
        "title": title,
        "compared": old is not None,
        "views": [
            {"name": name, "rows": _rows(after, before)}
            for name, after, before in views
            if after or before
        ],
    }
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    page = _TEMPLATE.read_text(encoding="utf-8")
    return page.replace("{{title}}", html.escape(plain(title))).replace("{{data}}", text)


def _rows(new: Sequence[Part], old: Sequence[Part]) -> list[Any]:
    """[path, new bytes, old bytes] of every part of either."""
    after = {p.path: p.bytes for p in new}
    before = {p.path: p.bytes for p in old}
    return [
        [[*map(plain, p)], after.get(p, 0), before.get(p, 0)] for p in sorted({*after, *before})
    ]
