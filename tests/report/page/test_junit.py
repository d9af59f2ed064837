"""Protects the JUnit file of a night: Jenkins and GitLab take it, and count as we do."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.nightly.history.compare import compare
from harness.report.page.render import write_page
from harness.system.files import DiskError

from .nights import EVIL, M55, U55, U85, two_nights

# What Jenkins' xUnit plugin takes (its junit-10.xsd): the attributes, those that have to be there
# marked, and what may be below.
RULES = {
    "testsuites": ("name time tests failures errors", "testsuite"),
    "testsuite": (
        "name! tests! failures! errors! group time skipped timestamp hostname id package "
        "file log url",
        "testsuite properties testcase system-out system-err",
    ),
    "properties": ("", "property"),
    "property": ("name! value!", ""),
    "testcase": (
        "name! time classname group",
        "skipped error failure rerunFailure rerunError "
        "flakyFailure flakyError system-out system-err",
    ),
    "skipped": ("type message", ""),
    "error": ("type message", ""),
    "failure": ("type message", ""),
    "rerunError": ("type! message", "stackTrace system-out system-err"),
    "flakyError": ("type! message", "stackTrace system-out system-err"),
}
TIME = re.compile(r"(?:(?:[0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(?:\.[0-9]*)?")


def check(element: ElementTree.Element) -> None:
    attributes, below = RULES[element.tag]
    known = {word.rstrip("!") for word in attributes.split()}
    needed = {word.rstrip("!") for word in attributes.split() if word.endswith("!")}
    assert needed <= set(element.attrib) <= known, element.tag
    if "time" in element.attrib:
        assert TIME.fullmatch(element.attrib["time"])
    for child in element:
        assert child.tag in below.split(), (element.tag, child.tag)
        check(child)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> ElementTree.Element:
    folder = tmp_path_factory.mktemp("junit")
    history, night = two_nights(folder)
    write_page(folder / "night.xml", compare(history, night), "night.xml")
    history.close()
    return ElementTree.parse(folder / "night.xml").getroot()


def test_jenkins_takes_it(root: ElementTree.Element) -> None:
    assert root.tag == "testsuites"
    check(root)


def test_gitlab_tells_every_case_from_the_others(root: ElementTree.Element) -> None:
    """By class and name; of two that are the same it forgets one."""
    names = Counter((c.get("classname"), c.get("name")) for c in root.iter("testcase"))
    assert max(names.values()) == 1
    assert (M55, "add [executorch]") in names
    assert (M55, EVIL) in names


def test_what_is_counted_is_there(root: ElementTree.Element) -> None:
    """A failure of the product, an error of the infrastructure, a skip in quarantine."""
    for suite in root:
        cases = list(suite.iter("testcase"))
        counted = {"tests": len(cases)} | {
            name: sum(case.find(tag) is not None for case in cases)
            for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
        }
        assert {name: int(str(suite.get(name))) for name in counted} == counted
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("15", "7", "2")
    quarantined = next(
        c
        for c in root.iter("testcase")
        if (c.get("classname"), c.get("name")) == (U85, "mobilenet")
    )
    skipped = quarantined.find("skipped")
    assert skipped is not None
    assert "bug 1234" in str(skipped.get("message"))


def test_a_failure_says_what_to_look_at_and_do(root: ElementTree.Element) -> None:
    """Whether it is new, the cause, the marked line, what changed and the command."""
    failure = next(f for f in root.iter("failure") if f.get("type") == "MISMATCH")
    assert str(failure.get("message")).startswith("new: MISMATCH outputs_differ: output 0")
    text = str(failure.text)
    assert ">      7 E here <script>" in text
    assert f"sources: {'a' * 40} -> {'b' * 40}" in text
    assert f"$ hil run {M55} ds_cnn" in text


def test_a_second_try_is_reported(root: ElementTree.Element) -> None:
    case = next(
        c for c in root.iter("testcase") if c.get("classname") == U55 and c.get("name") == "resnet8"
    )
    assert [child.tag for child in case] == ["error", "rerunError"]


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    history, night = two_nights(tmp_path)
    page = compare(history, night)
    history.close()
    with pytest.raises(DiskError, match=r"writing night\.xml"):
        write_page(tmp_path / "none" / "night.xml", page, "night.xml")
