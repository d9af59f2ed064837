"""Protects the main job: what PASS needs, and that a wrong program can never get it."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from harness.export.program import Program, load_program
from harness.system.paths import hil_command
from tools.clone import project_root

from .conftest import Exported, Hil

TARGET = "corstone-300-m55"


def flip_weight(program: Program, destination: Path) -> None:
    """Change one byte in the constant segment, past the FlatBuffer's own tables."""
    content = bytearray(program.pte_path.read_bytes())
    segments = int.from_bytes(content[24:32], "little")  # extended header: segment base offset
    assert content[8:12] == b"eh00"
    content[segments + (len(content) - segments) // 3] ^= 0x55
    destination.write_bytes(content)


def test_json_of_one_case(hil: Hil) -> None:
    result = hil("run", TARGET, "add", "--json", process=True)
    assert result.code == 0, result.out
    report = result.json
    assert report["verdict"] == "PASS"
    assert report["cause"] is None
    assert report["simulator"] == "qemu"
    assert report["input_sets"] >= 2
    assert report["worst_lsb"] == 0
    assert report["metrics"]["ticks_set0"] > 0
    assert Path(report["run_dir"], "console.log").is_file()
    assert [c["case"] for c in report["cases"]] == [f"{TARGET}/add"]


def test_in_ci_a_case_that_was_never_accepted_fails_and_says_how_to_accept_it(
    hil: Hil, tmp_path: Path
) -> None:
    """And the command that it names works: then the case passes in CI, too."""
    (tmp_path / "hil.toml").touch()
    there = {"HIL_PROJECT": str(tmp_path), "HIL_REQUIRE_CONFINEMENT": "0", "CI": "1"}
    failed = hil("run", "host", "add", "--json", **there)
    assert failed.code == 1
    assert failed.json["cause"]["kind"] == "not_accepted"
    words = re.search(
        r"accept it with: (\S+) (accept host/add) --reason", failed.json["cause"]["text"]
    )
    assert words is not None
    assert words[1] == hil_command() == "./hil"
    assert hil("run", "host", "add", "--allow-new", "host/*", **there).code == 0
    assert hil(*words[2].split(), "--reason", "first", **there).code == 0
    assert hil("run", "host", "add", **there).code == 0


def test_a_flipped_weight_is_a_mismatch_with_tensor_index_and_size(
    hil: Hil, exported: Exported, tmp_path: Path
) -> None:
    flip_weight(exported("ds_cnn"), tmp_path / "flipped.pte")
    result = hil("run", TARGET, "ds_cnn", "--pte", tmp_path / "flipped.pte", "--json")
    assert result.code == 1
    assert result.json["verdict"] == "MISMATCH"
    facts = result.json["cause"]["facts"]
    assert facts["lsb"] >= 1
    assert len(facts["index"]) == 2
    assert facts["output"] in result.json["cause"]["text"]
    shown = hil("run", TARGET, "ds_cnn", "--pte", tmp_path / "flipped.pte")
    assert re.search(
        r"FAIL MISMATCH outputs_differ\n.*\[\d+, \d+\] of input set \d is off by", shown.out
    )


def test_a_program_changed_in_the_cache_is_not_passed_off_as_exported(
    hil: Hil, exported: Exported, tmp_path: Path, shared_hil_home: str
) -> None:
    """Same outputs, other file: it is not used, the right one is made again, and that is said."""
    home, entry = tmp_path / "home", exported("add").directory
    shutil.copytree(entry, home / "cache" / "programs" / entry.name)
    for folder in (Path(shared_hil_home) / "cache").iterdir():
        if folder.name != "programs":
            (home / "cache" / folder.name).symlink_to(folder)
    program = home / "cache" / "programs" / entry.name / "program.pte"
    right = program.read_bytes()
    program.write_bytes(right + b"\0")
    result = hil("run", TARGET, "add", "--json", HIL_HOME=str(home))
    assert result.json["verdict"] == "PASS"
    said = "the cached program was not used, program.pte is not what was stored"
    assert any(said in note for note in result.json["notes"])
    assert program.read_bytes() == right


BAD_MODELS = {
    "dead": """
import torch
ModelUnderTest = torch.nn.Linear(4, 4).eval()
torch.nn.init.zeros_(ModelUnderTest.weight)
ModelInputs = (torch.ones(1, 4),)
""",
    "ends": "import os\nos._exit(0)\nModelUnderTest = ModelInputs = None\n",
    "broken": "import torch\nModelUnderTest = 1 / 0\nModelInputs = ()\n",
}


def test_bad_models_fail_alone(hil: Hil, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.py" for name in BAD_MODELS]
    for file, text in zip(files, BAD_MODELS.values(), strict=True):
        file.write_text(text)
    result = hil("run", TARGET, *files, "add", "--json")
    assert result.code == 1
    cases = {Path(case["case"]).stem: case for case in result.json["cases"]}
    assert {
        name: (case["verdict"], (case["cause"] or {}).get("kind")) for name, case in cases.items()
    } == {
        "dead": ("EXPORT_ERROR", "dead_model"),
        "ends": ("EXPORT_ERROR", "export_process"),
        "broken": ("NO_VERDICT", "bad_model"),
        "add": ("PASS", None),
    }
    assert "ended with status 0 and gave no result" in cases["ends"]["cause"]["text"]
    assert "broken.py:2" in cases["broken"]["cause"]["text"]


@pytest.mark.parametrize("target", ["host", TARGET])
def test_exec_writes_what_the_oracle_expects(
    hil: Hil, add: Program, inputs: list[str], tmp_path: Path, target: str
) -> None:
    result = hil("exec", target, add.pte_path, *inputs, "-o", tmp_path / "o", "--json")
    assert result.code == 0
    expected = (add.directory / add.sets[0].expected[0]).read_bytes()
    assert (tmp_path / "o-0.bin").read_bytes() == expected
    assert result.json["outputs"] == [str(tmp_path / "o-0.bin")]


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        ("machine: nope", "simulator_error"),
        ("arguments: [--nope]", "simulator_error"),
        ("executable: /usr/bin/true", "not_started"),
    ],
)
def test_a_simulator_that_did_not_start_has_its_settings_named(
    hil: Hil, tmp_path: Path, setting: str, kind: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        f"extends: corstone-300-m55\ndescription: mine\nsimulators:\n  qemu:\n    {setting}\n"
    )
    result = hil("run", file, "add", "--json")
    (case,) = result.json["cases"]
    assert (result.code, case["cause"]["kind"]) == (3, kind), result.out
    why = hil("why", case["run_dir"])
    assert "`simulators` of the target's file says how it is started" in " ".join(why.out.split())


