"""A log pattern is one row: no row is dead, and a new one needs no other edit."""

from __future__ import annotations

import importlib
import pkgutil
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import harness.observe
from harness.observe import (
    Kind,
    Observation,
    Stage,
    console,
    failures,
    faults,
    figures,
    observe,
    reader,
    tensors,
)
from harness.observe.figures import RunnerWord
from harness.observe.pattern import Pattern, gate, heads, table
from harness.observe.tensors import Printed
from tests.observe.lines import log
from tests.observe.needles import implied, ways

ROOM = Path(harness.observe.__path__[0])


def _rows() -> dict[str, Pattern[Any]]:
    """Every row of every module of the room, by where it stands."""
    found = {}
    for module in pkgutil.iter_modules([str(ROOM)]):
        names = vars(importlib.import_module(f"harness.observe.{module.name}"))
        for name, value in names.items():
            rows = value if isinstance(value, tuple) else (value,)
            for number, row in enumerate(rows):
                if isinstance(row, Pattern) and row not in found.values():
                    found[f"{module.name}.{name}[{number}] {row.example[:40]!r}"] = row
    return found


ROWS = _rows()
# Rows by how their examples reach the reader: as a whole line, or behind a runner's prefix.
LINES = {*reader.rows_anywhere(), reader.RUNNER, reader.APT, reader.AFTER_FAULT}
MESSAGES = {
    *failures.ANYWHERE, *failures.MESSAGES, *failures.NPU, *failures.LOADING, *failures.STEPS,
    failures.TIMING_ADAPTER, failures.IGNORED, *figures.INSIDE, *figures.ANYWHERE,
    *figures.MESSAGES,
}  # fmt: skip
HEALTHY = log("mid 2025", "Model PTE file loaded. Size: 960 bytes.", "Method loaded.",
              "model_pte_loaded_size:     960 bytes.", "Model executed successfully.",
              "TEST: BundleIO index[0] Test_result: PASS", "Program complete, exiting.",
              )  # fmt: skip
# What a line says beside that which its row is for.
ALSO = {
    b"*** Booting Zephyr OS build v4.2.0 ***": {"booted", "versions"},
    b"[    0.000000] Linux version 6.12.0-yocto (oe@host)": {"booted", "versions"},
    b"Writing output to file: out-0.bin": {"output_files", "output_written"},
    b"E [executorch:arm_executor_runner.cpp:211 main()] broken": {"runner_error", "runner_started"},
    b"[method.cpp:788] Missing operator: [7] aten::native_layer_norm.out": {
        "operator_missing", "runner_started"},
    b"E: something broke (ethosu_driver.c:411)": {"runner_error"},
    b"[00:00:00.010,000] <err> app: out of luck": {"suspected runner_error"},
    b"runner 0: Received inference job. job=0x205d340": {"executing"},
}  # fmt: skip
NOTHING = (None, Printed.NONE, Printed.SCRIPT)
FIELDS = {
    RunnerWord.TICKS: "metrics", Printed.ELEMENT: "tensors", Printed.TENSOR: "tensors",
    Printed.FILE: "blocks",
}  # fmt: skip


def said(seen: Observation) -> list[str]:
    """All that an observation tells, each as one word or two."""
    counted = {
        "metrics": seen.metrics, "pmu": seen.pmu, "op_ticks": seen.op_ticks,
        "build_id": [seen.build_id] if seen.build_id else [],
        "bundle_passes": seen.bundle_lines, "output_files": seen.output_files,
        "tensors": seen.tensors, "blocks": seen.blocks, "ports": seen.ports,
        "versions": seen.versions, "stop": [seen.stop] if seen.stop else [],
    }  # fmt: skip
    return [
        *(event.kind.value for event in seen.failures),
        *(f"suspected {event.kind.value}" for event in seen.suspects),
        *(step.stage.value for step in seen.progress),
        *(name for name, things in counted.items() for _ in things),
    ]


def new(before: bytes, line: bytes) -> set[str]:
    told, rest = said(observe(before)), []
    for word in said(observe(before + line + b"\n")):
        told.remove(word) if word in told else rest.append(word)
    assert len(set(rest)) == len(rest), f"said twice: {rest}"
    return set(rest)


