"""Stands for FVP_Corstone-1000-A320: its command line, its console on a port, its network and its
memory card. Behind it QEMU boots the guest whose files the flash names (``image.py`` makes them).

Run by the command of that name, in the sandbox of a run; the harness knows it for a stand-in.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from argparse import ArgumentParser
from pathlib import Path

from harness.config.fvp import models_file
from harness.sim.companion import ModelledNpu
from harness.sim.qemu_linux import served_npu
from harness.system.call import TiedProcess

NAME, CONSOLE = "FVP_Corstone-1000-A320", "host_terminal_0"
FIRST_PORT = 5000
RAM, RAM_BYTES = 0x4000_0000, 128 << 20  # a sandbox limits what a file may hold, memory too
# What the model has and no file of ours sets.
OTHERS = (
    "board.hostbridge.userNetworking",
    "board.msd_mmc.p_mmc_file",
    "se.trustedBootROMloader.fname",
)


def known_parameters() -> tuple[str, ...]:
    return (*models_file().data["corstone-1000-a320"]["parameters"], *OTHERS)


def main(words: list[str]) -> int:
    if "--version" in words:
        print(f"Stand-in for {NAME} in the harness's tests: QEMU's virt")
        return 0
    if "--list-params" in words:
        print("\n".join(f"{name}=0" for name in known_parameters()))
        return 0
    parser = ArgumentParser(NAME, allow_abbrev=False)
    parser.add_argument("-C", action="append", default=[])
    parser.add_argument("--data", action="append", default=[])
    for limit in ("--timelimit", "--simlimit", "--cyclelimit"):
        parser.add_argument(limit)
    given = parser.parse_args(words)
    values = dict(word.split("=", 1) for word in given.C)
    unknown = [name for name in values if name not in known_parameters()]
    if unknown:
        print(f"Error: {NAME}: unknown parameter '{unknown[0]}'")
        return 1
    (flash,) = given.data
    return boot(Path(flash.split("=", 1)[1].rpartition("@")[0]), values)


def boot(flash: Path, values: dict[str, str]) -> int:
    image = json.loads(flash.read_text())
    npu = ModelledNpu("u85", int(values["host.ethosu.num_macs"]), RAM, RAM_BYTES)
    with listening() as listener, served_npu(npu) as runner:
        port = listener.getsockname()[1]
        print(f"{CONSOLE}: Listening for serial connection on port {port}", flush=True)
        console, _ = listener.accept()
        pairs = values["board.hostbridge.userNetPorts"].split(",")
        (ssh,) = (pair.partition("=")[0] for pair in pairs if pair.endswith("=22"))
        argv = [
            *("qemu-system-aarch64", "-M", "virt,memory-backend=ddr", "-cpu", "cortex-a35"),
            *("-m", f"{RAM_BYTES >> 20}M", "-nographic", "-nodefaults", "-monitor", "none"),
            *("-kernel", str(flash.parent / "vmlinuz"), "-initrd", str(flash.parent / "initramfs")),
            *("-append", f"console=ttyAMA0 cryptomgr.notests apparmor=0 {image['options']}"),
            *("-chardev", f"socket,id=console,fd={console.fileno()}"),
            *("-serial", "chardev:console"),
            *("-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{ssh}-:22"),
            *("-device", "virtio-net-device,netdev=net"),
            *card(values.get("board.msd_mmc.p_mmc_file", "")),
            *runner.words,
        ]
        with TiedProcess(argv, (console.fileno(), *runner.descriptors)) as qemu:
            return qemu.wait()


def listening() -> socket.socket:
    """The first free port from 5000 on, as a model takes it."""
    for port in range(FIRST_PORT, FIRST_PORT + 200):
        made = socket.socket()
        try:
            made.bind(("127.0.0.1", port))
        except OSError:
            made.close()
            continue
        made.listen()
        return made
    raise OSError("no port is free")


def card(file: str) -> tuple[str, ...]:
    if not file:
        return ()
    drive = f"if=none,id=card,format=raw,file={file}"
    return ("-drive", drive, "-device", "virtio-blk-device,drive=card")


if __name__ == "__main__":
    os.environ["HIL_HOME"] = str(Path(sys.argv[1]) / "home")
    sys.exit(main(sys.argv[2:]))
