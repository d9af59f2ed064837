"""The three forms of a report say the same."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console

from harness.report.suite import print_report, write_json, write_junit
from harness.suites.results import SuiteReport, SuiteTest

REPORT = SuiteReport(
    suite="cortex-m",
    simulator="q",
    elf="e",
    tests=(
        SuiteTest("ops/test_add.py::a[x]", "passed", "", 1),
        SuiteTest("ops/test_add.py::b[y]", "failed", "bad \x00 <[red]>", 2, ("aten::x.out",)),
        SuiteTest("ops/test_sub.py::c", "failed", "bad", 2, ("aten::x.out", "aten::y.out")),
        SuiteTest("models/test_m.py", "unsupported", "needs z", 0),
        SuiteTest("models/test_n.py::d", "xfailed", "known", 0, simulated=False),
    ),
    seconds=6,
    log=Path("log"),
    complaints=("a stranger",),
    note="something to know",
)


def test_json(tmp_path: Path) -> None:
    write_json(REPORT, tmp_path / "new" / "r.json")
    data = json.loads((tmp_path / "new" / "r.json").read_text())
    assert data["summary"] == {
        "passed": 1,
        "failed": 2,
        "xfailed": 1,
        "skipped": 0,
        "unsupported": 1,
    }
    assert [test["id"] for test in data["tests"]] == [v.id for v in REPORT.tests]
    assert data["tests"][1]["result"] == "failed"
    assert [test["simulated"] for test in data["tests"]] == [True, True, True, True, False]
    assert data["on_target"] == 4
    assert [o["operator"] for o in data["operators_missing"]] == ["aten::x.out", "aten::y.out"]
    assert len(data["operators_missing"][0]["tests"]) == 2


def test_junit_is_xml_whatever_the_cause(tmp_path: Path) -> None:
    write_junit(REPORT, tmp_path / "r.xml")
    (suite,) = ElementTree.parse(tmp_path / "r.xml").getroot()
    counts = [suite.get(k) for k in ("tests", "failures", "errors", "skipped")]
    assert counts == ["5", "2", "1", "2"]
    assert [f.get("message") for f in suite.iter("failure")] == ["bad \\x00 <[red]>", "bad"]
    assert [e.get("message") for e in suite.iter("error")] == ["a stranger"]


def test_the_table_counts_by_operator() -> None:
    out = StringIO()
    print_report(Console(file=out, width=120), REPORT)
    text = out.getvalue()
    lines = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    assert lines["add"] == ["1", "1", "-", "-", "-"]
    assert lines["models/m"] == ["-", "-", "-", "-", "1"]
    assert "aten::x.out (2)" in text
    assert "ops/test_add.py::b[y]: bad" in text
    assert "a stranger" in text
    assert "something to know" in text
    assert "4 of 5 tests run something on the target" in text
    assert "beyond the NPU model" not in text


def test_what_the_npu_model_does_not_do_is_counted() -> None:
    out = StringIO()
    beyond = SuiteTest("ops/test_div.py::t", "unsupported", "the NPU model: DIV = 1", 1)
    verdicts = (beyond, *REPORT.tests[:1])
    print_report(Console(file=out, width=120), replace(REPORT, tests=verdicts))
    assert "beyond the NPU model: 1 of 2 tests (50.0 %)" in out.getvalue()


def test_whose_firmware_it_was_is_in_every_form(tmp_path: Path) -> None:
    theirs = replace(REPORT, firmware="executorch cff6f4dd")
    out = StringIO()
    print_report(Console(file=out, width=120), theirs)
    assert "cortex-m [executorch cff6f4dd] on q: 1 passed" in out.getvalue()
    assert theirs.as_json()["firmware"] == "executorch cff6f4dd"
    assert REPORT.as_json()["firmware"] == "bundled"
    write_junit(theirs, tmp_path / "r.xml")
    (found,) = ElementTree.parse(tmp_path / "r.xml").getroot().iter("property")
    assert found.attrib == {"name": "firmware", "value": "executorch cff6f4dd"}
