"""A log pattern is one row of patterns.yaml: no row is dead, and a new row needs no other edit."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.log.events import Doubt, Item, Kind, Observation, StopReason
from harness.log.parser import gate_of_bare_lines, parse_console
from harness.log.pattern import PATTERNS, Pattern, PatternTable, gate, rows, sections
from tests.log.lines import log
from tests.log.needles import implied, ways

ROWS = {
    f"{section}[{number}] {row.example[:40]!r}": (section, row)
    for section, found in sections().items()
    for number, row in enumerate(found)
}
# Sections by how the parser sees their rows: as a whole line, or behind a runner's prefix.
LINES = {
    *("runner", "host", "driver", "zephyr", "no_driver", "outputs", "faults", "anywhere", "npu"),
    *("harmless", "inside", "heads", "stops", "versions", "stages", "launches", "guest"),
    *("failed_jobs", "failure_words", "suspects"),
}
MESSAGES = {
    *("harmless", "ignored", "anywhere", "messages", "npu", "steps"),
    *("inside", "heads", "message_heads"),
}
HEALTHY = log(
    "mid 2025",
    "Model PTE file loaded. Size: 960 bytes.",
    "Method loaded.",
    "model_pte_loaded_size:     960 bytes.",
    "Model executed successfully.",
    "TEST: BundleIO index[0] Test_result: PASS",
    "Program complete, exiting.",
)
# What a line says beside that which its row is for.
ALSO = {
    b"*** Booting Zephyr OS build v4.2.0 ***": {"booted", "versions"},
    b"[    0.000000] Linux version 6.12.0-yocto (oe@host)": {"booted", "versions"},
    b"Writing output to file: out-0.bin": {"output_files", "output_written"},
    b"E [executorch:arm_executor_runner.cpp:211 main()] broken": {"runner_error", "runner_started"},
    b"[method.cpp:788] Missing operator: [7] aten::native_layer_norm.out": {
        "operator_missing",
        "runner_started",
    },
    b"E: something broke (ethosu_driver.c:411)": {"runner_error"},
    b"[00:00:00.010,000] <err> app: out of luck": {"suspected runner_error"},
}
NOTHING = (Item.NOISE, Item.NO_TENSOR, Item.SCRIPT, Item.FILE)
# What a row adds to an observation, where that is not an event of its own name.
FIELDS = {
    Item.METRIC: "metrics",
    Item.TICKS: "metrics",
    Item.CYCLES: "metrics",
    Item.COUNTER: "pmu",
    Item.BUNDLE_PASS: "bundle_passes",
    Item.OUTPUT_FILE: "output_files",
    Item.OUTPUT_COUNT: "output_count",
    Item.PRINTED_ELEMENT: "tensors",
    Item.ELEMENT: "tensors",
    Item.TENSOR: "tensors",
    Item.VERSION: "versions",
}


def said(seen: Observation) -> list[str]:
    """All that an observation tells, each as one word or two."""
    counted = {
        "metrics": seen.metrics,
        "pmu": seen.pmu,
        "op_ticks": seen.op_ticks,
        "build_id": [seen.build_id] if seen.build_id else [],
        "bundle_passes": seen.bundle_lines,
        "output_files": seen.output_files,
        "output_count": [] if seen.output_count is None else [seen.output_count],
        "tensors": seen.tensors,
        "versions": seen.versions,
        "stop": [seen.stop] if seen.stop else [],
    }
    return [
        *(event.kind.value for event in seen.failures),
        *(f"suspected {event.kind.value}" for event in seen.suspects),
        *(step.stage.value for step in seen.progress),
        *(name for name, things in counted.items() for _ in things),
    ]


def new(before: bytes, line: bytes) -> set[str]:
    told, rest = said(parse_console(before)), []
    for word in said(parse_console(before + line + b"\n")):
        told.remove(word) if word in told else rest.append(word)
    assert len(set(rest)) == len(rest), f"said twice: {rest}"
    return set(rest)


def expected(row: Pattern) -> set[str]:
    if row.example in ALSO:
        return ALSO[row.example]
    if row.kind in NOTHING:
        return set()
    if isinstance(row.kind, StopReason):
        return {"stop"}
    word = FIELDS.get(row.kind) or row.kind.value
    return {f"suspected {word}" if row.doubt is Doubt.ALWAYS else word}


def named(*sections: str) -> list[str]:
    return [name for name, (section, _) in ROWS.items() if section in sections]


@pytest.mark.parametrize("name", named(*LINES))
def test_an_example_line_is_its_event_and_no_other(name: str) -> None:
    """Alone, and behind a healthy run."""
    _, row = ROWS[name]
    assert row.search(row.example), "the row does not fit its own example"
    assert new(b"", row.example) == expected(row)
    behind = expected(row) - {"runner_started"}
    assert new(HEALTHY, row.example) == behind
    assert new(HEALTHY.replace(b"\n", b"\r\n"), row.example + b"\r") == behind


@pytest.mark.parametrize("name", named(*MESSAGES))
def test_an_example_message_is_its_event_at_any_level(name: str) -> None:
    _, row = ROWS[name]
    for prefix in (
        b"I [executorch:a.cpp:1 f()] ",
        b"[method.cpp:788] ",
        b"D executorch:a.cpp:60] ",
    ):
        assert new(b"", prefix + row.example) == expected(row) | {"runner_started"}
        assert new(HEALTHY, prefix + row.example) == expected(row)


@pytest.mark.parametrize("name", named("errors"))
def test_a_row_for_error_lines_is_its_event_only_there(name: str) -> None:
    _, row = ROWS[name]
    for prefix in (b"E [executorch:a.cpp:1 f()] ", b"F executorch:a.cpp:60] ", b"E: "):
        assert new(HEALTHY, prefix + row.example) == expected(row)
    assert new(HEALTHY, b"I [executorch:a.cpp:1 f()] " + row.example) == set()


def test_every_section_is_read() -> None:
    assert LINES | MESSAGES | {"errors"} == sections().keys()
    assert len(ROWS) > 200


def test_the_table_is_read_quickly() -> None:
    """At most 30 ms on a quiet machine; the best of five, so that a busy one passes."""
    times = []
    for _ in range(5):
        start = time.process_time()
        sections.__wrapped__()
        times.append(time.process_time() - start)
    assert min(times) < 0.03


@pytest.mark.parametrize("name", ROWS)
def test_a_regular_expression_implies_its_needles(name: str) -> None:
    """A line that fits and has no needle would never be looked at."""
    section, row = ROWS[name]
    assert implied(row.regex, row.needles) == []
    if section in ("heads", "message_heads"):
        bare = [way for way in ways(row.regex) if not way.encode("latin-1").startswith(row.needles)]
        assert bare == [], "a line must begin with the needle"


def test_a_needle_that_is_not_implied_is_found_out() -> None:
    assert implied(rb"a (?:big|small) fault", (b"small fault", b"big")) == []
    assert implied(rb"a (?:big|small) fault", (b"small",)) == ["a big fault"]
    assert implied(rb"(?i:fault)", (b"fault",)) != []
    assert implied(rb"(?:fault)?", (b"fault",)) != []
    assert implied(rb"fault", ()) != []
    assert implied(rb"[Ff]ault", (b"fault",)) == ["Fault"]
    assert implied(rb"^(?=.*fault)x", (b"fault",)) == []


def test_noise_would_be_a_failure_without_its_row() -> None:
    launches = rows("launches")
    for row in launches:
        if row.kind is Item.NOISE:
            without = tuple(other for other in launches if other is not row)
            assert PatternTable(without).first(row.example) is not None
            first = PatternTable(launches).first(row.example)
            assert first is not None
            assert first[0] is row
    apt, after_fault = rows("no_driver")
    assert said(parse_console(apt.example.replace(b"Unable to", b"Unwilling to"))) != []
    assert said(parse_console(after_fault.example.replace(b"thread", b"thirst"))) != []


PLANTED = {
    "faults": ("hard_fault", b"WDOG reset", ["hard_fault"]),
    "messages": ("bad_program", b"I [executorch:a.cpp:1 f()] WDOG reset", ["bad_program"]),
    "message_heads": ("executed", b"I [executorch:a.cpp:1 f()] WDOG reset", []),
    "launches": ("simulator_error", b"WDOG reset", ["simulator_error"]),
}


@pytest.mark.parametrize("section", PLANTED)
def test_a_new_row_works_with_no_other_edit(section: str, tmp_path: Path) -> None:
    """One row in patterns.yaml, in a copy of the package; nothing else knows of it."""
    kind, line, kinds = PLANTED[section]
    package = PATTERNS.parent
    for name in ("log", "core"):
        shutil.copytree(package.parent / name, tmp_path / "harness" / name)
    (tmp_path / "harness" / "__init__.py").touch()
    table = tmp_path / "harness" / "log" / PATTERNS.name
    row = (
        f"- kind: {kind}\n  needle: WDOG\n  regex: WDOG reset\n  example: WDOG reset\n"
        "  source: a test\n"
    )
    text, count = re.subn(rf"(?m)^{section}:\n", lambda match: match[0] + row, table.read_text())
    assert count == 1
    program = (
        "import sys; from harness.log.parser import parse_console; "
        f"seen = parse_console({line!r}); "
        "print([f.kind.value for f in seen.failures], [p.stage.value for p in seen.progress])"
    )
    answers = []
    for content in (table.read_text(), text):
        table.write_text(content)
        command = [sys.executable, "-c", program]
        answers.append(
            subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True).stdout
        )
    runner = ["runner_started"] if b"executorch" in line else []
    executed = [*runner, "executed"] if kind == "executed" else runner
    assert answers == [f"[] {runner}\n", f"{kinds} {executed}\n"]


def row_of(needle: bytes, kind: Kind | Item = Kind.HARD_FAULT) -> Pattern:
    return Pattern(kind, (needle,), re.escape(needle), needle, "a test")


def test_the_gate_lets_every_line_with_a_needle_pass() -> None:
    """Whatever the words have in common, and wherever they stand (seed 11)."""
    rng = random.Random(11)
    for _ in range(200):
        needles = [
            bytes(rng.choice(b"ab:E ") for _ in range(rng.randint(1, 9)))
            for _ in range(rng.randint(1, 12))
        ]
        passes = gate(tuple(map(row_of, needles)))
        for needle in needles:
            assert passes(b"zz" + needle + b"yy"), (needles, needle)


def test_the_gate_keeps_prose_out() -> None:
    """It is there for speed: a line of prose must not get to the tables."""
    prose = b"the model runs a layer and then another one, with weights in memory, for a while"
    assert not gate_of_bare_lines()(prose)


def test_the_first_row_that_fits_counts() -> None:
    first, second = row_of(b"fault 1"), row_of(b"fault")
    noise = row_of(b"no fault", Item.NOISE)
    found = {}
    for line in (b"a fault 1", b"a fault 2", b"no fault 1", b"fine"):
        match = PatternTable((noise, first, second)).first(line)
        found[line] = match and match[0]
    assert found == {
        b"a fault 1": first,
        b"a fault 2": second,
        b"no fault 1": noise,
        b"fine": None,
    }
