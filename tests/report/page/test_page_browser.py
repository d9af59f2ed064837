"""The page of a night in a real browser (headless Chromium): nothing that it shows does anything,
it is used by keyboard, and a large suite's is there at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.nightly.history.compare import compare
from harness.report.page.render import write_page
from harness.system.files import DiskError
from tests.chromium import chromium
from tests.thorough import amount

from .nights import EVIL, M55, U55, many, two_nights

webdriver = pytest.importorskip("selenium.webdriver")
support = pytest.importorskip("selenium.webdriver.support.wait")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium("1300,1000") as session:
        yield session


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    history, night = two_nights(folder)
    write_page(folder / "night.html", compare(history, night))
    history.close()
    return folder / "night.html"


@pytest.fixture
def page(browser: Any, file: Path) -> Any:
    """The page, as if nobody had been there."""
    browser.get("about:blank")
    browser.get(file.as_uri())
    return browser


def by(browser: Any, css: str) -> list[Any]:
    found: list[Any] = browser.find_elements("css selector", css)
    return found


def complaints(browser: Any) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser")]


def keys(browser: Any, text: str) -> None:
    browser.switch_to.active_element.send_keys(text)


def test_it_shows_and_complains_of_nothing(page: Any) -> None:
    """No line in the browser's console, nothing fetched; the groups before all the rest."""
    assert complaints(page) == []
    entries = "return performance.getEntriesByType('resource').map(e => e.name)"
    assert page.execute_script(entries) == []
    headings = [heading.text for heading in by(page, "h2")]
    assert headings[0].startswith("Failures")
    assert "1 still failing, 1 in quarantine; of 2 nothing is known" in by(page, ".verdict")[0].text
    assert by(page, "section.group h3")[0].text == "operator cortex_m::pad.out (4)"


