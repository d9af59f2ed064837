"""What is run again elsewhere is what was run: the same, or it says what is not."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import main
from harness.config.loading import load_target
from harness.core.errors import UsageError
from harness.core.verdict import ExitCode, Verdict
from harness.run.bundle import BadBundle, Replay, pack, read_bundle, target_fields, unpack
from harness.run.bundle import replay as replay_confined
from harness.run.judging import judge_again
from harness.run.pipeline import RunOptions
from harness.run.record import RunRecord
from harness.size.memory_plan import MemoryPlanError
from tests.size.plan_samples import offsets_in, with_offset

from .conftest import TARGET, made
from .forging import described, edited, members, packed

replay = partial(replay_confined, require_confinement=False)


def packed_run(record: RunRecord, out: Path) -> Path:
    pack(Path(str(record.run_dir)), out)
    return out


def test_elsewhere_it_is_the_same(bundle: Path, elsewhere: Path, passed: RunRecord) -> None:
    """Verdict, outputs and all figures; the new run stands for itself and can be judged again."""
    found = replay(bundle)
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
    here = replay(bundle).here
    assert replay(packed_run(here, tmp_path / "again.tar.zst")).same


def test_a_program_whose_tensors_share_memory_is_refused(bundle: Path, tmp_path: Path) -> None:
    content = members(bundle)
    pte = content["work/program.pte"]
    last = max(offsets_in(pte))
    content["work/program.pte"] = with_offset(pte, last, 1 << 20)
    (tmp_path / "wrong.tar.zst").write_bytes(packed(described(content)))
    with pytest.raises(MemoryPlanError, match=f"value {last} .* ends outside its buffer"):
        replay(tmp_path / "wrong.tar.zst")


def test_a_failure_is_reproduced(home: Path, tmp_path: Path) -> None:
    """The same verdict and cause; and it stays a failure."""
    damaged = tmp_path / "damaged.pte"
    damaged.write_bytes(b"this is no program" * 10)
    record = made(home, RunOptions(pte=damaged))
    if record.run_dir is None:  # refused before it ran
        pytest.fail(str(record.cause))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIL_HOME", str(home / ".hil"))
        file = packed_run(record, tmp_path / "failed.tar.zst")
    found = replay(file)
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
        file = packed_run(record, tmp_path / "b.tar.zst")
    assert json.loads(members(file)["target.json"]) == json.loads(
        json.dumps(target_fields(load_target(target)))
    )
    assert replay(file).same
    (tmp_path / "repro.sh").write_bytes(members(file)["repro.sh"])
    if lacking:
        alone = ["sh", str(tmp_path / "repro.sh")]
        done = subprocess.run(alone, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert lacking in done.stderr


def differs(found: Replay) -> bool:
    return not found.same and found.exit_code is not ExitCode.PASSED


def test_another_output_there_is_reported(bundle: Path, tmp_path: Path) -> None:
    """Its name, though both are PASS: then it is not proven to be the same."""
    forged = edited(
        bundle, tmp_path / "f", "record.json", lambda r: r["output_sha256"].__setitem__(1, ["00"])
    )
    found = replay(forged)
    assert list(found.differing) == ["s1-0.bin"]
    assert differs(found)


def test_another_figure_there_is_reported(bundle: Path, tmp_path: Path) -> None:
    """With both values."""
    forged = edited(
        bundle, tmp_path / "f", "record.json", lambda r: r["metrics"].update(elf_text=1)
    )
    found = replay(forged)
    assert list(found.differing) == ["elf_text"]
    assert found.differing["elf_text"][0] == 1
    assert differs(found)


def first_expected(content: Mapping[str, bytes]) -> str:
    """The member with what the first output of the first input set has to be."""
    return f"expected/{json.loads(content['expected/program.json'])['sets'][0]['expected'][0]}"


def test_other_expectations_are_another_verdict(bundle: Path, tmp_path: Path) -> None:
    """It is judged here, not copied from there."""
    content = members(bundle)
    first = first_expected(content)
    content[first] = bytes(len(content[first]))
    (tmp_path / "f").write_bytes(packed(described(content)))
    found = replay(tmp_path / "f")
    assert found.here.verdict is Verdict.MISMATCH
    assert found.differing["verdict"] == (Verdict.PASS, Verdict.MISMATCH)
    assert differs(found)


def test_another_version_of_the_simulator(bundle: Path, tmp_path: Path) -> None:
    """It is run all the same, and the answer has both."""
    forged = edited(
        bundle, tmp_path / "f", "record.json", lambda r: r["simulator"].update(version="0.1")
    )
    found = replay(forged)
    assert found.versions[0] == "0.1" != found.versions[1]
    assert found.same
    shown = CliRunner().invoke(main, ["replay", str(forged), "--no-require-confinement"])
    assert "here: version " in shown.output


def test_another_target_of_that_name(bundle: Path, tmp_path: Path) -> None:
    """Is told with what differs; the bundle's own on demand."""
    forged = edited(
        bundle, tmp_path / "f", "target.json", lambda t: t.update(description="another board")
    )
    with pytest.raises(UsageError, match="it differs in description") as caught:
        replay(forged)
    assert "--target-from-bundle" in (caught.value.hint or "")
    assert replay(forged, target_from_bundle=True).same