def test_exec_runs_a_bundled_program(hil: Hil, tmp_path: Path) -> None:
    """A stored one: tools.bundled_program, which made it, imports torch."""
    bundle = project_root() / "targets/runner/ports/zephyr/sample/qlinear.bpte"
    result = hil("exec", TARGET, bundle, "-o", tmp_path / "o", "--json")
    assert result.code == 0, result.out
    console = Path(result.json["run_dir"], "console.log").read_text()
    assert console.count("Test_result: PASS") == 3


def test_growth_over_the_reference_is_over_budget(hil: Hil, tmp_path: Path) -> None:
    references = tmp_path / "references"
    hil("accept", f"{TARGET}/add", "--reason", "first", HIL_REFERENCES=str(references))
    path = references / TARGET / "add.json"
    stored = json.loads(path.read_text())
    (toolchain,) = stored["firmware"]
    stored["firmware"][toolchain]["elf_text"] -= 2000
    path.write_text(json.dumps(stored))
    result = hil("run", TARGET, "add", "--json", HIL_REFERENCES=str(references))
    assert result.code == 1
    assert result.json["verdict"] == "OVER_BUDGET"
    assert "elf_text grew from" in result.json["cause"]["text"]


def test_help_teaches(hil: Hil) -> None:
    for verb in ("run", "exec", "judge", "accept"):
        assert "Example" in hil(verb, "--help").out
    assert "Exit codes: 0 all passed" in " ".join(hil("--help").out.split())


def test_listings(hil: Hil) -> None:
    targets = {t["name"]: t for t in hil("targets", "--json").json["targets"]}
    assert targets[TARGET]["simulators"]["qemu"] is True
    models = hil("models", "--json").json
    assert {"ds_cnn", "resnet8", "mobilenet_v1_025", "deep_autoencoder"} <= {
        m["name"] for m in models["models"]
    }
    tools = {t["name"]: t for t in hil("doctor", "--json").json["tools"]}
    assert tools["qemu-system-arm"]["version"]
    assert "developer.arm.com" in tools["FVP_Corstone_SSE-300_Ethos-U55"]["how_to_get"]


@pytest.mark.parametrize("lsb", ["1e9", "16.01", "-1", "nan", "inf"])
def test_a_tolerance_that_says_nothing_is_wrong_usage(hil: Hil, lsb: str) -> None:
    """It gave PASS at 235 LSB. Refused before any work."""
    result = hil("run", TARGET, "add", f"--tolerance={lsb}")
    assert result.code == 2
    assert "is not between 0 and 16" in result.err


def test_a_bisection_refuses_it_too(hil: Hil, tmp_path: Path) -> None:
    """Before the first revision: else each would be one that says nothing."""
    result = hil("bisect", TARGET, "add", "--good", "x", "-C", tmp_path, "--tolerance", "1e9")
    assert result.code == 2
    assert "is not between 0 and 16" in result.err


