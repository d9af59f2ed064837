"""QEMU with a Linux guest: the image made for it, its console, and its files by virtio-9p."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from harness.guest.image import RUNNER, Image, Settings, image
from harness.simulate.launch import Companion, Job
from harness.simulate.linux_console import COMMANDS, commands, talking
from harness.simulate.linux_npu import with_npu
from harness.target.loading import Qemu, Target

_MOUNT = "/work"  # as targets/linux/init.sh mounts it
_STRIPPED = ".stripped"


def words(target: Target, settings: Qemu, job: Job) -> tuple[str, ...]:
    """QEMU's arguments behind those of every guest. Raises what ``image`` does."""
    made = guest_image(target, settings, job)
    assert settings.guest is not None, "a target with Linux has one"
    append = (f"console={settings.guest.console}", *settings.guest.options)
    return (
        *("-nodefaults", "-no-reboot"),
        # QEMU's current directory is the run's; whoever the guest is, outside it is who we are.
        *("-fsdev", "local,id=work,path=.,security_model=none"),
        *("-device", "virtio-9p-device,fsdev=work,mount_tag=work"),
        *("-kernel", str(made.kernel)),
        *("-initrd", str(made.initramfs)),
        *("-append", " ".join(append)),
    )


def guest_image(target: Target, settings: Qemu, job: Job) -> Image:
    linux, guest = target.linux, settings.guest
    assert linux is not None, "asked only of a target with Linux"
    assert guest is not None, "such a target has one"
    stripped = job.elf.with_name(job.elf.name + _STRIPPED)
    return image(
        Settings(linux.hostname, guest.console, guest.modules, npu=target.npu is not None),
        stripped if stripped.is_file() else job.elf,
        job.root,
    )


def files(job: Job) -> dict[str, bytes]:
    return {COMMANDS: commands(RUNNER, job.arguments)}


def readable(words: tuple[str, ...]) -> tuple[Path, ...]:
    """The files among ``words`` that QEMU reads."""
    given = dict(pairwise(words))
    return tuple(Path(given[name]) for name in ("-kernel", "-initrd"))


@contextmanager
def beside(target: Target, settings: Qemu, job: Job) -> Iterator[Companion]:
    assert target.linux is not None, "asked only of a target with Linux"
    with talking(target.linux, job, _MOUNT) as console:
        if target.npu is None or settings.shared_memory is None:
            yield console
            return
        with with_npu(console, target.npu, settings.shared_memory) as both:
            yield both
