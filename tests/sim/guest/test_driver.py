"""The guest's /dev/ethosu0: built, and used by its ioctls alone in a guest on the real QEMU."""

from __future__ import annotations

import errno
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from harness.config.loading import load_target, target_directories
from harness.npu.blob import Blob, read_blob
from harness.npu.doorbell import Outcome
from harness.npu.npu_process import STOPPED, NpuProcess
from harness.sim import companion
from harness.sim.guest import kernel
from harness.sim.guest.kernel import (
    COMMON,
    HEADERS,
    KBUILD,
    DriverNotBuilt,
    driver,
    guest_kernel,
    packages,
)
from harness.sim.simulation import simulate
from harness.sim.simulator import pick
from harness.sim.transcript import Transcript
from harness.system import toolchain
from tests.sim.guest.recording import FILE
from tools.clone import project_root
from tools.doubles import FakeFirmware

pytestmark = [
    pytest.mark.corstone1000,
    pytest.mark.skipif(
        not (shutil.which("aarch64-linux-gnu-gcc") and shutil.which("qemu-system-aarch64")),
        reason="needs aarch64-linux-gnu-gcc and qemu-system-aarch64",
    ),
]


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> FakeFirmware:
    elf = tmp_path_factory.mktemp("raw") / "raw"
    done = subprocess.run(
        [
            toolchain.locate("aarch64-linux-gnu-gcc"),
            "-static",
            "-O1",
            "-g",
            "-Wall",
            "-Wextra",
            "-Werror",
            f"-I{project_root()}",
            "-o",
            elf,
            Path(__file__).with_name("raw.c"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
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


def in_guest(guest_home: Path, raw: FakeFirmware, words: str, files: Sequence[bytes]) -> Transcript:
    """``raw`` is told ``words``, and finds the files as its inputs."""
    given = guest_home / "given"
    given.mkdir()
    (given / "program.pte").write_text(words)
    paths = [given / str(number) for number in range(len(files))]
    for path, content in zip(paths, files, strict=True):
        path.write_bytes(content)
    target = load_target("corstone-1000-u85-256", target_directories({}))
    return simulate(pick(target), raw, given / "program.pte", [paths], run_dir=guest_home / "run")


def rows(transcript: Transcript) -> list[str]:
    """What ``raw`` said, without the kernel's messages."""
    console = (transcript.run_dir / "console.log").read_bytes().decode()
    said = console.partition("BEGIN\r")[2].partition("@hil ")[0]
    lines = [re.sub(r"\[ *\d+\.\d{6}\] .*", "", line).strip() for line in said.splitlines()]
    return [line for line in lines if line]


def test_networks_are_exact(guest_home: Path, raw: FakeFirmware) -> None:
    """Two inputs that Vela has put in the other order, weights with scratch, two outputs; each 20
    times, with new buffers."""
    files: list[bytes] = []
    lines, expected = [], {}
    for name in ("add", "convolutions", "outputs"):
        blob, inputs, answers = network(name)
        ins = sorted(range(len(blob.inputs)), key=lambda n: blob.inputs[n].offset)
        outs = sorted(range(len(blob.outputs)), key=lambda n: blob.outputs[n].offset)
        sizes = [blob.inputs[n].size for n in ins] + [blob.outputs[n].size for n in outs]
        words = ["RUN", len(files), blob.scratch_size, len(ins), len(outs), 20, *sizes]
        lines.append(" ".join(map(str, words)))
        expected |= {f"net{len(files)}-{at}.bin": answers[n] for at, n in enumerate(outs)}
        files += [blob.commands, blob.weights, *(inputs[n] for n in ins)]
    done = in_guest(guest_home, raw, "\n".join(lines), files)
    assert rows(done) == ["network: 1", "inferences: 20"] * 3
    written = {name: (guest_home / "run" / "work" / name).read_bytes() for name in expected}
    assert written == expected
    assert done.npu is not None
    assert (done.npu.jobs, done.npu.stop) == (60, None)


RULES = {
    "device": """
        capabilities: 0
        device: 1 20000118 20007000 4194304
        an unknown request: ENOTTY
    """,
    "buffers, one contiguous batch for each call, each rounded up to 16": """
        batch: 0
        buffer: 1 at 0
        buffer: 16 at 16
        buffer: 17 at 32
        no buffer: EINVAL
        a size of 0: EINVAL
        too many: EINVAL
        more than there is: ENOMEM
        more than can be said: EINVAL
        sizes from nowhere: EFAULT
        descriptors to nowhere: EFAULT
        a write: 17
        a write over the end: 7
        a write beyond: ENOSPC
        a read over the end: 7
        read: 0123456
        a read beyond: 0
        a neighbour: 1
        the end: 17
        an unknown request: ENOTTY
    """,
    "networks, of which one word is wrong": """
        COP1: EINVAL
        no magic: EINVAL
        version: EINVAL
        its length: EINVAL
        entry type: EINVAL
        entry length: EINVAL
        metadata length: EINVAL
        VEUM: EINVAL
        VEUM version: EINVAL
        VEUM length: EINVAL
        MACs: EINVAL
        product: EINVAL
        ID: EINVAL
        features: EINVAL
        cache: EINVAL
        cut short: EINVAL
        no bytes: EINVAL
        from nowhere: EFAULT
        endless: EFBIG
        as it is: 1
        network: 20000118 20007000 0 404
    """,
    "inferences, with buffers of one batch in ascending order": """
        descending: EINVAL
        twice: EINVAL
        two batches: EINVAL
        no descriptor: EBADF
        no buffer: EINVAL
        output is no buffer: EINVAL
        constant is no buffer: EINVAL
        of no network: ENOTTY
        too many: EINVAL
    """,
    "how they end": """
        one that ends: 1
        its state: 0
        cancelled when it has ended: 0
        its state still: 0
        one that stops: 1
        state: 1
        bus error: 6
        message: IFM reaches 0x70..0xd9, region 3 (inputs) has 0x70 bytes
        one without inputs: 1
        a bad stream: 1
        state: 1
        without its descriptors: 1
    """,
}


def test_rules(guest_home: Path, raw: FakeFirmware) -> None:
    """Those of Arm's driver, each by breaking it. The kernel's log says what was refused."""
    blob, _, _ = network("add")
    done = in_guest(guest_home, raw, "RULES", [blob.commands])
    said = iter(rows(done))
    for rule, expected in RULES.items():
        for line in expected.strip().splitlines():
            name, _, value = line.strip().partition(": ")
            number = getattr(errno, value, None)
            wanted = f"{name}: {value if number is None else -number}"
            assert next(said).startswith(wanted), rule
    assert list(said) == []
    log = done.console()
    assert b"network refused: COP1, of which this device takes none" in log
    assert b"network refused: it is for another NPU (for CONFIG 20000119" in log
    assert b"inference stopped: IFM reaches 0x70..0xd9" in log
    assert done.npu is not None
    assert done.npu.stop is not None
    assert (done.npu.jobs, done.npu.stop.job) == (5, 2)


def test_a_model_that_does_not_answer(
    guest_home: Path, raw: FakeFirmware, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits does so for as long as they like; who cancels is free; the guest powers off."""
    over = Event()

    class Silent(NpuProcess):
        def __call__(self, *_: object) -> Outcome:
            over.wait()
            return STOPPED

        def stop(self) -> None:
            over.set()
            super().stop()

    monkeypatch.setattr(companion, "NpuProcess", Silent)
    blob, _, _ = network("add")
    done = in_guest(guest_home, raw, "DEAD", [blob.commands])
    assert rows(done) == [
        "ended: 0",
        "state: 2",
        "cancel: 0",
        "ended: 1",
        "state: 4",
        "the next: 0",
        "another network: 1",
    ]
    assert b"reboot: Power down" in done.console()
    assert done.npu is not None
    assert (done.npu.jobs, done.npu.stop) == (1, None)


MODULES = ("virtio_mmio", "9pnet_virtio", "9p")  # the boards': their kernel is there already


@pytest.mark.thorough
def test_the_module_is_the_same_twice(guest_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever and whenever it is built."""
    parts = packages()
    kept = guest_kernel(MODULES, npu=True).modules[-1]
    monkeypatch.setattr(kernel, "packages", lambda: parts)
    monkeypatch.setenv("HIL_HOME", str(guest_home / "another"))
    again = guest_kernel(MODULES, npu=True).modules[-1]
    assert again != kept
    assert again.read_bytes() == kept.read_bytes()
    times = again.stat().st_mtime_ns
    assert guest_kernel(MODULES, npu=True).modules[-1].stat().st_mtime_ns == times


@pytest.mark.thorough  # a push has it of small headers: test_kernel
def test_headers_of_another_kernel_and_what_the_compiler_says(guest_home: Path) -> None:
    """In one folder: unpacking the headers takes most of the time."""
    headers, *others = (packages()[name] for name in (HEADERS, COMMON, KBUILD))
    with pytest.raises(DriverNotBuilt, match=r"not those of 9\.9\.9-arm64: linux-headers-6"):
        driver([headers], "9.9.9-arm64", {}, guest_home)
    files = (path for path in kernel.source_directory().iterdir() if path.is_file())
    sources = {path.name: path.read_bytes() for path in files}
    sources["device.c"] += b"int wrong = undeclared;\n"
    version = re.findall(r"\d[^_]*", headers.name)[0]
    with pytest.raises(DriverNotBuilt, match=r"make: .*device\.c:\d+:.*undeclared"):
        driver(others, version, sources, guest_home)
