"""A UART of the model: its bytes go to a file or to standard output; some texts end the run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.suites.standin.failure import StandinError
from harness.suites.standin.parameters import Model, Settings

UARTS = 5  # of the machine; the models have as many on the board
_EOT = b"\x04"


@dataclass(frozen=True)
class UartSettings:
    number: int
    out_file: str
    stops: tuple[bytes, ...]  # texts that end the simulation


def uart_settings(model: Model, settings: Settings) -> Iterator[UartSettings]:
    """The UARTs that have a parameter set."""
    for number in range(UARTS):
        name = f"{model.board}.uart{number}"
        tag = settings.text(f"{name}.shutdown_tag").encode()
        eot = [_EOT] if settings.flag(f"{name}.shutdown_on_eot") else []
        out_file = settings.text(f"{name}.out_file")
        if out_file or tag or eot:
            yield UartSettings(number, out_file, (*eot, *([tag] if tag else [])))


class Uart:
    """Passes bytes on until one of the stop texts has passed."""

    def __init__(self, settings: UartSettings, stdout: Callable[[bytes], object]) -> None:
        self._stops = settings.stops
        self._kept = max(map(len, self._stops), default=1) - 1
        self._tail = b""
        self._file: int | None = None
        self._stdout = stdout if settings.out_file in ("-", "/dev/stdout") else None
        if settings.out_file and self._stdout is None:
            self._file = _create(settings)

    def write(self, data: bytes) -> bool:
        """Returns whether a stop text is complete, perhaps with bytes of earlier calls: the
        simulation ends, and what comes after the text is dropped."""
        seen = self._tail + data
        ends = [start + len(s) for s in self._stops if (start := seen.find(s)) >= 0]
        if ends:
            data = data[: max(0, min(ends) - len(self._tail))]
        self._tail = seen[-self._kept :] if self._kept else b""
        if self._stdout is not None:
            self._stdout(data)
        elif self._file is not None:
            write_all(self._file, data)
        return bool(ends)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _create(settings: UartSettings) -> int:
    try:
        return os.open(Path(settings.out_file), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    except OSError as error:
        raise StandinError(
            f"uart{settings.number}.out_file: cannot write {settings.out_file}: {error.strerror}"
        ) from error
