"""The guest's /dev/ethosu0: built, and used by its ioctls alone in a guest on the real QEMU."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from harness.dev.doubles import FakeFirmware
from harness.ethosu.blob import Blob, read_blob
from harness.ethosu.doorbell import Outcome, Result
from harness.ethosu.npu_process import NpuProcess
from harness.guest import driver as guest_driver
from harness.guest.driver import DriverNotBuilt, driver
from harness.guest.packages import packages
from harness.simulate import linux_npu
from harness.simulate.pick import pick
from harness.simulate.simulation import simulate
from harness.simulate.transcript import Transcript
from harness.system import toolchain
from harness.system.paths import project_root
from harness.target.loading import load_target, target_directories
from tests.guest.recording import FILE

pytestmark = [
    pytest.mark.corstone1000,
    pytest.mark.skipif(
        not (shutil.which("aarch64-linux-gnu-gcc") and shutil.which("qemu-system-aarch64")),
        reason="needs aarch64-linux-gnu-gcc and qemu-system-aarch64",
    ),
]


@pytest.fixture
def home(tmp_path: Path, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, with the packages and the driver of the guest that are there already."""
    shared = Path(shared_hil_home) / "cache" / "guest"
    shared.mkdir(parents=True, exist_ok=True)
    (tmp_path / ".hil" / "cache").mkdir(parents=True)
    (tmp_path / ".hil" / "cache" / "guest").symlink_to(shared)
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    return tmp_path


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> FakeFirmware:
    elf = tmp_path_factory.mktemp("raw") / "raw"
    done = subprocess.run(
        [toolchain.require("aarch64-linux-gnu-gcc").path, "-static", "-O1", "-g", "-Wall",
         "-Wextra", "-Werror", f"-I{project_root()}", "-o", elf, Path(__file__).with_name("raw.c")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return FakeFirmware(elf)


def network(name: str) -> tuple[Blob, list[bytes], list[bytes]]:
    """As recorded: its blob, inputs and expected outputs."""
    with np.load(FILE) as arrays:
        kinds = ("in", "out")
        values = [
            [arrays[k].tobytes() for k in sorted(arrays.files) if k.startswith(f"{name}/{kind}")]
            for kind in kinds
        ]
        return read_blob(arrays[f"{name}/blob"].tobytes()), values[0], values[1]


def in_guest(home: Path, raw: FakeFirmware, words: str, files: Sequence[bytes]) -> Transcript:
    """``raw`` is told ``words``, and finds the files as its inputs."""
    given = home / "given"
    given.mkdir()
    (given / "program.pte").write_text(words)
    paths = [given / str(number) for number in range(len(files))]
    for path, content in zip(paths, files, strict=True):
        path.write_bytes(content)
    target = load_target("corstone-1000-u85-256", target_directories({}))
    return simulate(pick(target), raw, given / "program.pte", [paths], run_dir=home / "run")


def rows(transcript: Transcript) -> list[str]:
    """What ``raw`` said, without the kernel's messages."""
    console = (transcript.run_dir / "console.log").read_bytes().decode()
    said = console.partition("echo \"@\"hil 2")[2].partition("@hil 2 ")[0]
    lines = [re.sub(r"\[ *\d+\.\d{6}\] .*", "", line).strip() for line in said.splitlines()]
    return [line for line in lines[1:] if line]


@pytest.mark.parametrize("name", ["add", "convolutions", "outputs"])
def test_networks_are_exact(home: Path, raw: FakeFirmware, name: str) -> None:
    blob, inputs, expected = network(name)
    ins = sorted(range(len(blob.inputs)), key=lambda n: blob.inputs[n].offset)
    outs = sorted(range(len(blob.outputs)), key=lambda n: blob.outputs[n].offset)
    sizes = [blob.inputs[n].size for n in ins] + [blob.outputs[n].size for n in outs]
    words = ["RUN", blob.scratch_size, len(ins), len(outs), 20, *sizes]
    files = [blob.commands, blob.weights, *(inputs[n] for n in ins)]
    done = in_guest(home, raw, " ".join(map(str, words)), files)
    assert rows(done) == ["network: 1", "inferences: 20"]
    written = [(home / "run" / "work" / f"s0-{n}.bin").read_bytes() for n in range(len(outs))]
    assert written == [expected[n] for n in outs]
    assert done.npu is not None
    assert (done.npu.jobs, done.npu.stop) == (20, None)
