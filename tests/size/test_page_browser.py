"""The page in a real browser (headless Chromium): it renders, a click zooms, the search filters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.report.size import render_page
from harness.size.anatomy import Anatomy, Part
from harness.size.measure import measure_file
from harness.size.memory_plan import memory_plans
from tests.chromium import chromium
from tests.size.plan_samples import kernel, method, planned, program
from tests.size.samples import sample_pte, tensor

webdriver = pytest.importorskip("selenium.webdriver")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium("1200,900", performance="ALL") as session:
        yield session


@pytest.fixture
def pages(tmp_path: Path) -> tuple[Path, Path]:
    """A page of one file and a page of the difference of two."""
    old, new = tmp_path / "old.pte", tmp_path / "new.pte"
    old.write_bytes(sample_pte())
    values = [tensor([4, 8], planned=0), tensor([8, 8], data=1, fqn="fc.weight")]
    longer = [{"name": "my::a_much_longer_</script>_name", "overload": "out"}]
    new.write_bytes(sample_pte(operators=longer, values=values, chains=[], outputs=[]))
    one, both = tmp_path / "one.html", tmp_path / "both.html"
    one.write_text(render_page("one", measure_file(old)))
    both.write_text(render_page("both", measure_file(new), measure_file(old)))
    return one, both


def by(browser: Any, css: str) -> list[Any]:
    found: list[Any] = browser.find_elements("css selector", css)
    return found


def complaints(browser: Any) -> list[str]:
    return [e["message"] for e in browser.get_log("browser") if e["level"] == "SEVERE"]


def test_it_renders(browser: Any, pages: tuple[Path, Path]) -> None:
    """Boxes of visible size that cover the map, a full table, no error, nothing fetched."""
    browser.get(pages[0].as_uri())
    assert complaints(browser) == []
    boxes = by(browser, "#map > .box:not(.inner)")
    assert len(boxes) > 3
    area = sum(b.size["width"] * b.size["height"] for b in boxes)
    whole = by(browser, "#map")[0].size
    assert 0.9 < area / (whole["width"] * whole["height"]) < 1.05
    rows = by(browser, "#rows tr")
    assert f"{len(rows)} parts" in by(browser, "#count")[0].text
    urls = browser.execute_script(
        "return performance.getEntriesByType('resource').map(e => e.name)"
    )
    assert urls == []


def test_what_is_reserved_is_a_strip_that_leads_to_it(browser: Any, tmp_path: Path) -> None:
    """The page opens on what the linker placed, whatever is beside it."""
    pool, stack = ("DDR", "reserved", ".pools", "file_pool"), ("DTCM", "reserved", ".stack", "main")
    code = [Part(("ITCM", "code", ".text", name), 20) for name in ("f", "g")]
    parts = (*code, Part(pool, 33_554_432), Part(stack, 4096))
    (tmp_path / "elf.html").write_text(render_page("elf", Anatomy("elf", 33_558_568, parts)))
    browser.get((tmp_path / "elf.html").as_uri())
    assert complaints(browser) == []
    boxes = by(browser, "#map > .box:not(.inner)")
    assert {box.get_attribute("data-path") for box in boxes} == {
        "ITCM/code/.text/f",
        "ITCM/code/.text/g",
    }
    assert by(browser, "#crumbs button")[0].text == "all 40 B"
    strip = by(browser, "#beside button")
    assert [button.text for button in strip] == [
        "reserved: pools, stacks, .bss 33,558,528 B",
        "DDR: file_pool 33,554,432 B",
        "DTCM: main 4,096 B",
    ]
    strip[1].click()
    assert by(browser, "#rows td")[0].text == "33,554,432"
    browser.set_window_size(380, 800)
    wide = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert browser.execute_script(wide)
    browser.set_window_size(1200, 900)


def test_the_memory_plan_is_a_picture_of_its_own(browser: Any, tmp_path: Path) -> None:
    """A box for each tensor where it is and while it is needed, the peak, and who makes it."""
    file, page = tmp_path / "x.pte", tmp_path / "x.html"
    names = [kernel(0, 0, 0, 1, 1), kernel(0, 1, 1, 2, 2)]
    file.write_bytes(
        program(method([planned(0), planned(16), planned(16, 32)], names, outputs=[2]))
    )
    page.write_text(render_page("x", measure_file(file), plans=memory_plans(file, ["</script>"])))
    browser.get(page.as_uri())
    assert complaints(browser) == []
    assert not by(browser, "#plans")[0].is_displayed()
    by(browser, "#views button")[-1].click()
    assert by(browser, "#plans")[0].is_displayed()
    assert not by(browser, "#map")[0].is_displayed()
    assert by(browser, "#plans .peak")[0].text == (
        "forward, buffer 1: 48 of 64 bytes are needed during instruction 1 (aten::add.out); "
        "32 for int8[32] of aten::add.out; 16 for int8[16] of aten::add.out, </script>"
    )
    wrong = by(browser, "#plans .fault")[0].text
    assert wrong.startswith("value 1 [0x10, 0x20) of buffer 1 is overwritten by instruction 1")
    boxes = [box for box in by(browser, "#plans svg rect") if box.get_attribute("stroke")]
    titles = browser.execute_script("return arguments[0].map(b => b.textContent)", boxes)
    assert (
        titles[1]
        == "value 1 int8[16], 16 B at 16\nof aten::add.out, </script>\ninstructions 0 to 1"
    )
    first, second, third = (box.rect for box in boxes)
    column = third["width"] / 2  # it is needed by instruction 1 and at the end
    assert first["width"] == pytest.approx(2 * column, rel=0.02)
    assert second["x"] == pytest.approx(first["x"] + column, abs=2)
    assert third["height"] == pytest.approx(2 * second["height"], rel=0.05)
    assert second["y"] + second["height"] == pytest.approx(first["y"], abs=2)
    by(browser, "#views button")[0].click()
    assert by(browser, "#map")[0].is_displayed()


def test_a_click_zooms_and_the_trail_leads_back(browser: Any, pages: tuple[Path, Path]) -> None:
    browser.get(pages[0].as_uri())
    before = len(by(browser, "#rows tr"))
    box = next(
        b
        for b in by(browser, "#map > .box:not(.inner)")
        if b.get_attribute("data-path") == "program"
    )
    browser.execute_script("arguments[0].click()", box)
    paths = [b.get_attribute("data-path") for b in by(browser, "#map > .box:not(.inner)")]
    assert paths
    assert all(path.startswith("program/") for path in paths)
    assert 0 < len(by(browser, "#rows tr")) < before
    trail = by(browser, "#crumbs button")
    assert [b.text.split("  ")[0].split(" ")[0] for b in trail] == ["all", "program"]
    trail[0].click()
    assert len(by(browser, "#rows tr")) == before


def test_a_real_click_in_the_middle_zooms(browser: Any, pages: tuple[Path, Path]) -> None:
    """The mouse itself, not a script: nothing lies over the boxes."""
    browser.get(pages[0].as_uri())
    box = max(by(browser, "#map > .box"), key=lambda b: b.size["width"] * b.size["height"])
    webdriver.ActionChains(browser).move_to_element(box).click().perform()
    assert len(by(browser, "#crumbs button")) > 1


def test_the_search_filters(browser: Any, pages: tuple[Path, Path]) -> None:
    browser.get(pages[0].as_uri())
    by(browser, "#search")[0].send_keys("linear operators")
    texts = [row.text for row in by(browser, "#rows tr")]
    assert len(texts) == 1
    assert "my::linear.out" in texts[0]
    assert by(browser, "#count")[0].text.startswith("1 parts")


def test_differences_are_coloured(browser: Any, pages: tuple[Path, Path]) -> None:
    """What grew is red, what went is green, in the map and in the table."""
    browser.get(pages[1].as_uri())
    assert complaints(browser) == []
    assert by(browser, "#rows tr.up")
    assert by(browser, "#rows tr.down")
    assert "</script>" in by(browser, "#rows")[0].text
    colours = {b.value_of_css_property("background-color") for b in by(browser, "#map .box")}
    assert len(colours) >= 2
    heads = [h.text for h in by(browser, "#head th")]
    assert heads == ["change", "old", "bytes", "what"]