def test_what_others_wrote_does_nothing(page: Any) -> None:
    """A model of the name of a script is a name."""
    assert page.title.startswith("every night")
    assert by(page, "img") == []
    assert len(by(page, "script")) == 1
    assert any(EVIL in head.text for head in by(page, ".matrix thead th"))
    assert EVIL in "".join(line.get_attribute("textContent") for line in by(page, ".excerpt .at"))
    injected = "const s = document.createElement('script'); s.textContent = 'window.owned = 1';"
    page.execute_script(f"{injected} document.body.append(s)")
    assert page.execute_script("return window.owned") is None  # the page's policy
    assert complaints(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_state_has_its_word_and_is_readable(page: Any, scheme: str) -> None:
    """Colours are never alone, and text has a contrast of 4.5 (WCAG 2.2, 1.4.3), where a screen is
    to be dark, too."""
    wanted = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
    for cell in by(page, ".matrix td a"):
        assert len(cell.text.split()) >= 2, cell.text
    ratios = page.execute_script(
        """
        const light = color => {
          const [r, g, b] = color.match(/[\\d.]+/g).map(n => n / 255)
            .map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
          return .2126 * r + .7152 * g + .0722 * b;
        };
        const behind = each => {
          const color = getComputedStyle(each).backgroundColor;
          return color === 'rgba(0, 0, 0, 0)' ? behind(each.parentElement) : color;
        };
        const text = '.matrix td a, .counts button, .state, .dim, p, th a, .excerpt span, i';
        return [...document.querySelectorAll(text)].map(each => {
          const colors = [light(getComputedStyle(each).color), light(behind(each))];
          return (Math.max(...colors) + .05) / (Math.min(...colors) + .05);
        });
        """
    )
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert len(ratios) > 60
    assert min(ratios) >= 4.5


def test_the_marked_line_and_the_plots_are_there(page: Any) -> None:
    lines = by(page, "#case-0 .excerpt .at")
    assert [line.text.split()[:2] for line in lines] == [["▶", "7"]]
    assert lines[0].size["height"] > 10
    plot = by(page, "#case-0 svg[role=img]")[0]
    assert "size of the .pte over 2 nights: 50,001 to 50,002 bytes" in plot.get_attribute(
        "aria-label"
    )
    assert plot.size["width"] > 100


def test_by_keyboard_from_failure_to_failure(page: Any) -> None:
    """j opens the next one, k the one before; a space closes it; / searches and j is a letter."""
    keys(page, "j")
    first = page.switch_to.active_element
    assert f"{M55}/ds_cnn" in first.text
    keys(page, "j")
    assert page.switch_to.active_element.text != first.text
    keys(page, "k")
    assert page.switch_to.active_element.text == first.text
    keys(page, " ")
    assert first.find_element("xpath", "..").get_attribute("open") is None
    keys(page, "/")
    keys(page, "j")
    assert page.switch_to.active_element.get_attribute("value") == "j"


def test_everything_is_reached_by_the_tab_key(page: Any) -> None:
    """Every button and link, in the order of the page."""
    wanted = len(by(page, ".counts button"))
    seen = []
    for _ in range(wanted):
        keys(page, "\ue004")
        seen.append(page.switch_to.active_element.get_attribute("data-state"))
    assert seen == [b.get_attribute("data-state") for b in by(page, ".counts button")]
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert page.execute_script(outline) == "solid"


def test_search_and_states_filter_the_table(page: Any) -> None:
    whole = len(by(page, "#all tbody tr"))
    by(page, "#search")[0].send_keys("npu-team fault")
    shown = [r for r in by(page, "#all tbody tr") if r.is_displayed()]
    assert [r.get_attribute("data-state") for r in shown] == ["quarantined"]
    assert by(page, "#shown")[0].text == "1 shown"
    by(page, "#search")[0].clear()
    page.execute_script("search.dispatchEvent(new Event('input'))")
    button = by(page, ".counts button[data-state=infra]")[0]
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    shown = [r for r in by(page, "#all tbody tr") if r.is_displayed()]
    assert [r.find_element("css selector", "th").text for r in shown] == [f"{U55}/resnet8"]
    button.click()
    assert sum(r.is_displayed() for r in by(page, "#all tbody tr")) == whole


def test_the_button_copies_the_command(page: Any) -> None:
    """And says so; where the clipboard is refused, too."""
    page.execute_script(
        "window.said = []; navigator.clipboard.writeText = async text => { said.push(text); }"
    )
    button = by(page, "#case-0 .command button")[0]
    button.click()
    assert page.execute_script("return said") == [f"hil run {M55} ds_cnn"]
    page.execute_async_script("setTimeout(arguments[0], 50)")
    assert button.text == "copied"
    page.execute_script(
        "navigator.clipboard.writeText = async () => { throw new Error(); };"
        "document.execCommand = what => { said.push(document.activeElement.value); return true; }"
    )
    page.execute_script("document.getElementById('case-1').open = true")
    by(page, "#case-1 .command button")[0].click()
    page.execute_async_script("setTimeout(arguments[0], 50)")
    assert page.execute_script("return said")[1].startswith(f"hil run {M55} ")


def test_on_a_phone_nothing_runs_out_of_its_card(page: Any) -> None:
    """What is wider (tables, a console, a command) scrolls within it; the page itself does not."""
    metrics = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    outside = page.execute_script(
        """
        for (const each of document.querySelectorAll('details')) each.open = true;
        const scrolls = each => each.closest('.wide, .excerpt, .command code, svg');
        return [...document.querySelectorAll('section.group *, body > *, details *')]
          .filter(each => !scrolls(each.parentElement) && each.getBoundingClientRect().width)
          .filter(each => {
            const card = each.closest('section.group') || document.body;
            return each.getBoundingClientRect().right > card.getBoundingClientRect().right + 1;
          })
          .map(each => each.outerHTML.slice(0, 200));
        """
    )
    wide = page.execute_script("return document.documentElement.scrollWidth")
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert outside == []
    assert wide <= 360


def test_a_cell_leads_to_its_case(page: Any) -> None:
    """And opens it."""
    cell = next(c for c in by(page, ".matrix td a") if c.get_attribute("class") == "infra")
    anchor = cell.get_attribute("href").partition("#")[2]
    assert by(page, f"#{anchor}")[0].get_attribute("open") is None
    cell.click()
    opened = support.WebDriverWait(page, 10).until(lambda _: by(page, f"#{anchor}[open]"))
    assert len(opened) == 1
    assert "Tried 2 times: INFRA, then INFRA." in by(page, f"#{anchor}")[0].text


def test_a_large_suite_is_all_there(browser: Any, tmp_path: Path) -> None:
    """200 cases of many nights, without a complaint; how long it takes is `hil bench`'s."""
    history, night = many(tmp_path, 200, amount(5, 30))
    write_page(tmp_path / "night.html", compare(history, night))
    history.close()
    browser.get((tmp_path / "night.html").as_uri())
    assert complaints(browser) == []
    assert len(by(browser, "#all tbody tr")) == 200
    assert len(by(browser, ".matrix td a")) == 200


def test_a_page_that_cannot_be_written(file: Path, tmp_path: Path) -> None:
    history, night = two_nights(tmp_path)
    page = compare(history, night)
    history.close()
    with pytest.raises(DiskError, match=r"writing night\.html"):
        write_page(tmp_path / "none" / "night.html", page)
