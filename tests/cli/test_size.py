"""What `hil size`, `hil gate` and `hil accept --only size` protect: numbers, exit codes, JSON."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli.main import main
from harness.config.case import RUNNER, Case
from harness.config.matrix import default_models
from harness.core.errors import ExportError, HarnessError
from harness.run import accept
from harness.run import gate as size_gate
from harness.run.gate import Measured
from harness.size.measure import figures_of_program, measure_file
from tests.cli.conftest import Hil
from tests.report.services import GitHub, running
from tests.size.plan_samples import kernel, method, planned, program
from tests.size.samples import sample_pte

CASE = Case("corstone-300-m55", "ds_cnn")


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    old, new = tmp_path / "old.pte", tmp_path / "new.pte"
    old.write_bytes(sample_pte())
    new.write_bytes(sample_pte(operators=[{"name": "my::linear_relu_and_more", "overload": "out"}]))
    return str(old), str(new)


def test_a_file_alone_is_shown(files: tuple[str, str]) -> None:
    done = call("size", files[0])
    assert done.exit_code == 0
    assert "0 unknown" in done.output
    assert "fc.weight" in done.output


def test_json_adds_up(files: tuple[str, str]) -> None:
    answer = json.loads(call("size", files[0], "--json").output)
    assert answer["total"] == sum(p["bytes"] for p in answer["parts"])
    assert answer["total"] == Path(files[0]).stat().st_size
    assert answer["unknown"] == 0


def test_the_memory_plan_of_a_program_is_reported(tmp_path: Path) -> None:
    """When its memory is fullest and of what; a fault in words and as data."""
    file, page = tmp_path / "x.pte", tmp_path / "x.html"
    values = [planned(0), planned(16), planned(8, 32)]
    calls = [kernel(0, 0, 0, 1, 1), kernel(0, 0, 1, 2, 2)]
    file.write_bytes(program(method(values, calls, outputs=[2])))
    done = call("size", str(file), "--html", str(page))
    told = " ".join(done.output.split())
    assert done.exit_code == 0
    assert (
        "forward, buffer 1: 64 of 64 bytes are needed during instruction 1 (aten::add.out); "
        "32 for int8[32] of aten::add.out; 16 for int8[16] of input 0" in told
    )
    assert "the memory plan is wrong: value 0 [0x0, 0x10) of buffer 1 is overwritten by" in told
    assert "overwritten by instruction 1" in page.read_text()
    (plan,) = json.loads(call("size", str(file), "--json").output)["memory_plan"]
    assert plan["buffers"][0]["needed"] == [16, 32, 64, 32]
    assert [fault["facts"]["value"] for fault in plan["faults"]] == [0, 1]
    runner = json.loads(call("size", "host/runner", "--json").output)
    assert runner["memory_plan"] == []


def test_diff_names_what_grew(files: tuple[str, str]) -> None:
    done = call("size", *files)
    assert done.exit_code == 0
    assert "my::linear_relu_and_more" in done.output
    assert "+14 B: renamed my::linear.out to the operator name" in call(
        "size", *files, "--why", "10"
    ).output.replace("\n", " ")
    assert call("size", *files, "--markdown").output.startswith("### old.pte")
    changes = json.loads(call("size", *files, "--json").output)["parts"]
    assert "renamed" in [change["kind"] for change in changes]


def test_page_is_written(files: tuple[str, str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert call("size", *files, "--html", str(page)).exit_code == 0
    assert '"compared":true' in page.read_text()


def test_damage_is_wrong_usage_with_the_offset(tmp_path: Path) -> None:
    file = tmp_path / "x.pte"
    file.write_bytes(sample_pte()[:100])
    done = call("size", str(file), "--json")
    assert done.exit_code == 2
    assert json.loads(done.output)["cause"]["facts"]["offset"] == 16
    assert call("size", str(tmp_path / "none.pte")).exit_code == 2


@pytest.fixture
def measured(files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """This file is measured instead of exporting; what is in the list is what gates see."""
    anatomy = measure_file(Path(files[0]))
    seen: list[Any] = [Measured(CASE, "program", "any", anatomy, figures_of_program(anatomy))]
    firmware = Measured(CASE, "firmware", "gcc", anatomy, {"elf_text": 5})

    def measure(subjects: Any, progress: Any = None) -> list[Any]:
        return [firmware if case.model == RUNNER else seen[0] for case in subjects]

    monkeypatch.setattr(size_gate, "measure_cases", measure)
    monkeypatch.setattr(accept, "measure_cases", measure)
    monkeypatch.setenv("HIL_REFERENCES", str(tmp_path / "references"))
    monkeypatch.delenv("CI", raising=False)  # the gate of a desk; a test of CI's sets it
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return seen


def test_new_accept_grow_fail(
    measured: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The life of a gate: new, accepted with a reason, held, and failed with the cause."""
    first = call("gate", CASE.id)
    assert first.exit_code == 0
    assert "new, nothing accepted yet" in first.output
    assert call("accept", CASE.id, "--only", "size", "--reason", " ").exit_code == 2
    dry = call("accept", CASE.id, "--only", "size", "--reason", "first", "--dry-run")
    assert dry.output.splitlines()[0] == f"{CASE.id}: new reference"
    assert "  pte_bytes " in dry.output
    assert "not written" in dry.output
    assert len(dry.output.splitlines()) < 10
    assert call("accept", CASE.id, "--only", "size", "--reason", "first").exit_code == 0
    accepted = tmp_path / "references" / CASE.target / "ds_cnn.json"
    assert json.loads(accepted.read_text())["history"][0]["why"] == "first"
    assert (
        "nothing changes" in call("accept", CASE.id, "--only", "size", "--reason", "again").output
    )
    assert call("gate", CASE.id).exit_code == 0

    anatomy = measured[0].anatomy
    big = replace(anatomy.parts[0], path=("constants", "int8[900]"), bytes=900)
    larger = replace(anatomy, total=anatomy.total + 900, parts=(*anatomy.parts, big))
    measured[0] = replace(measured[0], anatomy=larger, figures=figures_of_program(larger))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    failed = call("gate", CASE.id)
    assert failed.exit_code == 1
    assert "::error title=size of corstone-300-m55/ds_cnn::" in failed.output
    assert "+900 B: added the constant tensor int8[900]." in failed.output
    assert f"./hil accept {CASE.id} --only size --reason" in failed.output
    assert "int8" in (tmp_path / "summary.md").read_text()


