"""What is run again elsewhere is what was run: the same, or it says what is not."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import main
from harness.config.loading import load_target
from harness.core.verdict import ExitCode, Verdict
from harness.run.bundle import BadBundle, unpack
from harness.run.judging import judge_again
from harness.run.pack import pack, target_fields
from harness.run.pipeline import RunOptions
from harness.run.record import RunRecord
from harness.run.replay import (
    OtherSimulator,
    OtherTarget,
    Replay,
    ReplayOptions,
    read_bundle,
    replay,
)

from .conftest import TARGET, made
from .forging import described, edited, members, packed

OPTIONS = ReplayOptions(require_confinement=False)


def test_elsewhere_it_is_the_same(bundle: Path, elsewhere: Path, passed: RunRecord) -> None:
    """Verdict, outputs and all figures; the new run stands for itself and can be judged again."""
    found = replay(bundle, OPTIONS)
    assert found.same, found.summary()
    assert found.exit_code is ExitCode.PASSED
    assert found.here.output_sha256 == passed.output_sha256
    assert found.here.metrics == passed.metrics
    assert found.here.run_dir is not None
    assert found.here.run_dir.startswith(str(elsewhere))
    assert judge_again(Path(found.here.run_dir)).verdict is Verdict.PASS
    assert not (elsewhere / "cache" / "programs").exists()  # nothing was exported
    assert not (elsewhere / "cache" / "firmware").exists()  # or built


def test_a_replay_can_be_bundled(bundle: Path, tmp_path: Path) -> None:
    """It has all that it needs in its own directory."""
    here = replay(bundle, OPTIONS).here
    again = pack(Path(str(here.run_dir)), tmp_path / "again.tar.zst").path
    assert replay(again, OPTIONS).same


def test_a_failure_is_reproduced(home: Path, tmp_path: Path) -> None:
    """The same verdict and cause; and it stays a failure."""
    damaged = tmp_path / "damaged.pte"
    damaged.write_bytes(b"this is no program" * 10)
    record = made(home, RunOptions(pte=damaged))
    if record.run_dir is None:  # refused before it ran
        pytest.fail(str(record.cause))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIL_HOME", str(home / ".hil"))
        file = pack(Path(record.run_dir), tmp_path / "failed.tar.zst").path
    found = replay(file, OPTIONS)
    assert found.same, found.summary()
    assert found.here.verdict is record.verdict
    assert found.exit_code is record.verdict.exit_code is ExitCode.FAILED


@pytest.mark.parametrize(
    ("target", "simulator", "lacking"),
    [
        ("host", "auto", ""),
        ("corstone-300-u55-128", "auto", "the model of the NPU is the harness's"),
        ("corstone-1000-a320", "qemu_user", "the guest's Linux is made by the harness"),
    ],
)
def test_other_ways_to_run(
    target: str, simulator: str, lacking: str, home: Path, tmp_path: Path
) -> None:
    """A native program, whose ticks are this machine's; what needs the harness, and the script
    says so; a target whose facts name folders (of its guest), which stay as they are."""
    record = made(home, RunOptions(simulator), target, "add")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIL_HOME", str(home / ".hil"))
        file = pack(Path(str(record.run_dir)), tmp_path / "b.tar.zst").path
    assert json.loads(members(file)["target.json"]) == json.loads(
        json.dumps(target_fields(load_target(target)))
    )
    assert replay(file, OPTIONS).same
    (tmp_path / "repro.sh").write_bytes(members(file)["repro.sh"])
    if lacking:
        alone = ["sh", str(tmp_path / "repro.sh")]
        done = subprocess.run(alone, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert lacking in done.stderr


def differs(found: Replay) -> bool:
    return not found.same and found.exit_code is not ExitCode.PASSED


def test_another_output_there_is_told(bundle: Path, tmp_path: Path) -> None:
    """Its name, though both are PASS: then it is not proven to be the same."""
    forged = edited(
        bundle, tmp_path / "f", "record.json", lambda r: r["output_sha256"].__setitem__(1, ["00"])
    )
    found = replay(forged, OPTIONS)
    assert found.outputs == ("s1-0.bin",)
    assert differs(found)


def test_another_figure_there_is_told(bundle: Path, tmp_path: Path) -> None:
    """With both values."""
    forged = edited(
        bundle, tmp_path / "f", "record.json", lambda r: r["metrics"].update(elf_text=1)
    )
    found = replay(forged, OPTIONS)
    assert set(found.metrics) == {"elf_text"}
    assert found.metrics["elf_text"][0] == 1
    assert differs(found)


def test_other_expectations_are_another_verdict(bundle: Path, tmp_path: Path) -> None:
    """It is judged here, not copied from there."""
    content = members(bundle)
    content["expected/set0-0.bin"] = bytes(len(content["expected/set0-0.bin"]))
    (tmp_path / "f").write_bytes(packed(described(content)))
    found = replay(tmp_path / "f", OPTIONS)
    assert found.here.verdict is Verdict.MISMATCH
    assert not found.same_verdict
    assert differs(found)


def test_another_version_of_the_simulator(bundle: Path, tmp_path: Path) -> None:
    """Is told with both, unless somebody wants it so; then the report has both."""
    forged = edited(
        bundle, tmp_path / "f", "record.json", lambda r: r["simulator"].update(version="0.1")
    )
    with pytest.raises(OtherSimulator, match=r"qemu 0\.1, and here is qemu") as caught:
        replay(forged, OPTIONS)
    assert caught.value.hint is not None
    assert "--any-version" in caught.value.hint
    found = replay(forged, ReplayOptions(any_version=True, require_confinement=False))
    assert found.versions[0] == "0.1" != found.versions[1]
    assert found.same


def test_another_target_of_that_name(bundle: Path, tmp_path: Path) -> None:
    """Is told with what differs; the bundle's own on demand."""
    forged = edited(
        bundle, tmp_path / "f", "target.json", lambda t: t.update(description="another board")
    )
    with pytest.raises(OtherTarget, match="differs in description") as caught:
        replay(forged, OPTIONS)
    assert caught.value.differing == ("description",)
    assert replay(forged, ReplayOptions(bundled_target=True, require_confinement=False)).same


