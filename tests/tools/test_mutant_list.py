"""The list of bugs: what is malformed is named with its line, and a bug is put where it belongs."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from harness.config.case import parse_case
from harness.config.loading import load_target
from harness.config.models import find_model
from harness.config.schema import checked
from harness.core.errors import TargetError
from harness.firmware.choice import choose
from harness.suites.suites import SUITES
from tools.bench.mutant_list import CheckoutMutant, read_mutants
from tools.clone import project_root

GOOD = {"bug": "stride", "file": "a.c", "find": "x", "put": "y", "cases": ("host/add",)}


def test_it_covers_the_kinds_of_bugs_it_is_for() -> None:
    mutants = read_mutants().mutants
    kinds = Counter(mutant.bug for mutant in mutants.values() if mutant.equivalent is None)
    wanted = {
        "rounding",
        "saturation",
        "padding",
        "stride",
        "scratch",
        "memory plan",
        "instruction order",
        "I/O copy",
    }
    assert sum(kinds.values()) >= 40
    assert all(kinds[kind] >= 3 for kind in wanted), kinds
    targets = {case.split("/")[0] for mutant in mutants.values() for case in mutant.cases}
    assert {"corstone-300-m55", "corstone-300-u55-128", "corstone-320-u85-256"} <= targets


def test_every_run_that_it_names_can_be_asked_for() -> None:
    """Before hours of building: targets, models and suites are there."""
    for mutant in read_mutants().mutants.values():
        for text in mutant.cases:
            case = parse_case(text)
            load_target(case.target)
            named = case.model.endswith(".py")
            find_model(str(project_root() / case.model) if named else case.model)
        assert mutant.suite is None or mutant.suite.name in SUITES


def test_it_quotes_no_more_than_it_takes_to_find_the_place() -> None:
    for name, mutant in read_mutants().mutants.items():
        assert len(mutant.find) <= 60, name
        assert "\n" not in mutant.find, name


@pytest.mark.parametrize(
    ("entry", "line", "said"),
    [
        ("{bug: b, file: f, find: x, put: y, cases: [host]}", 3, "'host' is not a case"),
        ("{bug: b, file: f, find: x, put: y}", 3, "neither `cases` nor a `suite`"),
        ("{bug: b, file: f, find: x, put: x, cases: [a/b]}", 3, "is there already"),
        ("{bug: b, file: /f, find: x, put: y, cases: [a/b]}", 3, "is not below the sources"),
        ("{bug: b, file: ../f, find: x, put: y, cases: [a/b]}", 3, "is not below the sources"),
        ("{bug: b, file: f, find: x, put: y, nth: 2, cases: [a/b]}", 3, "no number 2 of 1"),
        ("{bug: b, file: f, find: x, put: y, of: 0, cases: [a/b]}", 3, "at least 1"),
        (
            "{bug: b, find: x, put: y, cases: [a/b]}",
            3,
            "required key 'mutants.one.file' is missing",
        ),
        ("\n    {bug: b, file: f, find: x, put: y,\n     kases: [a/b]}", 5, "unknown key"),
    ],
)
def test_a_malformed_entry_is_named_with_its_line(
    tmp_path: Path, entry: str, line: int, said: str
) -> None:
    path = tmp_path / "list.yaml"
    path.write_text(f"written_for: abc\nmutants:\n  one: {entry}\n")
    with pytest.raises(TargetError) as caught:
        read_mutants(path)
    assert said in caught.value.message
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("text", "place", "planted"),
    [
        ("a x b", {}, "a y b"),
        ("x x x", {"of": 3, "nth": 2}, "x y x"),
        ("x x", {}, None),
        ("", {}, None),
        ("x x", {"of": 3}, None),
    ],
)
def test_the_place_is_found_or_is_not(
    text: str, place: dict[str, int], planted: str | None
) -> None:
    assert checked(CheckoutMutant, {**GOOD, **place}).planted(text) == planted


def test_occurrences_that_overlap_are_counted_as_one() -> None:
    """str.count does so, and the place must be the one that was counted."""
    mutant = checked(CheckoutMutant, {**GOOD, "find": "xx", "of": 2, "nth": 2})
    assert mutant.planted("xxx xx") == "xxx y"


@pytest.mark.skipif("EXECUTORCH_ROOT" not in os.environ, reason="needs a checkout of ExecuTorch")
def test_every_place_is_in_the_checkout() -> None:
    """Of the parts, only those that are given in the settings."""
    root = Path(os.environ["EXECUTORCH_ROOT"])
    parts = choose("executorch", root, ()).parts
    for name, mutant in read_mutants().mutants.items():
        base = root if mutant.part is None else parts.get(mutant.part)
        if base is not None:
            assert mutant.planted((base / mutant.file).read_text("utf-8")) is not None, name
