"""Records, run directories and programs."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from harness.config.models import find_model
from harness.export.batch import export
from harness.export.process import ExportProcess
from harness.export.request import ExportRequest
from harness.firmware.operators import needs_of
from harness.report.terminal import print_records
from harness.run.directory import load_record, with_digests
from harness.run.judging import judge_again
from harness.size.measure import measure_file
from tests.late import Late
from tests.run.test_directory import original

from . import altered, as_json, bounded, edited, refused

bundled_program = Late("tools.bundled_program")

__all__ = ["original"]  # the fixture: a run that passed


@pytest.fixture(scope="module")
def run_dir(original: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(original, tmp_path_factory.mktemp("hostile") / "run"))


@bounded(100)
@given(data=st.data())
def test_a_record(run_dir: Path, data: st.DataObject) -> None:
    """Without its seal, so that what is in it is read. What is read can be shown."""
    path = run_dir / "record.json"
    whole = path.read_bytes()
    fields = {k: v for k, v in json.loads(whole).items() if k != "seal"}
    path.write_bytes(data.draw(st.one_of(edited(as_json(fields)), altered(fields).map(as_json))))

    def use() -> None:
        record = load_record(run_dir)
        json.dumps(record.summary())
        print_records(Console(file=io.StringIO()), [record])

    try:
        refused(use)
    finally:
        path.write_bytes(whole)


@bounded(100)
@given(data=st.data())
def test_a_run_directory(run_dir: Path, data: st.DataObject) -> None:
    """Sealed again, as somebody would who wants to; it may say anything, but it says it."""
    name = data.draw(
        st.sampled_from(
            [
                "console.log",
                "expected/program.json",
                "expected/out0.bin",
                "work/s0-0.bin",
                "record.json",
            ]
        )
    )
    path, record = run_dir / name, run_dir / "record.json"
    whole, sealed_before = path.read_bytes(), record.read_bytes()
    fields = {k: v for k, v in json.loads(sealed_before).items() if k != "seal"}
    if name == "record.json":
        fields = data.draw(altered(fields))
    elif name.endswith(".json"):
        document = json.loads(whole)
        path.write_bytes(data.draw(st.one_of(edited(whole), altered(document).map(as_json))))
    else:
        path.write_bytes(data.draw(edited(whole)))
    record.write_bytes(as_json(with_digests(fields, run_dir)))
    try:
        refused(lambda: json.dumps(judge_again(run_dir).summary()))
    finally:
        path.write_bytes(whole)
        record.write_bytes(sealed_before)
    assert judge_again(run_dir).verdict.passed


@pytest.fixture(scope="module")
def programs(hil_export_process: ExportProcess) -> dict[str, bytes]:
    request = ExportRequest(find_model("add"))
    program = export([request], process=hil_export_process)[0].unwrap()
    return {"x.pte": program.pte_path.read_bytes(), "x.bpte": bundled_program.bundled(program)}


@bounded(200)
@given(data=st.data(), name=st.sampled_from(["x.pte", "x.bpte"]))
def test_a_program(
    run_dir: Path, programs: dict[str, bytes], data: st.DataObject, name: str
) -> None:
    file = run_dir.parent / name
    whole = programs[name]
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(whole) - 4))
        word = data.draw(st.integers(0, (1 << 32) - 1)).to_bytes(4, "little")
        file.write_bytes(whole[:at] + word + whole[at + 4 :])
    else:
        file.write_bytes(data.draw(edited(whole)))
    for read in (needs_of, measure_file):
        error = refused(read, file)
        assert error is None or error.exit_code == 2