def test_a_tolerance_of_the_command_line_is_refused_in_ci(hil: Hil) -> None:
    """With the sentence that says where a reviewed one is written."""
    result = hil("run", TARGET, "add", "--tolerance", "2", CI="true")
    assert result.code == 2
    assert "--tolerance 2 is refused in CI" in result.err
    assert "`budgets: {tolerance_lsb: 2}` into " in result.err
    assert "/budgets/add.yaml" in result.err


def test_a_tolerance_is_said_on_every_face(hil: Hil, tmp_path: Path) -> None:
    """Also where nothing was off: with it the verdict proves less."""
    page = tmp_path / "page.md"
    shown = hil("run", TARGET, "add", "--tolerance", "2", CI="", GITHUB_STEP_SUMMARY=str(page))
    assert "PASS (tolerance 2 LSB)" in shown.out
    assert "1 of 1 passed, 1 of them with a tolerance" in shown.out
    assert "| PASS (tolerance 2 LSB) |" in page.read_text()
    report = hil("run", TARGET, "add", "--tolerance", "2", "--json", CI="").json
    assert (report["verdict_text"], report["tolerance_lsb"]) == ("PASS (tolerance 2 LSB)", 2)
    assert "PASS (tolerance 2 LSB)" in hil("judge", report["run_dir"]).out


def test_recorded_outputs_that_are_lost_are_said_on_every_face(hil: Hil, tmp_path: Path) -> None:
    """As after a retraining that keeps every size: the reference is of another program."""
    references, page = tmp_path / "references", tmp_path / "page.md"
    environment = {"HIL_REFERENCES": str(references), "GITHUB_STEP_SUMMARY": str(page)}
    accepted = hil("accept", f"{TARGET}/add", "--reason", "first", **environment)
    assert "note: no reference run accepted yet" in accepted.out
    path = references / TARGET / "add.json"
    stored = json.loads(path.read_text())
    path.write_text(json.dumps({**stored, "pte_sha256": "ab" * 32}))
    lost = "the recorded outputs were not compared: the program is not that of the accepted run "
    shown = hil("run", TARGET, "add", **environment, CI="")
    report = hil("run", TARGET, "add", "--json", **environment, CI="").json
    assert shown.code == 0
    assert f"note: {lost}" in shown.out
    assert any(note.startswith(lost) for note in report["notes"])
    assert f"note: {lost}" in page.read_text()
    assert f"note: {lost}" in hil("judge", report["run_dir"]).out


def test_a_reference_of_another_program_is_red_in_ci(hil: Hil, tmp_path: Path) -> None:
    """An output changed by one byte, and the program's hash with it, once passed."""
    references = tmp_path / "references"
    environment = {"HIL_REFERENCES": str(references)}
    hil("accept", f"{TARGET}/add", "--reason", "first", **environment)
    path = references / TARGET / "add.json"
    stored = json.loads(path.read_text())
    stored["pte_sha256"] = "ab" * 32
    stored["outputs"][0][0] = "00" + stored["outputs"][0][0][2:]
    stored["contents"]["operators"][0][2] = 0.125  # the scale of the first quantiser
    path.write_text(json.dumps(stored))
    done = hil("run", TARGET, "add", **environment, CI="true")
    assert done.code == 1
    said = " ".join(done.out.split())
    assert "MISMATCH" in said
    assert "reference_program" in said
    assert "and it gives other outputs" in said
    assert "cortex_m::quantize_per_tensor.out #1: scale is 0.0" in said
    assert ", was 0.125" in said
    (case,) = hil("run", TARGET, "add", "--json", **environment, CI="true").json["cases"]
    (change,) = case["cause"]["facts"]["program_difference"]["operators"]
    assert change["parts"][0]["before"] == 0.125
    assert "MISMATCH" in hil("judge", case["run_dir"]).out  # also where CI is not set


# A model file is run in the exporter's process: here it stands for an exporter that has changed.
_MODEL = """
import torch
class Network(torch.nn.Module):
    def forward(self, x):
        return x * x + x
ModelUnderTest = Network().eval()
ModelInputs = (torch.ones(1, 4),)
"""
_PLANTED = """
import harness.export.child.calibrate as calibrate
fixed = calibrate._fixed
made = []
def planted(observer):
    made.append(fixed(observer))
    if len(made) == 1:
        scale, zero_point = made[0].calculate_qparams()
        made[0].derive_qparams_fn = lambda _: (scale * 1.25, zero_point)
    return made[-1]
calibrate._fixed = planted
"""


