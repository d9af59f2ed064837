"""One self-contained page: a treemap to zoom into, a table to search, differences in colour."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.core.errors import InfraError, NotThere
from harness.core.plain import plain
from harness.size.anatomy import Anatomy, Part

_TEMPLATE = Path(__file__).with_name("page.html")


def write_page(path: Path, title: str, new: Anatomy, old: Anatomy | None = None) -> None:
    """Raises NotThere, InfraError when the page cannot be written."""
    if not path.absolute().parent.is_dir():
        raise NotThere(path.parent, "directory", hint="the page would go there")
    try:
        path.write_text(render_page(title, new, old), encoding="utf-8")
    except OSError as error:
        raise InfraError(f"cannot write {path}: {error.strerror}", path=str(path)) from error


def render_page(title: str, new: Anatomy, old: Anatomy | None = None) -> str:
    data = {
        "title": title,
        "compared": old is not None,
        "views": [
            {"name": name, "rows": _rows(after, before)}
            for name, after, before in (
                (
                    "file" if new.kind != "elf" else "memory regions",
                    new.parts,
                    _parts(old, "parts"),
                ),
                ("memory it asks for", new.memory, _parts(old, "memory")),
                ("dropped by the linker", new.dropped, _parts(old, "dropped")),
            )
            if after or before
        ],
    }
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    page = _TEMPLATE.read_text(encoding="utf-8")
    return page.replace("{{title}}", html.escape(plain(title))).replace("{{data}}", text)


def _parts(anatomy: Anatomy | None, name: str) -> Sequence[Part]:
    parts: Sequence[Part] = () if anatomy is None else getattr(anatomy, name)
    return parts


def _rows(new: Sequence[Part], old: Sequence[Part]) -> list[Any]:
    """[path, new bytes, old bytes] of every part of either."""
    after = {p.path: p.bytes for p in new}
    before = {p.path: p.bytes for p in old}
    return [
        [[*map(plain, p)], after.get(p, 0), before.get(p, 0)] for p in sorted({*after, *before})
    ]
