"""``hil npu`` as a user meets it: results, listing, figures, and errors with exit codes."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from harness.cli.npu import npu
from tests.ethosu.assembling import U55_128, blob, cop1, pool, words

INPUT = bytes(range(256))


def program(folder: Path, **changes: int) -> str:
    """Two delegates inside something larger, as in a .pte."""
    one = blob(cop1(U55_128, words("u55", *pool(**changes))))
    path = folder / "two.pte"
    path.write_bytes(b"ET12" + one + one)
    return str(path)


def test_run_writes_the_outputs(tmp_path: Path) -> None:
    (tmp_path / "in.bin").write_bytes(INPUT)
    base = str(tmp_path / "o")
    arguments = ["run", program(tmp_path), "-i", str(tmp_path / "in.bin"), "-o", base, "-d", "1"]
    result = CliRunner().invoke(npu, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "o-0.bin").read_bytes() == INPUT
    assert json.loads(result.output)["operations"] == {"POOL": 1}


def test_disasm_and_stats(tmp_path: Path) -> None:
    listing = CliRunner().invoke(npu, ["disasm", program(tmp_path)])
    assert "POOL AVERAGE" in listing.output
    figures = CliRunner().invoke(npu, ["stats", program(tmp_path), "--json"])
    delegates = json.loads(figures.output)["delegates"]
    assert len(delegates) == 2
    assert delegates[0]["moved"]["scratch"] == {"IFM": 256, "OFM": 256}


def test_errors_end_with_their_exit_codes(tmp_path: Path) -> None:
    wrong = CliRunner().invoke(npu, ["disasm", program(tmp_path), "-d", "7", "--json"])
    assert wrong.exit_code == 2
    cause = json.loads(wrong.stdout)["cause"]
    assert cause["text"].endswith("two.pte has 2 delegates, there is no 7")
    assert cause["facts"] == {"path": str(tmp_path / "two.pte")}
    broken = CliRunner().invoke(npu, ["stats", program(tmp_path, IFM_REGION=6), "--json"])
    assert broken.exit_code == 1
    (tmp_path / "none.pte").write_bytes(b"nothing here")
    empty = CliRunner().invoke(npu, ["stats", str(tmp_path / "none.pte"), "--json"])
    assert empty.exit_code == 2
    cause = json.loads(empty.stdout)["cause"]
    assert cause["text"].endswith("none.pte has no Ethos-U delegate")
    assert cause["facts"] == {"path": str(tmp_path / "none.pte")}
