"""Protects the accepted file: what accepting writes, keeps and leaves out, and damage to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.config.case import RUNNER, Case, parse_case
from harness.core.errors import InfraError, UsageError
from harness.judge.reference import (
    ANY_TOOLCHAIN,
    Acceptance,
    Reference,
    diff,
    load_reference,
    load_truth,
    propose,
    reference_path,
    render,
)
from harness.size.anatomy import Anatomy, Part

CASE = Case("corstone-300-m55", "ds_cnn")
METRICS = {
    "pte_bytes": 51_000,
    "elf_text": 40_000,
    "stack_high_water": 900,
    "stack_high_water_total": 32_768,
    "ticks_set0": 5,
}
ANATOMY = Anatomy(
    "pte",
    12,
    (Part(("constants", "a/b [2]"), 7), Part(("constants", "c"), 5)),
    (Part(("planned buffer 1 of forward", "x"), 3),),
    notes=("a note",),
)


def of_run(**changes: object) -> Acceptance:
    given: dict[str, object] = {
        "toolchain": "gcc 12",
        "reason": "first",
        "when": "2026-01-01",
        "stages": ("run", "program"),
        "figures": METRICS | {"planned_bytes": 7},
        "anatomies": {ANY_TOOLCHAIN: ANATOMY},
        "pte_sha256": "aa",
        "outputs": (("11",),),
    }
    return Acceptance(**(given | changes))  # type: ignore[arg-type]


def written(root: Path, reference: Reference, case: Case = CASE) -> Path:
    path = reference_path(root, case)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(reference))
    return path


def test_round_trip_through_the_file(tmp_path: Path) -> None:
    reference = propose(None, of_run())
    text = written(tmp_path, reference).read_text()
    assert load_reference(tmp_path, CASE) == reference
    assert "ticks_set0" not in text  # time is not a footprint
    assert "_total" not in text  # nor is the size of a pool its use


def test_one_figure_a_line_in_a_stable_order() -> None:
    """So that a change to one figure is one line to review."""
    text = render(propose(None, of_run()))
    assert list(json.loads(text)) == [
        "program",
        "firmware",
        "pte_sha256",
        "outputs",
        "history",
        "anatomies",
    ]
    assert '  "planned_bytes": 7,\n  "pte_bytes": 51000\n' in text
    assert '\n   "elf_text": 40000,\n' in text
    assert '\n  ["11"]\n' in text
    assert '\n    "elf_text": [null, 40000],\n' in text
    assert '\n    "constants/a%2Fb [2]": 7,\n' in text


def test_another_toolchain_keeps_the_first() -> None:
    first = propose(None, of_run())
    second = propose(
        first,
        of_run(
            figures=METRICS | {"elf_text": 41_000, "planned_bytes": 7},
            toolchain="gcc 14",
            reason="new compiler",
            when="2026-02-01",
        ),
    )
    assert second.firmware["gcc 12"]["elf_text"] == 40_000
    assert second.firmware["gcc 14"]["elf_text"] == 41_000
    assert [h["why"] for h in second.history] == ["first", "new compiler"]
    assert second.history[1]["what"]["elf_text"] == [None, 41_000]
    assert "pte_bytes" not in second.history[1]["what"]  # it did not change
    assert '+   "elf_text": 41000' in diff(Path("r.json"), first, second)


def test_accepting_a_size_keeps_the_outputs_and_what_only_a_run_measures() -> None:
    first = propose(None, of_run())
    second = propose(
        first,
        Acceptance(
            "gcc 12",
            "two more operators",
            "2026-02-01",
            ("program", "firmware"),
            {"pte_bytes": 52_000, "planned_bytes": 7, "elf_text": 43_000},
        ),
    )
    assert (second.pte_sha256, second.outputs) == ("aa", (("11",),))
    assert second.firmware["gcc 12"] == {"elf_text": 43_000, "stack_high_water": 900}
    assert second.program == {"pte_bytes": 52_000, "planned_bytes": 7}
    assert second.history[1]["what"] == {
        "pte_bytes": [51_000, 52_000],
        "elf_text": [40_000, 43_000],
    }


def test_accepting_outputs_keeps_every_figure() -> None:
    first = propose(None, of_run())
    accepting = Acceptance("gcc 12", "r", "w", pte_sha256="bb", outputs=(("22",),))
    second = propose(first, accepting)
    assert (second.program, second.firmware) == (first.program, first.firmware)
    assert second.anatomies == first.anatomies
    assert second.outputs == (("22",),)
    assert second.history[1]["what"] == {"pte_sha256": ["aa", "bb"]}


def test_a_figure_that_is_measured_no_more_is_accepted_no_more() -> None:
    """Else it would fail every later run, whatever is accepted."""
    second = propose(propose(None, of_run()), of_run(figures={"pte_bytes": 1}))
    assert second.firmware["gcc 12"] == {}
    assert second.program == {"pte_bytes": 1}


def test_accepting_the_same_again_changes_nothing_but_the_history() -> None:
    first = propose(None, of_run())
    again = propose(first, of_run(reason="again"))
    assert first.equals_without_history(again)
    assert first != again
    assert not first.equals_without_history(propose(first, of_run(outputs=(("22",),))))
    assert not first.equals_without_history(propose(first, of_run(figures=METRICS)))


def test_a_subject_that_never_ran_has_no_outputs(tmp_path: Path) -> None:
    runner = Case("t", RUNNER)
    reference = propose(
        None, Acceptance("gcc 12", "r", "w", ("firmware",), {"elf_text": 5}, {"gcc 12": ANATOMY})
    )
    path = written(tmp_path, reference, runner)
    assert path == tmp_path / "t" / "runner.json"
    assert not {"pte_sha256", "outputs"} & json.loads(path.read_text()).keys()
    assert load_reference(tmp_path, runner) == reference


def test_each_source_of_firmware_has_its_own_file() -> None:
    """Also where a user's model is called as ExecuTorch's reference of another one is."""
    theirs = "executorch"
    assert reference_path(Path(), CASE, theirs).name == "ds_cnn.executorch.json"
    assert reference_path(Path(), Case("t", RUNNER), theirs) == Path("t/runner.executorch.json")
    named = Case("t", "mine/ds_cnn.executorch.py", "mine/ds_cnn.executorch.py")
    assert reference_path(Path(), named).name == "ds_cnn.executorch.py.json"
    assert reference_path(Path(), named, theirs).name == "ds_cnn.executorch.py.executorch.json"


def test_no_file_is_not_a_reference(tmp_path: Path) -> None:
    assert load_reference(tmp_path, CASE) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"program": {"pte_bytes": Infinity}, "firmware": {}, "history": []}',
        "\xff",
        "[" * 100_000,
        '{"program": {"pte_bytes": 1e999}, "firmware": {}, "history": []}',
        "null",
        '"\\ud800"',
        '{"program": {}, "firmware": {"gcc": 3}, "history": []}',
        '{"pte_sha256": "aa"}',
        "{}",
        "[]",
        "{",
        '{"program": {}, "firmware": {}}',
        '{"program": {"pte_bytes": "x"}, "firmware": {}, "history": []}',
        '{"program": {}, "firmware": {}, "history": [], "pte_sha256": "aa"}',
    ],
)
def test_a_malformed_file_is_an_error_not_a_missing_reference(tmp_path: Path, text: str) -> None:
    path = reference_path(tmp_path, CASE)
    path.parent.mkdir()
    path.write_text(text, "latin-1")
    with pytest.raises(UsageError, match=r"ds_cnn\.json is not a reference"):
        load_reference(tmp_path, CASE)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    reference_path(tmp_path, CASE).mkdir(parents=True)
    with pytest.raises(InfraError, match=r"cannot read .*ds_cnn\.json"):
        load_reference(tmp_path, CASE)


@pytest.mark.parametrize("text", ["ds_cnn", "/ds_cnn", "corstone-300-m55/"])
def test_what_is_not_a_case(text: str) -> None:
    with pytest.raises(UsageError, match="is not a case"):
        parse_case(text)


def test_a_truth_is_kept_and_found_whoever_is_to_give_it(tmp_path: Path) -> None:
    """What somebody made the truth holds for every firmware; other references are none."""
    plain = propose(None, of_run())
    truth = propose(None, of_run(truth=True, outputs=(("22",),)))
    assert load_truth(tmp_path, CASE) is None
    written(tmp_path, plain)
    assert load_truth(tmp_path, CASE) is None
    path = reference_path(tmp_path, CASE, "executorch")
    path.write_text(render(truth))
    found = load_truth(tmp_path, CASE)
    assert found is not None
    assert (found.truth, found.outputs) == (True, (("22",),))