def test_a_target_that_is_not_known_here(bundle: Path, tmp_path: Path) -> None:
    """A board of the user who made it."""
    first = edited(bundle, tmp_path / "1", "target.json", lambda t: t.update(name="my-board"))
    forged = edited(
        first, tmp_path / "2", "record.json", lambda r: r["case"].update(target="my-board")
    )
    with pytest.raises(OtherTarget, match="not known here"):
        replay(forged, OPTIONS)
    assert replay(forged, ReplayOptions(bundled_target=True, require_confinement=False)).same


def outward(fields: dict[str, Any]) -> None:
    fields["sets"][0]["inputs"] = ["../../../../../../etc/passwd"]


DAMAGE: dict[str, tuple[str, Callable[[dict[str, Any]], object], str]] = {
    "an input from outside": ("program.json", outward, "etc/passwd"),
    "a program from outside": ("program.json", lambda p: p.update(pte="/etc/passwd"), "passwd"),
    "no program": ("program.json", lambda p: p.clear(), "not a sound bundle: '"),
    "no record": ("record.json", lambda r: r.clear(), "another format"),
    "a record of a run that was not made": (
        "record.json",
        lambda r: r.update(simulator=None),
        "whole run",
    ),
    "a memory map that is none": (
        "firmware/firmware.json",
        lambda f: f["options"].update(HIL_REGION_DTCM="x"),
        "cannot be run .*invalid literal",
    ),
    "an output of an unknown type": (
        "program.json",
        lambda p: p["outputs"][0].update(dtype="x"),
        "cannot be run",
    ),
    "another firmware": ("firmware/firmware.json", lambda f: f.update(elf_sha256="00"), "firmware"),
    "no target": ("target.json", lambda t: t.clear(), "required key 'name' is missing"),
    "the target of another": ("target.json", lambda t: t.update(name="host"), "run was on"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_whatever_contradicts_itself_is_not_run(name: str, bundle: Path, tmp_path: Path) -> None:
    """Though its manifest fits."""
    member, change, said = DAMAGE[name]
    forged = edited(bundle, tmp_path / "f", member, change)
    with pytest.raises(BadBundle, match=said):
        replay(forged, OPTIONS)


def test_an_expected_output_that_is_too_short(bundle: Path, tmp_path: Path) -> None:
    content = {**members(bundle), "expected/set0-0.bin": b"x"}
    (tmp_path / "f").write_bytes(packed(described(content)))
    with pytest.raises(BadBundle, match=r"cannot be run .*bytes, got 1"):
        replay(tmp_path / "f", OPTIONS)


WRONG: tuple[object, ...] = (None, "x", -1, [], {}, [[1]])
MEMBERS = ("record.json", "program.json", "target.json", "firmware/firmware.json")


@pytest.mark.parametrize("member", MEMBERS)
def test_a_value_of_another_type_is_no_crash(member: str, bundle: Path, tmp_path: Path) -> None:
    """Each key of each description gets values of other types; nothing is simulated."""
    content = members(bundle)
    fields = json.loads(content[member])
    for number, key in enumerate(sorted(fields)):
        wrong = {**fields, key: WRONG[number % len(WRONG)]}
        forged = described({**content, member: json.dumps(wrong).encode()})
        file, root = tmp_path / f"{number}.tar.zst", tmp_path / str(number)
        file.write_bytes(packed(forged))
        root.mkdir()
        with suppress(BadBundle):
            read_bundle(file, root, unpack(file, root).files)


def test_repro_sh_needs_the_simulator_alone(bundle: Path, tmp_path: Path) -> None:
    """It works in the folder that tar makes; an output that differs is named."""
    folder = tmp_path / "un packed"
    folder.mkdir()
    subprocess.run(["tar", "--zstd", "-xf", bundle], cwd=folder, check=True)
    script = ["sh", str(folder / "repro.sh")]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": the same") == 3
    (folder / "outputs" / "s2-0.bin").write_bytes(b"x")
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "s2-0.bin" in done.stdout + done.stderr


def test_the_commands(passed: RunRecord, home: Path, tmp_path: Path) -> None:
    """What they print, with --json and without, and how they end."""
    out = tmp_path / "x.tar.zst"
    packing = ["bundle", str(passed.run_dir), "-o", str(out)]
    made = CliRunner().invoke(main, packing, env={"HIL_HOME": str(home / ".hil")})
    assert made.exit_code == 0, made.output
    assert f"{TARGET}/ds_cnn, PASS on qemu" in made.output
    words = ["replay", str(out), "--no-require-confinement"]
    said = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)
    assert said["same"] is True
    assert said["there"] == {"verdict": "PASS", "cause": None}
    forged = edited(out, tmp_path / "f", "record.json", lambda r: r["metrics"].update(pte_bytes=1))
    told = CliRunner().invoke(main, ["replay", str(forged), "--no-require-confinement"])
    assert told.exit_code == 1
    assert "other figure: pte_bytes was 1, is 5" in told.output
    (tmp_path / "no").write_bytes(b"nothing of the kind")
    refused = CliRunner().invoke(main, ["replay", str(tmp_path / "no")])
    assert refused.exit_code == 2
    assert "not a sound bundle" in refused.output
