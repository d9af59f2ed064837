"""Protects the documentation as readers have it: no dead link, and answers that are near.

The site is built once, strictly: a link to nowhere or a page outside the navigation ends it.
"""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from collections import deque
from pathlib import Path
from urllib.parse import unquote

import click
import pytest

from harness.cli.main import main
from harness.core.tables import read_table
from harness.core.verdict import Verdict
from harness.report.terminal import causes
from harness.system import settings
from harness.system.settings import Settings
from tests.chromium import chromium
from tools.clone import project_root
from tools.reference import expected_pages, shown_file

DESCRIBED = read_table(settings.__file__)
# What somebody asks who has only the docs: the page that answers, and words of the answer.
QUESTIONS = {
    "How do I install it without a clone?": ("start/install", "pip install"),
    "What is missing on my machine?": ("start/install", "hil doctor"),
    "How do I start in my own repository?": ("start/repository", "hil init my-models"),
    "What must a model file define?": ("how-to/own-model", "ModelInputs"),
    "How do I allow a difference of one step?": ("how-to/own-model", "tolerance_lsb"),
    "How do I describe my board's memory?": ("how-to/own-board", "origin: 0x31000000"),
    "What does allocation_failed mean?": ("reference/verdicts", "A pool is too small"),
    "What does exit status 3 mean?": ("reference/cli", "3 infrastructure"),
    "Where does it look for the FVP?": ("reference/settings", "HIL_FVP_DIR"),
    "How do I run one target's tests with pytest?": ("how-to/ci", "pytest -m cortex_m55"),
    "Have you a pipeline for GitLab?": ("how-to/ci", "before_script"),
    "How do I accept a larger program?": ("how-to/sizes", "--only size"),
    "Which field of the JSON has the cause?": ("reference/json", "cause"),
    "Which fixtures does the plugin have?": ("reference/pytest", "hil_reference"),
    "Can a model read my files?": ("security", "--isolate-export"),
    "Why is a symbol undefined?": ("how-to/link-failures", "hil link explain"),
    "Was it ever run on a real FVP?": ("explanation/limits", "No Arm FVP"),
}


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    argv = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(folder),
    ]
    environ = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(argv, cwd=project_root(), env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def article(page: Path) -> str:
    """Its text, without the navigation."""
    body = re.search(r"<article.*?</article>", page.read_text("utf-8"), re.S)
    assert body is not None
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", body[0])).split())


def links(page: Path, site: Path) -> set[Path]:
    found = re.findall(r'<a [^>]*href="([^"#:]+)', page.read_text("utf-8"))
    there = (Path(os.path.normpath(page.parent / unquote(link))) for link in found)
    return {target for target in there if target.suffix == ".html" and target.is_relative_to(site)}


@pytest.fixture(scope="session")
def clicks(site: Path) -> dict[Path, int]:
    """How many clicks each page is from the first one."""
    first = site / "index.html"
    away, waiting = {first: 0}, deque([first])
    while waiting:
        page = waiting.popleft()
        for target in links(page, site) - away.keys():
            away[target] = away[page] + 1
            waiting.append(target)
    return away


def test_there_are_fifteen() -> None:
    assert len(QUESTIONS) >= 15


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_is_near(question: str, site: Path, clicks: dict[Path, int]) -> None:
    name, words = QUESTIONS[question]
    page = site / f"{name}.html"
    assert clicks[page] <= 3
    assert words in article(page)


def test_every_page_is_reached(site: Path, clicks: dict[Path, int]) -> None:
    pages = {page for page in site.rglob("*.html") if page.name != "404.html"}
    assert pages == set(clicks)


def test_search_finds_a_page_in_a_site_that_is_opened_as_files(site: Path) -> None:
    """Browsers start no Worker from file://; docs/javascripts/iframe-worker.js stands in for it."""
    with chromium("1200,900") as browser:
        from selenium.webdriver.support.ui import WebDriverWait

        browser.get((site / "how-to" / "sizes.html").as_uri())
        browser.execute_script("document.querySelector('#__search').click()")
        browser.find_element("css selector", ".md-search__input").send_keys("allocation_failed")
        waiting = WebDriverWait(browser, 60)
        found = waiting.until(lambda b: b.find_elements("css selector", ".md-search-result__link"))
        assert any("reference/verdicts.html" in link.get_attribute("href") for link in found)


def test_the_reference_has_all(site: Path) -> None:
    context = click.Context(main, info_name="hil")
    verbs = {f"hil {name}" for name in main.list_commands(context)}
    for page, words in (
        ("verdicts", {*map(str, Verdict), *causes()}),
        ("settings", {*DESCRIBED["settings"], *DESCRIBED["variables"]}),
        ("cli", verbs),
    ):
        text = article(site / "reference" / f"{page}.html")
        assert not [word for word in words if word not in text]
    whole = (site / "reference" / "cli.html").read_text("utf-8")
    headings = set(re.findall(r'<h[23] id="([^"]+)"', whole))
    assert headings >= {verb.replace(" ", "-") for verb in verbs}


def test_every_setting_and_variable_is_reported() -> None:
    """The variables that the code asks for by name, but for those of tests and of single tools."""
    fields = set(Settings.__dataclass_fields__) - {"folder"}
    assert set(DESCRIBED["settings"]) == fields
    script = (project_root() / "hil").read_text("utf-8")
    used = set(re.findall(r"HIL_[A-Z_]+(?=[ =])", script.partition("set -eu")[0]))
    for path in (project_root() / "harness").rglob("*.py"):
        used |= set(
            re.findall(
                r'(?:environ(?:\.get\(|\[)|^[A-Z]+(?:_VARIABLE)? = )"(HIL_[A-Z_]+)"',
                path.read_text("utf-8"),
                re.M,
            )
        )
    of_builds = {"HIL_ARITHMETIC", "HIL_REGION_"}  # options of the runner's CMake
    of_tests = {
        "HIL_CI_TESTS",
        "HIL_STANDIN_RECORD",
        "HIL_STANDIN_RUNNERS",
        "HIL_BENCH_HISTORY",
    }
    assert used - of_builds - of_tests == {
        v for v in DESCRIBED["variables"] if v.startswith("HIL_")
    }


def test_a_dead_link_ends_the_build(tmp_path: Path) -> None:
    """A small site with the same settings and the same hook."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Page\n\n[x](no.md) [y](index.md#nothing)\n")
    whole = (project_root() / "mkdocs.yml").read_text().partition("\nnav:")[0]
    small = re.sub(r"^theme:.*?(?=^plugins)", "theme: {name: mkdocs}\n", whole, flags=re.M | re.S)
    # The plain theme lacks Material's plugins.
    for old, new in (
        ("extra_css: [stylesheets/extra.css]\n", ""),
        ("[search, offline]", "[search]"),
    ):
        assert old in small
        small = small.replace(old, new)
    (tmp_path / "mkdocs.yml").write_text(small)
    argv = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "'no.md'" in done.stderr
    assert "'nothing'" in done.stderr or "#nothing" in done.stderr


def test_generated_pages_and_shown_files_are_up_to_date() -> None:
    """`python -m tools.reference` writes them."""
    stale = [p.name for p, content in expected_pages().items() if p.read_text("utf-8") != content]
    assert not stale


def test_pages_stand_by_themselves_on_github() -> None:
    """No page is an instruction to include something else, and relative links lead to files."""
    for page in (project_root() / "docs").rglob("*.md"):
        body = re.sub(r"<!--.*?-->", "", page.read_text("utf-8"), flags=re.S)
        assert len(body.split()) > 40, page


def test_the_readme_is_for_ten_minutes_and_its_links_lead_to_files() -> None:
    readme = (project_root() / "README.md").read_text("utf-8")
    assert len(readme.splitlines()) <= 180
    links = re.findall(r"\]\((?!https?:)([^)#]+)", readme)
    assert len(links) > 20
    assert not [link for link in links if not (project_root() / link).is_file()]


def test_a_file_that_is_gone_is_noticed() -> None:
    with pytest.raises(FileNotFoundError, match="no/such/file"):
        shown_file("no/such/file")
