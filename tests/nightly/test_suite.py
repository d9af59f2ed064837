"""Protects the suite's file: every case that it means and no other, and errors where they are."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from harness.core.errors import HarnessError, TargetError
from harness.nightly.suite import NightSuite, default_suite, load_suite
from tools.clone import project_root

TODAY = date(2026, 3, 10)
M55 = "corstone-300-m55"
U55 = "corstone-300-u55-128"


def written(folder: Path, text: str) -> Path:
    file = folder / "suite.yaml"
    file.write_text(text)
    return file


def loaded(folder: Path, text: str, today: date = TODAY) -> NightSuite:
    return load_suite(written(folder, text), today)


def test_the_suite_of_the_examples_has_three_cases() -> None:
    suite = load_suite(project_root() / "examples" / "suite.yaml", TODAY)
    assert [one.case for one in suite.plan] == [
        f"{M55}/ds_cnn",
        f"{M55}/resnet8",
        "host/ds_cnn",
    ]


def test_every_model_on_every_target(tmp_path: Path) -> None:
    suite = loaded(
        tmp_path,
        f"""
owner: us
cases:
  - targets: [{M55}, host]
    models: [add, softmax]
    limit_factor: 2
  - {{targets: [{M55}], models: [linear], firmware: both, owner: them}}
""",
    )
    assert [one.case for one in suite.plan] == [
        f"{M55}/add",
        f"{M55}/softmax",
        "host/add",
        "host/softmax",
        f"{M55}/linear",
        f"{M55}/linear [executorch]",
    ]
    assert [one.owner for one in suite.plan] == ["us"] * 4 + ["them"] * 2
    assert [job.limit_factor for job in suite.jobs] == [2.0] * 4 + [None]
    assert suite.jobs[-1].sources == ("bundled", "executorch")
    assert suite.name == "suite"


def test_memory_modes_are_of_targets_that_have_an_npu(tmp_path: Path) -> None:
    suite = loaded(
        tmp_path,
        f"""
cases:
  - {{targets: [{U55}, {M55}], models: [add], memory_modes: all}}
""",
    )
    names = [one.case for one in suite.plan]
    assert len(names) == 3
    assert {f"{U55}/add", f"{U55}@Sram_Only/add", f"{M55}/add"} == set(names)
    named = loaded(
        tmp_path,
        f"""
cases:
  - {{targets: [{U55}], models: [add], memory_modes: [Sram_Only]}}
""",
    )
    assert [one.case for one in named.plan] == [f"{U55}@Sram_Only/add"]


QUARANTINED = f"""
cases:
  - {{targets: [{M55}, host], models: [add, softmax]}}
exclude:
  - {{case: "host/*", reason: "no time"}}
quarantine:
  - {{case: "*/add", reason: "bug 7", until: "2026-03-10", owner: me}}
