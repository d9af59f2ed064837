"""A labgrid driver for QEMU's board with a fault of hardware, for the tests' environment files."""

from __future__ import annotations

import os
import random
import threading

import attr
from labgrid.factory import target_factory
from qemu_board import QemuBoardDriver

AT = 5  # the frame that is disturbed, in the middle of the runner's first lines


@target_factory.reg_driver
@attr.s(eq=False)
class FaultyBoardDriver(QemuBoardDriver):
    """``fault``: what is wrong. ``count``: how often it happens. ``elf``: what is flashed instead
    of the firmware. ``seed``, ``rate``: of noise, and the share of bytes that it changes."""

    fault = attr.ib(default="", validator=attr.validators.instance_of(str))
    count = attr.ib(default=1, validator=attr.validators.instance_of(int))
    elf = attr.ib(default="", validator=attr.validators.instance_of(str))
    seed = attr.ib(default=0, validator=attr.validators.instance_of(int))
    rate = attr.ib(default=0.0, validator=attr.validators.instance_of(float))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._random = random.Random(self.seed)
        self._rest = b""
        self._frame = 0  # since the board began
        self._image = False  # a program image is in its flash
        self._dead = self._restarting = False

    def transmit(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            _, begin, rest = line.rpartition(b"@0000B")  # behind what a reset has cut
            begins = bool(begin) and self._image
            line = begin + rest
            self._frame = 0 if begins else self._frame + 1
            self._restarting = self._restarting and not begins
            sent = self._disturbed(line + b"\n")
            if sent and not self._dead:
                super().transmit(sent)

    def _disturbed(self, line: bytes) -> bytes:
        if self.fault == "silent" or self._restarting:
            return b""
        if self.fault == "noise":
            return bytes(map(self._noisy, line))
        if self.fault == "echo":
            return 2 * line
        if self._frame != AT or self.count == 0 or not self._image:
            return line
        self.count -= 1
        if self.fault == "lost":
            return line[:10] + line[11:]
        if self.fault == "restart":
            self._restarting = True
            threading.Thread(target=self.reset).start()
            return line[:20]
        if self.fault in ("stops", "cable"):
            self._dead = True
        if self.fault == "cable":
            os.close(self._far)
            os.close(self._near)
        return line

    def _noisy(self, byte: int) -> int:
        changed = self._random.random() < self.rate
        return byte ^ (1 << self._random.randrange(8)) if changed else byte

    def load(self, filename: str) -> None:
        self._image = filename.endswith(".hex")
        if self.fault == "not flashed" and self._image:
            self.reset()
        elif self.fault == "slow flash":
            threading.Event().wait(60)
        elif self.fault == "flash fails":
            raise OSError("the debugger does not find the board")
        else:
            super().load(filename if self._image else self.elf or filename)

    def get(self) -> bool:
        return self.fault != "power"
