"""What the page protects: it is one file, fetches nothing, and no name can break out of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness.core.errors import NotThere
from harness.report.size import render_page, write_page
from harness.size.anatomy import Anatomy, Part
from harness.system.files import DiskError

NEW = Anatomy("pte", 12, (Part(("a", "</script><b>"), 7), Part(("a", "same"), 5)))
OLD = Anatomy("pte", 9, (Part(("a", "same"), 5), Part(("b", "gone"), 4)))


def data(page: str) -> object:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(found[1])


def test_rows_of_both_files() -> None:
    page = data(render_page("t", NEW, OLD))
    assert page == {
        "title": "t",
        "compared": True,
        "beside": "reserved: pools, stacks, .bss",
        "views": [
            {
                "name": "file",
                "rows": [
                    [["a", "</script><b>"], 7, 0],
                    [["a", "same"], 5, 5],
                    [["b", "gone"], 0, 4],
                ],
            }
        ],
        "plans": [],
    }


def test_what_is_reserved_stands_next_to_what_is_placed() -> None:
    """A pool of 32 MiB would be one block over all of it."""
    pool = Part(("DDR", "reserved", ".pools", "file_pool"), 33_554_432)
    placed = Part(("ITCM", "code", ".text", "main"), 20)
    page = data(render_page("t", Anatomy("elf", 33_554_452, (placed, pool))))
    assert isinstance(page, dict)
    views = {view["name"]: view["rows"] for view in page["views"]}
    assert list(views) == ["placed by the linker", page["beside"]]
    assert views["placed by the linker"] == [[["ITCM", "code", ".text", "main"], 20, 0]]
    assert views[page["beside"]] == [[["DDR", "reserved", ".pools", "file_pool"], 33_554_432, 0]]


def test_a_constant_stands_under_the_operator_that_uses_it() -> None:
    part = Part(("constants", "int8[64,64,1,1] #3"), 4096)
    anatomy = Anatomy("pte", 4096, (part,), users={part.path: "conv2d #3"})
    page = data(render_page("t", anatomy))
    assert isinstance(page, dict)
    assert page["views"][0]["rows"] == [[["constants", "conv2d #3", "int8[64,64,1,1] #3"], 4096, 0]]


def test_no_network_and_no_escape() -> None:
    page = render_page("<title>&", NEW)
    assert "default-src 'none'" in page
    assert "https:" not in page
    assert " src=" not in page
    assert page.count("</script>") == 2
    assert "<title>&lt;title&gt;&amp;</title>" in page


def test_unwritable_place(tmp_path: Path) -> None:
    with pytest.raises(NotThere, match="there is no directory"):
        write_page(tmp_path / "no" / "such.html", "t", NEW)
    with pytest.raises(DiskError, match="writing the page"):
        write_page(tmp_path, "t", NEW)
