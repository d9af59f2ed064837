"""QEMU with a Linux guest: its command line, and a run from the image to the verdict."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.config.loading import load_target, target_directories
from harness.config.target import Target
from harness.sim import qemu_linux
from harness.sim.guest import image
from harness.sim.guest.image import Image, ImageSettings
from harness.sim.linux_session import commands
from harness.sim.simulator import GuestJob, pick

RUNNER = ("executor_runner", "-m", "program.pte", "-o", "s0", "-i", "s0i0.bin")
needs_qemu = pytest.mark.skipif(
    not (shutil.which("aarch64-linux-gnu-g++") and shutil.which("qemu-system-aarch64")),
    reason="needs aarch64-linux-gnu-g++ and qemu-system-aarch64",
)


@pytest.fixture
def board() -> Target:
    return load_target("corstone-1000-a320", target_directories({}))


@needs_qemu
def test_launch(board: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The image in, the run's directory by virtio-9p, the runner's command line as a file; what
    the simulator's own status says is not believed."""
    made = Image(tmp_path / "vmlinuz", tmp_path / "i.cpio")
    asked: list[tuple[ImageSettings, Path]] = []

    def image_of(settings: ImageSettings, runner: Path, root: Path | None) -> Image:
        assert root is None
        asked.append((settings, runner))
        return made

    monkeypatch.setattr(qemu_linux, "image", image_of)
    elf = tmp_path / "executor_runner"
    elf.write_bytes(b"with symbols")
    chosen = pick(board, "qemu")
    job = GuestJob(elf, RUNNER, tmp_path / "work", board.limits)
    launch = chosen.simulator.launch(chosen.target, chosen.require(), job)
    assert launch.argv[1:] == (
        "-M",
        "virt",
        "-m",
        "256M",
        "-nographic",
        "-monitor",
        "none",
        "-cpu",
        "cortex-a35",
        "-nodefaults",
        "-no-reboot",
        "-fsdev",
        "local,id=work,path=.,security_model=none",
        "-device",
        "virtio-9p-device,fsdev=work,mount_tag=work",
        "-kernel",
        str(made.kernel),
        "-initrd",
        str(made.initramfs),
        "-append",
        "console=ttyAMA0 cryptomgr.notests apparmor=0",
    )
    assert launch.files == {
        "run.sh": b"exec /bin/executor_runner -m program.pte -o s0 -i s0i0.bin\n"
    }
    assert {made.kernel, made.initramfs} <= set(launch.readable)
    assert launch.has_shell
    elf.with_name("executor_runner.stripped").write_bytes(b"without")
    chosen.simulator.launch(chosen.target, chosen.require(), job)
    assert [runner.name for _, runner in asked] == ["executor_runner", "executor_runner.stripped"]
    assert asked[0][0] == ImageSettings(
        "corstone1000-a320-fvp",
        "ttyAMA0",
        ("virtio_mmio", "9pnet_virtio", "9p"),
    )


def test_a_word_with_a_quote_stays_one_word() -> None:
    assert commands("/r", ("runner", "it's")) == b"exec /r 'it'\"'\"'s'\n"


def test_every_record_says_what_stands_in(board: Target) -> None:
    """The core, and all that is not the CPU."""
    core, machine = board.differences(pick(board, "qemu").name)
    assert core == "the board's CPU is a Cortex-A320; QEMU ran a Cortex-A35"
    assert machine.startswith("the guest is our own Linux on QEMU's virt: without the board's")


@needs_qemu
def test_the_image_is_the_same_twice(board: Target, tmp_path: Path) -> None:
    """Byte for byte; another runner is another image."""
    runner = tmp_path / "runner"
    runner.write_bytes(b"one")
    settings = ImageSettings("board", "ttyAMA0", ("virtio_mmio", "9pnet_virtio", "9p"))
    first = image.image(settings, runner)
    content = first.initramfs.read_bytes()
    first.initramfs.unlink()
    second = image.image(settings, runner)
    assert second == first
    assert second.initramfs.read_bytes() == content
    runner.write_bytes(b"two")
    assert image.image(settings, runner).initramfs != first.initramfs


def test_the_stripped_runner_has_a_limit(board: Target) -> None:
    """What a board stores of it is a figure of every run, and may not grow beyond this."""
    assert board.budgets.limits["elf_stripped"] == 768 << 10