def expected(row: Pattern[Any]) -> set[str]:
    if row.example in ALSO:
        return ALSO[row.example]
    if row.kind in NOTHING:
        return set()
    suspected = row in console.SUSPECTS or row is failures.TIMING_ADAPTER
    if row in console.STOPS:
        return {"stop"}
    if row in console.VERSIONS:
        return {"versions"}
    word = FIELDS.get(row.kind) or getattr(row.kind, "value", row.kind)
    return {f"suspected {word}" if suspected else word}


@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if row in LINES])
def test_a_rows_example_is_its_event_and_no_other(name: str) -> None:
    """Alone, and behind a healthy run."""
    row = ROWS[name]
    assert row.search(row.example), "the row does not fit its own example"
    assert new(b"", row.example) == expected(row)
    behind = expected(row) - {"runner_started"}
    assert new(HEALTHY, row.example) == behind
    assert new(HEALTHY.replace(b"\n", b"\r\n"), row.example + b"\r") == behind


@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if row in MESSAGES])
def test_a_rows_message_is_its_event_at_any_level(name: str) -> None:
    row = ROWS[name]
    for prefix in (
        b"I [executorch:a.cpp:1 f()] ",
        b"[method.cpp:788] ",
        b"D executorch:a.cpp:60] ",
    ):
        assert new(b"", prefix + row.example) == expected(row) | {"runner_started"}
        assert new(HEALTHY, prefix + row.example) == expected(row)


@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if row in failures.ERRORS])
def test_a_row_for_error_lines_is_its_event_there_alone(name: str) -> None:
    row = ROWS[name]
    for prefix in (b"E [executorch:a.cpp:1 f()] ", b"F executorch:a.cpp:60] ", b"E: "):
        assert new(HEALTHY, prefix + row.example) == expected(row)
    assert new(HEALTHY, b"I [executorch:a.cpp:1 f()] " + row.example) == set()


def test_every_row_is_in_a_table_that_is_read() -> None:
    read = LINES | MESSAGES | {*failures.ERRORS, reader.DRIVER}
    assert not [name for name, row in ROWS.items() if row not in read]
    assert len(ROWS) > 150


@pytest.mark.parametrize("name", ROWS)
def test_a_regular_expression_implies_its_needles(name: str) -> None:
    """A line that fits and has no needle would never be looked at."""
    row = ROWS[name]
    assert implied(row.regex, row.needles) == []
    if row in (*figures.MESSAGES, *figures.ANYWHERE):
        bare = [way for way in ways(row.regex) if not way.encode("latin-1").startswith(row.needles)]
        assert bare == [], "a line must begin with the needle"


def test_a_needle_that_is_not_implied_is_found_out() -> None:
    assert implied(rb"a (?:big|small) fault", (b"small fault", b"big")) == []
    assert implied(rb"a (?:big|small) fault", (b"small",)) == ["a big fault"]
    assert implied(rb"(?i:fault)", (b"fault",)) != []
    assert implied(rb"(?:fault)?", (b"fault",)) != []
    assert implied(rb"[Ff]ault", (b"fault",)) == ["Fault"]
    assert implied(rb"^(?=.*fault)x", (b"fault",)) == []


def test_what_only_looks_like_a_failure_would_be_one_without_its_row() -> None:
    """Rows for noise, and the package manager's errors, are not there for nothing."""
    for row in console.LAUNCHES:
        if row.kind is None:
            without = tuple(other for other in console.LAUNCHES if other is not row)
            assert table(without).first(row.example) is not None
            assert table(console.LAUNCHES).first(row.example)[0] is None  # type: ignore[index]
    assert said(observe(reader.APT.example.replace(b"Unable to", b"Unwilling to"))) != []
    assert said(observe(reader.AFTER_FAULT.example.replace(b"thread", b"thirst"))) != []


PLANTED = {
    "faults.py": ("FAULTS", "Kind.HARD_FAULT", b"WDOG reset", ["hard_fault"]),
    "failures.py": ("MESSAGES", "Kind.BAD_PROGRAM", b"I [executorch:a.cpp:1 f()] WDOG reset",
                    ["bad_program"]),
    "figures.py": ("MESSAGES", "Stage.EXECUTED", b"I [executorch:a.cpp:1 f()] WDOG reset", []),
    "console.py": ("LAUNCHES", "Kind.SIMULATOR_ERROR", b"WDOG reset", ["simulator_error"]),
}  # fmt: skip