"""


def test_a_quarantine_holds_until_its_day_is_over(tmp_path: Path) -> None:
    suite = loaded(tmp_path, QUARANTINED)
    assert [(one.case, one.quarantined) for one in suite.plan] == [
        (f"{M55}/add", "until 2026-03-10: bug 7 (me)"),
        (f"{M55}/softmax", ""),
    ]
    assert [(one.case, one.reason) for one in suite.excluded] == [
        ("host/add", "no time"),
        ("host/softmax", "no time"),
    ]
    later = loaded(tmp_path, QUARANTINED, date(2026, 3, 11))
    assert [one.quarantined for one in later.plan] == ["", ""]
    assert later.expired == ("*/add: since 2026-03-10: bug 7",)
    assert later.sha256 == suite.sha256  # the same cases: a night may be gone on with


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("cases: [\n", 2, "not valid YAML"),
        ("owner: me\n", 1, "required key 'cases' is missing"),
        ("cases: []\n", 1, "at least 1 item"),
        ("cases:\n  - targets: [host]\n    model: [add]\n", 3, "unknown key 'cases.0.model'"),
        ("cases:\n  - targets: host\n", 2, "cases.0.targets"),
        ("cases:\n  - targets: [host]\n    limit_factor: -1\n", 3, "greater than 0"),
        ("cases:\n  - targets: [hosst]\n", 2, "unknown target 'hosst'"),
        ("cases:\n  - targets: [host]\n    models: [ad]\n", 2, "'ad'"),
        (
            f"cases:\n  - targets: [{U55}]\n    models: [add]\n    memory_modes: [Nowhere]\n",
            2,
            "Nowhere",
        ),
        (
            "cases:\n  - {targets: [host], models: [add]}\n  - {targets: [host], models: [add]}\n",
            3,
            "host/add is in the suite twice",
        ),
        (
            "cases:\n  - {targets: [host], models: [add]}\nexclude:\n  - case: x/y\n    "
            "reason: r\n",
            4,
            "no case of the suite fits 'x/y'",
        ),
        (
            "cases:\n  - {targets: [host], models: [add]}\nexclude:\n  - case: '*'\n    "
            "reason: r\n",
            1,
            "every case of the suite is excluded",
        ),
        (
            "cases:\n  - {targets: [host], models: [add]}\nexclude:\n  - case: '*'\n    "
            "reason: ''\n",
            5,
            "at least 1 character",
        ),
        (
            "cases:\n  - {targets: [host], models: [add]}\nquarantine:\n  - case: '*'\n    "
            "reason: r\n"
            "    until: 'soon'\n",
            6,
            'a day is wanted, as "2027-01-31"',
        ),
        (
            "cases:\n  - {targets: [host], models: [add]}\nquarantine:\n  - case: '*'\n    "
            "reason: r\n"
            "    until: 2027-01-31\n",
            6,
            "write it in quotes",
        ),
    ],
)
def test_what_is_wrong_is_reported_with_file_and_line(
    text: str, line: int, why: str, tmp_path: Path
) -> None:
    with pytest.raises(TargetError) as caught:
        loaded(tmp_path, text)
    assert why in caught.value.message
    assert str(caught.value).startswith(f"{tmp_path}/suite.yaml:{line}: ")
    assert caught.value.exit_code == 2


def test_a_suite_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="there is no file"):
        load_suite(tmp_path / "none.yaml", TODAY)


def test_a_malformed_target_stays_in_the_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cases fail, by name; the others are run."""
    (tmp_path / "boards").mkdir()
    (tmp_path / "boards" / "mine.yaml").write_text("extends: host\nport: [\n")
    (tmp_path / "hil.toml").write_text('targets = ["boards"]')
    monkeypatch.setenv("HIL_PROJECT", str(tmp_path))
    suite = loaded(tmp_path, "cases:\n  - {targets: [mine, host], models: [add]}\n")
    assert [one.case for one in suite.plan] == ["mine/add", "host/add"]


def test_the_default_is_the_matrix_of_pytest() -> None:
    names = [one.case for one in default_suite().plan]
    assert len(names) == len(set(names)) > 100
    assert f"{M55}/ds_cnn" in names


def test_a_renamed_case_names_both(tmp_path: Path) -> None:
    cases = f"cases:\n  - {{targets: [{M55}], models: [add]}}\n"
    suite = loaded(tmp_path, cases + f"renames:\n  {M55}/sum: {M55}/add\n")
    assert suite.renames == {f"{M55}/add": f"{M55}/sum"}
    with pytest.raises(TargetError, match=r"suite.yaml:4: no case of the suite fits 'host/add'"):
        loaded(tmp_path, cases + f"renames:\n  {M55}/sum: host/add\n")


def test_alarms_are_parts_of_a_figure(tmp_path: Path) -> None:
    cases = f"cases: [{{targets: [{M55}], models: [add]}}]\n"
    assert loaded(tmp_path, cases).alarms == {}
    suite = loaded(tmp_path, cases + "alarm: {instructions: 5%, text: 0.5%}\n")
    assert suite.alarms == {"text": 0.005, "instructions": 0.05}
    with pytest.raises(TargetError, match=r"suite.yaml:2: alarm.text: it must match"):
        loaded(tmp_path, cases + "alarm: {text: 5}\n".replace("5", "five"))
    with pytest.raises(TargetError, match=r"alarm.ticks: this name is not allowed here"):
        loaded(tmp_path, cases + "alarm: {ticks: 5%}\n")


def test_whom_a_night_is_told_and_how_long_it_bisects(tmp_path: Path) -> None:
    cases = f"cases: [{{targets: [{M55}], models: [add]}}]\n"
    follow_up = loaded(tmp_path, cases).follow_up
    assert (follow_up.notify, follow_up.issues, follow_up.minutes) == ((), False, 0)
    said = 'notify: ["slack://$TOKEN/x", $ALL]\nowners: {us: "<@U1>"}\nissues: true\nbisect: true\n'
    follow_up = loaded(tmp_path, cases + said).follow_up
    assert (follow_up.notify, follow_up.owners) == (("slack://$TOKEN/x", "$ALL"), {"us": "<@U1>"})
    assert (follow_up.issues, follow_up.minutes) == (True, 60)
    assert loaded(tmp_path, cases + "bisect: 15\n").follow_up.minutes == 15
    with pytest.raises(TargetError, match=r"suite.yaml:2: notify.0: it must match"):
        loaded(tmp_path, cases + "notify: [slack]\n")