def test_a_scale_that_the_exporter_changed_is_red_in_ci(
    hil: Hil, exported: Exported, tmp_path: Path
) -> None:
    """The outputs match: what they are expected to be comes from the same export."""
    model = tmp_path / "mine.py"
    (tmp_path / ".git").mkdir()
    model.write_text(_MODEL)
    environment = {"HIL_REFERENCES": str(tmp_path / "references")}
    exported(model)
    assert hil("accept", f"{TARGET}/{model}", "--reason", "first", **environment).code == 0
    assert hil("run", TARGET, model, **environment, CI="true").code == 0
    model.write_text(_MODEL + _PLANTED)
    exported(model)
    done = hil("run", TARGET, model, **environment, CI="true")
    said = " ".join(done.out.split())
    assert done.code == 1
    assert "reference_program" in said
    assert "cortex_m::quantize_per_tensor.out: scale is 0.0" in said
    desk = hil("run", TARGET, model, **environment, CI="")
    assert desk.code == 0
    assert "note: the recorded outputs were not compared" in desk.out


def test_a_step_summary_that_cannot_be_written_is_infrastructure(hil: Hil, tmp_path: Path) -> None:
    result = hil("run", TARGET, "add", GITHUB_STEP_SUMMARY=str(tmp_path))
    assert result.code == 3
    assert "writing the step summary" in result.err


def test_a_users_model_is_not_held_against_the_catalogues_of_its_name(
    hil: Hil, exported: Exported, tmp_path: Path
) -> None:
    """Nor against another file of that name: each is accepted, and held, by itself."""
    for folder, width in (("a", 4), ("b", 8)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "add.py").write_text(
            "import torch\n"
            "class Add(torch.nn.Module):\n"
            "    def forward(self, x):\n"
            "        return x + x\n"
            "ModelUnderTest = Add().eval()\n"
            f"ModelInputs = (torch.ones(1, {width}),)\n"
        )
        exported(tmp_path / folder / "add.py")
    (tmp_path / ".git").mkdir()
    environment = {"HIL_REFERENCES": str(tmp_path / "references")}
    hil("accept", f"{TARGET}/add", "--reason", "ours", **environment)
    first = hil(
        "accept", f"{TARGET}/{tmp_path}/a/add.py", "--reason", "narrow", "--json", **environment
    ).json
    assert first["case"] == f"{TARGET}/a/add.py"
    wide = tmp_path / "b" / "add.py"
    report = hil("run", TARGET, wide, "--json", **environment).json
    assert report["case"] == f"{TARGET}/b/add.py"
    assert report["verdict"] == "PASS"
    assert "no reference run accepted yet" in report["notes"]
    assert "-b-add-" in Path(report["run_dir"]).name
    kept = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.glob("references/**/*.json"))
    assert kept == [f"references/{TARGET}/a/add.py.json", f"references/{TARGET}/add.json"]


def test_the_oracle_and_the_runner_that_follows_it(hil: Hil, tmp_path: Path) -> None:
    """An average has ties: the two definitions give other outputs, each exactly."""
    model = tmp_path / "average.py"
    model.write_text(
        "import torch\ntorch.manual_seed(1)\nModelUnderTest = torch.nn.AvgPool2d(2)\n"
        "ModelInputs = (torch.randn(1, 4, 8, 8),)\n"
    )
    said = [
        hil("run", "corstone-300-m55", model, *words, "--json").json["cases"][0]
        for words in ([], ["--oracle", "python"])
    ]
    assert [case["verdict"] for case in said] == ["PASS", "PASS"]
    assert [case["worst_lsb"] for case in said] == [0, 0]
    assert "as CMSIS-NN defines" in said[0]["oracles"]["expected"]
    assert "as Python defines" in said[1]["oracles"]["expected"]
    kept = [load_program(Path(case["run_dir"], "expected")) for case in said]
    contents = [[(p.directory / n).read_bytes() for s in p.sets for n in s.expected] for p in kept]
    assert contents[0] != contents[1]


def test_required_confinement_that_cannot_be_had_is_infra(hil: Hil, tmp_path: Path) -> None:
    """A case for which nothing is proven; with the user's word it is run all the same."""
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho planted; exit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    refused = hil("run", TARGET, "add", "--json", PATH=path, CI="1")
    assert refused.code == 3
    assert refused.json["cause"]["kind"] == "not_confined"
    assert "planted" in refused.json["cause"]["text"]
    assert hil("run", TARGET, "add", PATH=path, CI="1", HIL_REQUIRE_CONFINEMENT="0").code == 0


def test_isolation_is_the_wheels(hil: Hil, tmp_path: Path) -> None:
    result = hil(
        "run",
        TARGET,
        "add",
        "--isolate-export",
        "--exporter",
        "checkout",
        "--executorch",
        tmp_path,
        "--firmware",
        "bundled",
    )
    assert result.code == 2
    assert "--isolate-export is for the installed wheel" in result.err
