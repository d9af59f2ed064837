"""``hil npu`` as a user meets it: results, listing, figures, and errors with exit codes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.npu import _print_reduced, npu
from harness.export.localise import SmallestPart
from harness.run.subjects import ReducedProgram
from tests.cli.conftest import Exported, Hil
from tests.npu.assembling import U55_128, blob, cop1, cop2, pool, tensors, words

INPUT = bytes(range(256))
SLICED = """
import torch
class Product(torch.nn.Module):
    def forward(self, x, y):
        return torch.bmm(x[:, 1:3], y)
torch.manual_seed(1)
ModelUnderTest = Product()
ModelInputs = (torch.rand(2, 4, 8), torch.rand(2, 8, 5))
"""


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


def test_memory_of_a_stream_for_a_driver_of_linux(tmp_path: Path) -> None:
    """By class, as whoever places it has to know; the listing says what the container asks for."""
    one = tensors(((1, 1, 1, 4, 4, 16), 1, 0, 3))
    two = tensors(((1, 1, 1, 4, 4, 16), 1, 0, 4))
    path = tmp_path / "direct.bin"
    stream = words("u55", *pool(IFM_REGION=3, OFM_REGION=4, OFM_BASE0=0))
    path.write_bytes(blob(cop2(U55_128, stream, cache=3440), scratch=0, inputs=one, outputs=two))
    figures = CliRunner().invoke(npu, ["stats", str(path), "--json"])
    assert figures.exit_code == 0, figures.output
    (delegate,) = json.loads(figures.output)["delegates"]
    assert delegate["memory"] == {
        "commands": 4 * len(stream),
        "weights": 0,
        "scratch": 0,
        "inputs": 256,
        "outputs": 256,
        "cache": 3440,
    }
    listing = CliRunner().invoke(npu, ["disasm", str(path)])
    assert "; COP2: features 0x2, 3440 bytes of the NPU's SRAM" in listing.output


def test_errors_end_with_their_exit_codes(tmp_path: Path) -> None:
    wrong = CliRunner().invoke(npu, ["disasm", program(tmp_path), "-d", "7", "--json"])
    assert wrong.exit_code == 2
    cause = json.loads(wrong.stdout)["cause"]
    assert cause["text"].endswith("two.pte has 2 delegates, not a number 7")
    assert cause["facts"] == {"path": str(tmp_path / "two.pte")}
    broken = CliRunner().invoke(npu, ["stats", program(tmp_path, IFM_REGION=6), "--json"])
    assert broken.exit_code == 1
    (tmp_path / "none.pte").write_bytes(b"nothing here")
    empty = CliRunner().invoke(npu, ["stats", str(tmp_path / "none.pte"), "--json"])
    assert empty.exit_code == 2
    cause = json.loads(empty.stdout)["cause"]
    assert cause["text"].endswith("none.pte has no Ethos-U delegate")
    assert cause["facts"] == {"path": str(tmp_path / "none.pte")}


def test_reduce_needs_a_program_that_it_knows(tmp_path: Path) -> None:
    """A .pte has no TOSA graphs; a model has no target of its own."""
    stranger = CliRunner().invoke(npu, ["reduce", program(tmp_path), "--json"])
    assert stranger.exit_code == 2
    found = json.loads(stranger.stdout)
    assert "is not a program that hil exported here" in found["cause"]["text"]
    assert found["hint"] == ("name the model instead: hil npu reduce MODEL --target TARGET")
    model = CliRunner().invoke(npu, ["reduce", "add", "--json"])
    assert model.exit_code == 2
    assert "a model is exported for a target" in json.loads(model.stdout)["cause"]["text"]
    nothing = CliRunner().invoke(npu, ["reduce", "add", "--target", "corstone-300-m55", "--json"])
    assert nothing.exit_code == 2
    assert "nothing of add runs on an Ethos-U" in json.loads(nothing.stdout)["cause"]["text"]


def test_estimates_of_a_model(hil: Hil, exported: Exported, tmp_path: Path) -> None:
    exported("linear", "corstone-300-u55-128")
    model = ("linear", "--target", "corstone-300-u55-128")
    stats = hil("npu", "stats", *model, "--cycles", "--json")
    (estimate,) = stats.json["estimates"]
    assert (estimate["npu"], estimate["summary"]["nn_macs"]) == ("ethos-u55-128", 27)
    text = hil("npu", "stats", *model, "--cycles")
    assert "Vela's own estimates, not measurements" in text.out
    stranger = hil("npu", "stats", program(tmp_path), "--cycles", "--json")
    assert stranger.code == 2
    assert stranger.json["hint"] == "name the model instead: hil npu stats MODEL --target TARGET"


def test_delegates_have_the_number_that_verdicts_give_them(hil: Hil, exported: Exported) -> None:
    """The file has the two of ds_cnn in the other order."""
    exported("ds_cnn", "corstone-300-u55-128")
    found = hil("npu", "stats", "ds_cnn", "--target", "corstone-300-u55-128", "--cycles", "--json")
    macs = [each["macs"] for each in found.json["delegates"]]
    assert macs == [each["summary"]["nn_macs"] for each in found.json["estimates"]]
    assert macs == [2_656_000, 768]


def test_reduce_leaves_the_smallest_wrong_program(
    hil: Hil, exported: Exported, tmp_path: Path
) -> None:
    """With its files and the name of the defect."""
    model, base = tmp_path / "sliced.py", tmp_path / "small"
    model.write_text(SLICED)
    for subject in (model, "add"):
        exported(subject, "corstone-300-u55-128")
    words = ("npu", "reduce", model, "--target", "corstone-300-u55-128", "-o", base, "--no-newest")
    done = hil(*words, "--json")
    assert done.code == 1, done.err
    found = done.json["reduced"]
    assert (found["operators"], found["whole"]) == (["SLICE", "MATMUL"], 3)
    assert (found["trouble"], found["defect"]) == ("other values", "slice-before-matmul")
    assert [Path(file).is_file() for file in found["files"]] == [True] * 4
    stream = hil("npu", "disasm", f"{base}.vela")
    assert "CONV" in stream.out or "ELEMENTWISE" in stream.out
    right = hil("npu", "reduce", "add", "--target", "corstone-300-u55-128")
    assert (right.code, right.out) == (
        0,
        "nothing to reduce: every delegate gives the outputs of the TOSA reference model\n",
    )


def test_what_is_left_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    smallest = SmallestPart(
        ("TABLE",), 7, 12, "outside its memory", "", ("TABLE: int8[4] -> int8[4]",), ("a.tosa",)
    )
    _print_reduced(ReducedProgram(1, 2, smallest))
    shown = capsys.readouterr().out
    assert shown == (
        "delegate 1, input set 2: outside its memory\n"
        "1 of 7 operators are left (12 compilations):\n"
        "  TABLE: int8[4] -> int8[4]\n"
        "it matches no known defect of Vela\n"
        "written: a.tosa\n"
    )
    _print_reduced(ReducedProgram(0, 0, replace(smallest, defect="table-beyond-shram")))
    shown = capsys.readouterr().out
    assert "known defect `table-beyond-shram` of Vela: the table of a TABLE is copied" in shown
    assert "what helps: compile for an NPU with 128 MACs or more" in shown