@pytest.mark.parametrize("file", PLANTED)
def test_a_new_row_works_with_no_other_edit(file: str, tmp_path: Path) -> None:
    """One row in one file, in a copy of the room; nothing else knows of it."""
    name, kind, line, kinds = PLANTED[file]
    for room in ("observe", "errors"):
        shutil.copytree(ROOM.parent / room, tmp_path / "harness" / room)
    (tmp_path / "harness" / "__init__.py").touch()
    source = tmp_path / "harness" / "observe" / file
    row = f'    Pattern({kind}, (b"WDOG",), rb"WDOG reset", b"WDOG reset", "a test"),\n'
    text, count = re.subn(rf"(?m)^{name}: .* = \($\n", lambda found: found[0] + row,
                          source.read_text())  # fmt: skip
    assert count == 1
    program = (
        "import sys; from harness.observe import observe; "
        f"seen = observe({line!r}); "
        "print([f.kind.value for f in seen.failures], [p.stage.value for p in seen.progress])"
    )
    answers = []
    for content in (source.read_text(), text):
        source.write_text(content)
        shutil.rmtree(source.parent / "__pycache__", ignore_errors=True)
        command = [sys.executable, "-c", program]
        answers.append(
            subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True).stdout
        )
    runner = ["runner_started"] if b"executorch" in line else []
    executed = [*runner, "executed"] if kind == "Stage.EXECUTED" else runner
    assert answers == [f"[] {runner}\n", f"{kinds} {executed}\n"]


def test_a_row_must_have_needles_and_an_example_with_one() -> None:
    with pytest.raises(ValueError, match="a row without a needle is never looked for"):
        Pattern(Kind.HARD_FAULT, (), rb"x", b"x", "a test")
    with pytest.raises(ValueError, match="a row without a needle is never looked for"):
        Pattern(Kind.HARD_FAULT, (b"x", b""), rb"x", b"x", "a test")
    with pytest.raises(ValueError, match=r"no needle of .* is in the example"):
        Pattern(Kind.HARD_FAULT, (b"WDOG",), rb"WDOG", b"wdog", "a test")


def test_the_gate_lets_every_line_with_a_needle_pass() -> None:
    """Whatever the words have in common, and wherever they stand (seed 11)."""
    rng = random.Random(11)
    for _ in range(200):
        needles = [
            bytes(rng.choice(b"ab:E ") for _ in range(rng.randint(1, 9)))
            for _ in range(rng.randint(1, 12))
        ]
        passes = gate(tuple(Pattern("x", (n,), re.escape(n), n, "") for n in needles))
        for needle in needles:
            assert passes(b"zz" + needle + b"yy"), (needles, needle)


def test_the_gate_keeps_prose_out() -> None:
    """It is there for speed: a line of prose must not get to the tables."""
    prose = b"the model runs a layer and then another one, with weights in memory, for a while"
    assert not gate(reader.rows_anywhere())(prose)


def test_the_first_row_that_fits_counts() -> None:
    first = Pattern("first", (b"fault 1",), rb"fault 1", b"fault 1", "")
    second = Pattern("second", (b"fault",), rb"fault", b"fault", "")
    noise = Pattern(None, (b"no fault",), rb"no fault", b"no fault", "")
    rows: tuple[Pattern[Any], ...] = (noise, first, second)
    kinds = {}
    for line in (b"a fault 1", b"a fault 2", b"no fault 1", b"fine"):
        found = table(rows).first(line)
        kinds[line] = found and found[0]
    assert kinds == {
        b"a fault 1": "first", b"a fault 2": "second", b"no fault 1": None, b"fine": None,
    }  # fmt: skip
    assert heads((second,)).first(b"a fault") is None
    assert heads((second,)).first(b"fault 3") is not None


def test_kinds_of_stages_are_stages() -> None:
    assert {row.kind for row in console.STAGES} <= set(Stage)
    assert {row.kind for row in faults.FAULTS} <= set(Kind)
    assert {row.kind for row in tensors.ROWS} <= set(Printed)