def in_ci(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setenv("CI", "true")
    return ()


def by_option(_: pytest.MonkeyPatch) -> tuple[str, ...]:
    return ("--strict",)


def by_setting(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    folder = Path(os.environ["HIL_REFERENCES"]).parent
    (folder / "hil.toml").write_text('unproven = "fail"\n')
    monkeypatch.setenv("HIL_PROJECT", str(folder))
    return ()


@pytest.mark.parametrize("strictly", [in_ci, by_option, by_setting])
def test_in_ci_the_gate_fails_closed(
    measured: list[Any], monkeypatch: pytest.MonkeyPatch, strictly: Any
) -> None:
    """With ``references/`` moved away nothing is compared: told at a desk, red in CI."""
    desk = call("gate", CASE.id)
    assert (desk.exit_code, "new, nothing accepted yet" in desk.output) == (0, True)
    options = strictly(monkeypatch)
    done = call("gate", CASE.id, *options)
    assert done.exit_code == 1
    assert f"{CASE.id}: new: nothing was accepted yet to compare it with" in done.output
    assert call("gate", CASE.id, *options, "--allow-new", CASE.model).exit_code == 0
    assert call("gate", CASE.id, *options, "--allow-new", "other").exit_code == 1


def test_a_renamed_model_is_reported_at_a_desk_and_red_in_ci(
    measured: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    accepted = tmp_path / "references" / CASE.target
    call("accept", CASE.id, "--only", "size", "--reason", "first")
    (accepted / "ds_cnn.json").rename(accepted / "ds_cn.json")
    monkeypatch.setattr("harness.cli.size.every_subject", lambda: [CASE])
    old = f"{CASE.target}/ds_cn"
    desk = call("gate")
    assert desk.exit_code == 0
    assert f"{old}: {accepted / 'ds_cn.json'} is left over" in desk.output
    assert f"it was renamed to {CASE.id}, which has the same program" in desk.output
    assert call("gate", "--strict", "--allow-new", "ds_cnn").exit_code == 1
    told = json.loads(call("gate", "--strict", "--json").output)
    assert [one["subject"] for one in told["left_over"]] == [old]
    assert call("gate", CASE.id, "--strict", "--allow-new", "ds_cnn").exit_code == 0  # not asked


def test_a_target_alone_is_its_runner_and_all_models(measured: list[Any]) -> None:
    found = json.loads(call("gate", CASE.target, "--json").output)["gates"]
    # the double measures one program, whichever is asked for
    assert [len(gate["figures"]) for gate in found].count(1) == 1
    assert len(found) == 1 + len(default_models())
    assert call("gate", "corstone-30-m55").exit_code == 2
    assert "corstone-300-m55" in call("gate", "corstone-30-m55").output


def test_what_cannot_be_measured_fails(measured: list[Any]) -> None:
    error: HarnessError = ExportError("the exporter died")
    measured[0] = error
    done = call("gate", CASE.id)
    assert done.exit_code == 1
    assert "could not be measured" in done.output
    assert "the exporter died" in done.output
    assert call("accept", CASE.id, "--only", "size", "--reason", "x").exit_code == 1


def test_a_gate_comments_its_pull_request(hil: Hil, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a program that nothing was accepted of: at a desk that is no failure."""
    subject = "corstone-300-u55-128/add"
    for name in ("GITHUB_TOKEN", "GH_TOKEN", "GITHUB_REF", "CI_MERGE_REQUEST_IID", "CI"):
        monkeypatch.delenv(name, raising=False)
    alone = hil("gate", subject, "--comment")
    assert "no pull request, so no comment" in alone.err
    monkeypatch.setenv("GITHUB_REF", "refs/pull/7/merge")
    unknown = hil("gate", subject, "--comment", "--json")
    assert unknown.code == 2
    assert "set GITHUB_TOKEN" in unknown.json["hint"]
    with running(GitHub()) as github:
        assert isinstance(github, GitHub)
        monkeypatch.setenv("GITHUB_TOKEN", "secret")
        monkeypatch.setenv("GITHUB_REPOSITORY", "o/r")
        monkeypatch.setenv("GITHUB_API_URL", github.url)
        for done in ("posted", "updated"):
            run = hil("gate", subject, "--comment", "--markdown")
            assert f"comment {done}" in run.err
        ((number, text),) = github.comments
    assert number == 7
    assert text.startswith("<!-- hil-gate -->")
    assert "npu" in text
    assert "SQNR in dB, worst output" in text
    assert "| figure | measured |" in run.out
