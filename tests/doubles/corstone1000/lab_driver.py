"""A labgrid driver whose board is the stand-in of this folder: its power, and its serial line on a
pseudo-terminal that stays when the power goes."""

from __future__ import annotations

import os
import re
import select
import socket
import subprocess
import threading
import tty
from pathlib import Path

import attr
from labgrid.driver import Driver
from labgrid.factory import target_factory
from labgrid.protocol import PowerProtocol

from harness.system.call import TiedProcess

TEXT = attr.validators.instance_of(str)


@target_factory.reg_driver
@attr.s(eq=False)
class StandInDriver(Driver, PowerProtocol):  # type: ignore[misc]  # labgrid has no types
    """``command``: the model. ``flash``: what it boots. ``card``: its memory card. ``port``: where
    the serial line is to appear. ``ssh``: the port of this machine for the board's."""

    command: str = attr.ib(validator=TEXT)
    flash: str = attr.ib(validator=TEXT)
    port: str = attr.ib(validator=TEXT)
    ssh: int = attr.ib(validator=attr.validators.instance_of(int))
    card: str = attr.ib(default="", validator=TEXT)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._model: TiedProcess | None = None
        self._near, self._far = os.openpty()
        tty.setraw(self._far)

    def on_activate(self) -> None:
        Path(self.port).symlink_to(os.ttyname(self._far))

    def on_deactivate(self) -> None:
        self.off()
        Path(self.port).unlink()

    def on(self) -> None:
        words = {
            "host.ethosu.num_macs": 256,
            "board.hostbridge.userNetPorts": f"{self.ssh}=22",
            "board.msd_mmc.p_mmc_file": self.card,
        }
        parameters = [word for name, value in words.items() for word in ("-C", f"{name}={value}")]
        self._model = TiedProcess(
            [self.command, *parameters, "--data", f"board.flash0={self.flash}@0x68000000"],
            stdout=subprocess.PIPE,
        )
        assert self._model.stdout is not None
        port = re.search(rb"on port (\d+)", self._model.stdout.readline())
        assert port is not None
        console = socket.create_connection(("127.0.0.1", int(port[1])))
        threading.Thread(target=self._serve_line, args=(console,), daemon=True).start()

    def off(self) -> None:
        if self._model is not None:
            self._model.end()
            self._model = None

    def cycle(self) -> None:
        self.off()
        self.on()

    def _serve_line(self, console: socket.socket) -> None:
        ends = {console.fileno(): self._near, self._near: console.fileno()}
        with console:
            while True:
                ready, _, _ = select.select(list(ends), [], [])
                for end in ready:
                    try:
                        data = os.read(end, 4096)
                    except ConnectionError:
                        data = b""
                    if not data:
                        return
                    os.write(ends[end], data)
