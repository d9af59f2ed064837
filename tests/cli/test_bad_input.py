"""Protects the user who gets something wrong: a clear error, a non-zero exit, nothing lost."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.export.program import Program
from harness.log.events import CPU_FAULTS

from .conftest import Hil

TARGETS = ("host", "corstone-300-m55")


def truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


def other_version(content: bytes) -> bytes:
    return content[:4] + b"ET99" + content[8:]


def root_flipped(content: bytes) -> bytes:
    return struct.pack("<I", struct.unpack_from("<I", content)[0] ^ (1 << 30)) + content[4:]


PROGRAMS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "truncated": (truncated, "invalid program"),
    "of another version": (other_version, "ET99"),
    "bit-flipped": (root_flipped, "invalid program"),
    "empty": (lambda _: b"", "program"),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_damaged_program(
    hil: Hil, add: Program, inputs: list[str], tmp_path: Path, target: str, name: str
) -> None:
    damage, said = PROGRAMS[name]
    (tmp_path / "bad.pte").write_bytes(damage(add.pte_path.read_bytes()))
    result = hil("exec", target, tmp_path / "bad.pte", *inputs, "-o", tmp_path / "o", "--json")
    assert result.code == 1
    assert result.json["verdict"] == "FAULT"
    assert result.json["cause"]["kind"] == "bad_program"
    assert said in result.json["cause"]["text"]
    assert not list(tmp_path.glob("o-*"))


def test_random_damage_never_crashes_the_runner(
    hil: Hil, add: Program, inputs: list[str], tmp_path: Path
) -> None:
    """Whatever the bytes: an error in words, or outputs; a fault or a hang is a defect."""
    seed = 20260102
    print("seed", seed)
    rng = random.Random(seed)
    for _ in range(8):
        content = bytearray(add.pte_path.read_bytes())
        for _ in range(3):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        (tmp_path / "bad.pte").write_bytes(content)
        result = hil(
            "exec",
            "corstone-300-m55",
            tmp_path / "bad.pte",
            *inputs,
            "-o",
            tmp_path / "o",
            "--json",
        )
        cause = result.json["cause"]
        assert result.code == 0 or cause["kind"] not in {*CPU_FAULTS, "deadline", "stall"}, cause


def test_an_operator_that_is_not_in_the_build_is_named(
    hil: Hil, add: Program, inputs: list[str], tmp_path: Path
) -> None:
    content = add.pte_path.read_bytes()
    assert content.count(b"cortex_m::quantized_add\0") == 1
    (tmp_path / "bad.pte").write_bytes(
        content.replace(b"cortex_m::quantized_add\0", b"cortex_m::quantized_axe\0")
    )
    result = hil("exec", "corstone-300-m55", tmp_path / "bad.pte", *inputs, "--json")
    assert result.code == 1
    assert result.json["cause"]["kind"] == "runner_lacks"
    assert result.json["cause"]["facts"]["operators"] == ["cortex_m::quantized_axe.out"]


def test_wrong_number_of_inputs(hil: Hil, add: Program, inputs: list[str]) -> None:
    result = hil("exec", "host", add.pte_path, *inputs[:2], "--json")
    assert result.code == 1
    assert result.json["cause"]["kind"] == "input_rejected"
    assert "expected 2, got 1" in result.json["cause"]["text"]


def test_wrong_size_of_an_input(hil: Hil, add: Program, inputs: list[str], tmp_path: Path) -> None:
    (tmp_path / "long.bin").write_bytes(bytes(5))
    result = hil("exec", "host", add.pte_path, *inputs[:2], "-i", tmp_path / "long.bin", "--json")
    assert result.code == 1
    assert result.json["cause"]["kind"] == "input_rejected"
    assert "expected 4 bytes, got 5" in result.json["cause"]["text"]


USAGE = {
    "unknown target": (
        ("run", "corstone-300-m5", "add"),
        "did you mean corstone-300-m85 or corstone-300-m55",
    ),
    "unknown model": (("run", "host", "ds_cn"), "did you mean ds_cnn?"),
    "a model that does not export": (("run", "host", "deit_tiny"), "timm"),
    "no model": (("run", "host"), "no model was named"),
    "two models and --pte": (
        ("run", "host", "add", "mul", "--pte", __file__),
        "--pte replaces one",
    ),
    "unknown simulator": (("run", "host", "add", "--simulator", "qemu"), "no simulator 'qemu'"),
    "no such program": (("exec", "host", "none.pte"), "there is no file none.pte"),
    "no such model file": (("run", "host", "none.py"), "no such model file"),
    "not a run directory": (("judge", "."), "is not a run directory"),
    "not a case": (("accept", "ds_cnn", "--reason", "x"), "is not a case"),
    "a limit factor that is none": (
        ("exec", "host", "none.pte", "--limit-factor", "0"),
        "not a number above 0",
    ),
    "unknown verb": (("rum",), "has no command 'rum'"),
}


@pytest.mark.parametrize("name", USAGE)
def test_wrong_usage_is_exit_2_and_says_what_to_do(hil: Hil, name: str) -> None:
    arguments, said = USAGE[name]
    result = hil(*arguments)
    assert result.code == 2
    assert said in result.err


@pytest.mark.parametrize(("ci", "code", "verdict"), [("", 1, "SKIPPED"), ("true", 3, "INFRA")])
def test_exec_without_the_fvp_it_wants(
    hil: Hil, add: Program, inputs: list[str], ci: str, code: int, verdict: str
) -> None:
    result = hil(
        "exec",
        "corstone-300-m55",
        add.pte_path,
        *inputs,
        "--simulator",
        "fvp",
        "--json",
        HIL_FVP_DIR="/nonexistent",
        CI=ci,
    )
    assert (result.code, result.json["verdict"]) == (code, verdict)
    assert "FVP_Corstone_SSE-300" in result.json["cause"]["text"]


def test_limits_of_exec_can_be_scaled(
    hil: Hil, add: Program, inputs: list[str], tmp_path: Path
) -> None:
    """3 ms for a run that takes a hundred: the limit that was asked for ends it."""
    result = hil(
        "exec",
        "corstone-300-m55",
        add.pte_path,
        *inputs,
        "-o",
        tmp_path / "o",
        "--simulator",
        "qemu",
        "--limit-factor",
        "0.00001",
        "--json",
    )
    assert (result.code, result.json["verdict"]) == (1, "HANG")


def test_a_malformed_target_names_file_and_line(hil: Hil, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("extends: host\ndescription: mine\nlimits:\n  hots: 3\n")
    (tmp_path / "hil.toml").write_text('targets = ["."]')
    result = hil("run", "mine", "add", "--json", HIL_PROJECT=str(tmp_path))
    assert result.code == 2
    assert result.json["cause"]["kind"] == "bad_target"
    assert "mine.yaml:4" in result.json["cause"]["text"]


def test_outputs_with_nowhere_to_go(hil: Hil, add: Program, inputs: list[str]) -> None:
    result = hil("exec", "host", add.pte_path, *inputs, "-o", "/nonexistent/out")
    assert result.code == 2
    assert "no directory /nonexistent" in result.err


def test_an_output_that_cannot_be_written(
    hil: Hil, add: Program, inputs: list[str], tmp_path: Path
) -> None:
    (tmp_path / "o-0.bin").mkdir()
    result = hil("exec", "host", add.pte_path, *inputs, "-o", tmp_path / "o")
    assert result.code == 3
    assert "writing the outputs: " in result.err


@pytest.mark.parametrize(
    ("tool", "package"),
    [("qemu-system-arm", "qemu-system-arm"), ("arm-none-eabi-gcc", "gcc-arm-none-eabi")],
)
def test_a_missing_tool_is_named_with_its_package(
    hil: Hil, tmp_path: Path, tool: str, package: str
) -> None:
    """A PATH that has everything but one tool, and a cache without firmware."""
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    for directory in ("/usr/bin", "/bin"):
        for path in Path(directory).iterdir():
            if path.name != tool and not os.path.lexists(bin_dir / path.name):
                (bin_dir / path.name).symlink_to(path)
    result = hil(
        "run", "corstone-300-m55", "add", "--json", PATH=str(bin_dir), HIL_HOME=str(tmp_path)
    )
    assert result.code == 3
    assert result.json["verdict"] == "INFRA"
    assert tool in result.json["cause"]["text"]
    assert package in result.json["cause"]["text"]
    assert "exporting" not in result.err, "it could have been said a minute before"


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bwrap to make a small disk")
def test_a_full_disk_is_an_infrastructure_error(
    hil: Hil, add: Program, inputs: list[str], tmp_path: Path
) -> None:
    """A real file system of 256 KiB as the state directory: the build cannot fit."""
    small = tmp_path / "small"
    small.mkdir()
    prefix = ("bwrap", "--dev-bind", "/", "/", "--size", str(256 << 10), "--tmpfs", str(small))
    result = hil(
        "exec", "host", add.pte_path, *inputs, "--json", prefix=prefix, HIL_HOME=str(small)
    )
    assert result.code == 3
    assert result.json["verdict"] == "INFRA"
    assert result.json["cause"]["kind"] == "disk_full"


def test_a_line_break_in_a_path(hil: Hil, tmp_path: Path) -> None:
    (tmp_path / "a\nb.pte").touch()
    result = hil("size", tmp_path / "a\nb.pte")
    assert result.code == 2
    assert "a\\nb.pte' has a line break in its name" in result.err


def test_an_unwritable_state_directory(hil: Hil, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = hil("run", "host", "add", "--json", HIL_HOME=str(tmp_path / "file"))
    assert result.code == 3
    assert str(tmp_path / "file") in result.json["cause"]["text"]
    assert os.path.isfile(tmp_path / "file")


def test_a_limit_factor_that_is_not_a_number(hil: Hil, tmp_path: Path) -> None:
    """Every comparison with NaN fails, so a range alone lets it in: and then nothing ever ends."""
    said = hil("run", "host", "add", "--limit-factor", "nan")
    assert (said.code, "--limit-factor" in said.err) == (2, True)
    (tmp_path / "hil.toml").write_text("limit_factor = nan")
    said = hil("run", "host", "add", HIL_PROJECT=str(tmp_path))
    assert (said.code, "limit_factor is not a number above 0" in said.err) == (2, True)


def test_a_tolerance_that_is_not_a_number(hil: Hil) -> None:
    assert hil("run", "host", "add", "--tolerance", "nan").code == 2


def test_a_malformed_reference_is_a_wrong_use(hil: Hil, tmp_path: Path) -> None:
    """Before any work, and with the file named."""
    file = tmp_path / "host" / "add.json"
    file.parent.mkdir()
    file.write_text('{"program": {"pte_bytes": Infinity}}')
    result = hil("run", "host", "add", HIL_REFERENCES=str(tmp_path))
    assert result.code == 2
    assert f"{file} is not a reference" in result.err
    assert "Infinity is not a number" in result.err


def test_a_target_file_that_nobody_writes(hil: Hil, tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text("a: " + "[" * 20_000)
    result = hil("run", file, "add")
    assert (result.code, result.err) == (
        2,
        f"hil: error: {file}:1: nested more than 32 deep\n",
    )


def test_little_memory(hil: Hil) -> None:
    """As `ulimit -v` gives it: a sentence and status 3."""
    result = hil("run", "corstone-300-m55", "add", prefix=("prlimit", f"--as={400_000 * 1024}"))
    assert result.code == 3
    assert "memory" in result.err + result.out


def test_a_home_that_is_a_file(hil: Hil, tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    result = hil("run", "host", "add", HIL_HOME=str(tmp_path / "home"), process=True)
    assert result.code == 3
    assert str(tmp_path / "home") in result.out + result.err


def test_a_traceback_is_for_whoever_asks(tmp_path: Path) -> None:
    """Standard output stays JSON."""
    for more in ([], ["--debug"]):
        argv = [sys.executable, "-m", "harness", *more, "judge", str(tmp_path), "--json"]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.returncode == 2
        assert json.loads(done.stdout)["cause"]["kind"] == "usage"
        assert ("Traceback" in done.stderr) == bool(more)


@pytest.mark.parametrize("words", [("targets",), ("targets", "--json"), ("judge", "console.log")])
def test_a_full_standard_output_is_named(words: tuple[str, ...], tmp_path: Path) -> None:
    """It was "point HIL_HOME at another disk", and status 120."""
    (tmp_path / "console.log").write_text("nothing\n")
    with Path("/dev/full").open("wb") as full:
        argv = [sys.executable, "-m", "harness", *words]
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        "hil: error: writing to standard output: No space left on device",
        "hil: free some space on its disk, or redirect it to another one",
    ]