def test_a_target_that_is_not_known_here(bundle: Path, tmp_path: Path) -> None:
    """A board of the user who made it."""
    first = edited(bundle, tmp_path / "1", "target.json", lambda t: t.update(name="my-board"))
    forged = edited(
        first, tmp_path / "2", "record.json", lambda r: r["case"].update(target="my-board")
    )
    with pytest.raises(UsageError, match="not known here"):
        replay(forged)
    assert replay(forged, target_from_bundle=True).same


def outward(fields: dict[str, Any]) -> None:
    fields["sets"][0]["expected"] = ["../../../../../../etc/passwd"]


DAMAGE: dict[str, tuple[str, Callable[[dict[str, Any]], object], str]] = {
    "an output from outside": ("expected/program.json", outward, "etc/passwd"),
    "no program": ("expected/program.json", lambda p: p.clear(), "program is not whole"),
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
        "expected/program.json",
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
        replay(forged)


def test_an_expected_output_that_is_too_short(bundle: Path, tmp_path: Path) -> None:
    content = members(bundle)
    content[first_expected(content)] = b"x"
    (tmp_path / "f").write_bytes(packed(described(content)))
    with pytest.raises(BadBundle, match=r"cannot be run .*bytes, got 1"):
        replay(tmp_path / "f")


WRONG: tuple[object, ...] = (None, "x", -1, [], {}, [[1]])
MEMBERS = ("record.json", "expected/program.json", "target.json", "firmware/firmware.json")


@pytest.mark.parametrize("member", MEMBERS)
def test_a_value_of_another_type_is_not_a_crash(member: str, bundle: Path, tmp_path: Path) -> None:
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
            read_bundle(file, root, unpack(file, root))


def test_repro_sh_needs_the_simulator_alone(bundle: Path, tmp_path: Path) -> None:
    """It works in the folder that tar makes; an output that differs is named."""
    folder = tmp_path / "un packed"
    folder.mkdir()
    subprocess.run(["tar", "--zstd", "-xf", bundle], cwd=folder, check=True)
    script = ["sh", str(folder / "repro.sh")]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": the same") == 3
    (folder / "work" / "s2-0.bin").write_bytes(b"x")
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
    assert "another pte_bytes: it was 1, and is 5" in told.output
    (tmp_path / "no").write_bytes(b"nothing of the kind")
    refused = CliRunner().invoke(main, ["replay", str(tmp_path / "no")])
    assert refused.exit_code == 2
    assert "not a sound bundle" in refused.output
