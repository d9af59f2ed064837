"""Makes the stand-in of the Corstone-1000's FVP: its command, and an image as meta-arm leaves one.

The guest is the harness's own, with dropbear, a network and a memory card. Debian's packages of
dropbear are fetched and unpacked as those of the guest are.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.config.loading import load_target, target_directories
from harness.npu.kernel_library import load
from harness.sim.fvp import STANDIN_MARK
from harness.sim.guest.image import ImageSettings, image
from harness.sim.guest.kernel import SHELL, packages, unpack
from harness.system import paths
from harness.system.toolchain import locate
from tests.doubles.corstone1000.model import NAME
from tools.clone import project_root

SSH_SERVER = (
    *("dropbear-bin", "libc6", "libcrypt1", "libtomcrypt1"),
    *("libtommath1", "libgmp10", "zlib1g"),
)
LIBRARIES = (
    *("libc.so.6", "libcrypt.so.1", "libtomcrypt.so.1"),
    *("libtommath.so.1", "libgmp.so.10", "libz.so.1"),
)
MODULES = ("virtio_mmio", "virtio_net", "virtio_blk", "vfat", "nls_cp437", "nls_ascii")
FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class StandIn:
    """``folder``: with the command. ``image``: the ``.fvpconf``."""

    folder: Path
    image: Path


def make_stand_in(place: Path) -> StandIn:
    """``place`` must be new."""
    fvp, deploy = place / "fvp", place / "deploy"
    for folder in (fvp, deploy):
        folder.mkdir(parents=True)
    shutil.copy(FOLDER / "model.py", fvp)  # all of it that a sandbox shows
    command = fvp / NAME
    command.write_text(
        f"#!/bin/sh\n# {STANDIN_MARK}\n"
        f'export PYTHONPATH="{project_root()}"\n'
        f'exec "{sys.executable}" "{fvp}/model.py" "{deploy}" "$@"\n'
    )
    command.chmod(0o755)
    _make_guest(place / "root", deploy)
    load()  # builds the arithmetic of the NPU's model: a sandbox has no place for it
    kept = paths.cache_dir("npu-kernel")
    shutil.copytree(kept, deploy / "home" / "cache" / kept.name)
    return StandIn(fvp, make_image(deploy))


def _make_guest(root: Path, deploy: Path) -> None:
    packed = root.with_name("packages")
    for package in packages(SSH_SERVER).values():
        unpack(package, packed)
    found = {path.name: path for path in packed.rglob("*") if path.is_file()}
    (root / "lib").mkdir(parents=True)
    for name in ("ld-linux-aarch64.so.1", *LIBRARIES):
        shutil.copy(found[name], root / "lib" / name)
    (root / "usr" / "sbin").mkdir(parents=True)
    shutil.copy(found["dropbear"], root / "usr" / "sbin")
    (root / "etc").mkdir()
    shutil.copy(FOLDER / "init.sh", root / "etc")
    target = load_target("corstone-1000-u85-256", target_directories({}))
    assert target.linux is not None
    runner = root.with_name("none")
    runner.touch()
    made = image(ImageSettings(target.linux.hostname, "ttyAMA0", MODULES, npu=True), runner, root)
    shutil.copy(made.kernel, deploy / "vmlinuz")
    shutil.copy(made.initramfs, deploy / "initramfs")


def make_image(deploy: Path, name: str = "image", options: str = "", card: str = "") -> Path:
    """Another ``.fvpconf``: with more of the kernel's command line, with a memory card."""
    flash = deploy / f"{name}.wic"
    flash.write_text(json.dumps({"options": options}))
    parameters = {
        "board.hostbridge.userNetworking": "true",
        "board.hostbridge.userNetPorts": "5555=5555,8080=80,8022=22",
    }
    if card:
        parameters["board.msd_mmc.p_mmc_file"] = str(deploy / card)
    conf = deploy / f"{name}.fvpconf"
    conf.write_text(
        json.dumps(
            {
                "exe": NAME,
                "parameters": parameters,
                "data": [f"board.flash0={flash}@0x68000000"],
                "applications": {},
                "consoles": {"default": "host_terminal_0"},
                "terminals": {"host.host_terminal_0": "Normal World Console"},
                "args": [],
                "env": {},
            }
        )
    )
    return conf


def make_card(deploy: Path, name: str, size: int) -> str:
    """A memory card's image of so many bytes, with a file system."""
    file = deploy / name
    with file.open("wb") as made:
        made.truncate(size)
    unpacked = deploy.with_name("shell")
    unpack(packages()[SHELL], unpacked)
    shell = next(unpacked.rglob("bin/busybox"))
    subprocess.run([locate("qemu-aarch64-static"), shell, "mkdosfs", file], check=True)
    return name
