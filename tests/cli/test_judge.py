"""Protects judging again, offline, and what may become a reference."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from .conftest import Hil

TARGET = "corstone-300-m55"


def test_judging_again_offline_gives_the_same(hil: Hil, tmp_path: Path) -> None:
    first = hil("run", TARGET, "softmax", "--json").json
    moved = tmp_path / "elsewhere"
    shutil.copytree(first["run_dir"], moved)
    again = hil("judge", moved, "--json", PATH="/nonexistent")
    assert again.code == 0
    assert again.json["verdict"] == "PASS"
    assert again.json["metrics"] == first["metrics"]


def test_a_tampered_output_is_seen_when_judged_again(hil: Hil, tmp_path: Path) -> None:
    first = hil("run", TARGET, "softmax", "--json").json
    moved = tmp_path / "elsewhere"
    shutil.copytree(first["run_dir"], moved)
    output = moved / "work" / "s1-0.bin"
    content = bytearray(output.read_bytes())
    content[0] ^= 0x80
    output.write_bytes(content)
    assert hil("judge", moved, "--json").json["verdict"] == "MISMATCH"
    output.unlink()
    assert hil("judge", moved, "--json").json["cause"]["kind"] == "output_missing"


def test_accept_shows_the_change_and_writes_only_the_reference(hil: Hil, tmp_path: Path) -> None:
    references = tmp_path / "references"
    case = f"{TARGET}/add"
    dry = hil("accept", case, "--reason", "first", "--dry-run", HIL_REFERENCES=str(references))
    assert dry.code == 0
    assert f"{case}: new reference" in dry.out
    assert not references.exists()
    written = hil("accept", case, "--reason", "first", HIL_REFERENCES=str(references))
    assert written.code == 0
    stored = json.loads((references / TARGET / "add.json").read_text())
    assert stored["history"][0]["why"] == "first"
    again = hil("accept", case, "--reason", "second", HIL_REFERENCES=str(references))
    assert "nothing changes" in again.out
    size = hil(
        "accept",
        case,
        "--only",
        "size",
        "--reason",
        "third",
        "--json",
        HIL_REFERENCES=str(references),
    )
    assert (size.code, size.json["diff"]) == (0, "")  # a run and a gate measure the same


def test_a_wrong_model_cannot_become_a_reference(hil: Hil, tmp_path: Path) -> None:
    (tmp_path / "dead.py").write_text("import torch\nModelUnderTest = 1 / 0\n")
    result = hil(
        "accept",
        f"{TARGET}/{tmp_path}/dead.py",
        "--reason",
        "x",
        HIL_REFERENCES=str(tmp_path / "references"),
    )
    assert result.code == 2
    assert "dead.py:2: ZeroDivisionError" in result.err
    assert not (tmp_path / "references").exists()
