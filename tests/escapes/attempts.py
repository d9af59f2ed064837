"""Makes every attempt of attempts.yaml and says what came of each.

``python -m tests.escapes.attempts FOLDER [NAME…]`` does it as whoever runs it, in FOLDER, which
must be new, and prints JSON: for each attempt what was tried, what was expected, what happened.
With names: of the attempts that have a run of their own only those.
"""

from __future__ import annotations

import json
import os
import re
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from harness.config.loading import load_target, target_directories
from harness.config.target import Limits
from harness.judge.ending import execution_cause
from harness.run.judging import ending
from harness.sim.run_files import CONSOLE
from harness.sim.simulation import simulate
from harness.sim.simulator import pick
from harness.sim.transcript import Transcript
from harness.system.paths import state_dir
from tests.sim.gdbstub.guests import bare

_FOLDER = Path(__file__).parent
_TARGET = "corstone-300-u55-128"
# What a guest must leave as it is, whoever it runs as.
_SETTINGS = tuple(
    Path("/proc/sys") / name for name in ("kernel/core_pattern", "kernel/hostname", "vm/swappiness")
)
_CANARY = b"canary: nobody but the test reads or writes this\n"


@dataclass(frozen=True)
class Attempt:
    """``happened`` is the guest's own word, or for an attempt with a run of its own its end."""

    name: str
    tried: str
    expected: str
    happened: str

    @property
    def as_expected(self) -> bool:
        return any(word in self.happened for word in self.expected.split("|"))


@dataclass(frozen=True)
class _Elf:
    elf: Path
    key: str = "0" * 32
    one_set_per_process: bool = False
    takes_flags: bool = False
    program: str = ""
    root: Path | None = None


class Ground:
    """A folder outside of what the guest is given, and what of the host it must not change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.canary = folder / "canary"
        self.canary.write_bytes(_CANARY)
        (folder / "m.pte").write_bytes(b"model")
        (folder / "stream.bin").write_bytes(long_job())
        self.elf = bare(folder / "guest.elf", _FOLDER / "guest.c")
        # not whole folders: other tests' files come and go in them
        self._created = created()
        self._before = self._host()

    def run(self, number: int, lines: list[str], expected: str = "") -> Transcript:
        """As far below the canary as the table's names say. Only a limit that is expected is
        short: on a busy machine everything takes long."""
        run_dir = self.folder / f"run{number}"
        words = {
            "<outside>": self.folder,
            "<canary>": self.canary,
            "<run>": run_dir,
            "<home>": state_dir(),
            "<elf>": self.elf,
        }
        script = self.folder / f"script{number}"
        text = "".join(f"{line}\n" for line in lines)
        for word, path in words.items():
            text = text.replace(word, str(path))
        script.write_text(text)
        board = load_target(_TARGET, target_directories({}))
        board = replace(board, limits=_limits(expected))
        return simulate(
            pick(board, "qemu"),
            _Elf(self.elf),
            self.folder / "m.pte",
            [[script, self.folder / "stream.bin"]],
            run_dir=run_dir,
        )

    def harmed(self) -> list[str]:
        """What is otherwise than it was; settings of the kernel are put back."""
        now = self._host()
        for path in _SETTINGS:
            if now[str(path)] != self._before[str(path)]:
                path.write_bytes(self._before[str(path)])
        return [name for name in self._before if self._before[name] != now[name]]

    def _host(self) -> dict[str, Any]:
        known = re.compile(r"(run|script)\d+")
        return {
            "outside": sorted(n for n in os.listdir(self.folder) if not known.fullmatch(n)),
            "canary": self.canary.read_bytes(),
            "elf": self.elf.read_bytes(),
            **{str(path): path.read_bytes() for path in _SETTINGS},
            **{path: os.path.lexists(path) for path in self._created},
        }


def created() -> list[str]:
    """The files outside of any run that the attempts would make, by their absolute paths."""
    rows = table()["attempts"].values()
    made = (row["do"].removeprefix("create ") for row in rows if row["do"].startswith("create /"))
    return [path for path in made if not path.startswith("/proc/")]


def long_job() -> bytes:
    """A command stream for an Ethos-U55 that copies 8 MiB eight thousand times; more of them the
    model would refuse."""
    words = [0x0130 | 1 << 16, 0x0131 | 1 << 16]  # DMA_SRC_REGION, DMA_DST_REGION: 1
    for opcode, value in ((0x4030, 0), (0x4031, 8 << 20), (0x4032, 8 << 20)):  # SRC, DST, LEN
        words += [opcode, value]
    words += [0x0010] * 8_000 + [0xFFFF0000]  # DMA_START; STOP
    return struct.pack(f"<{len(words)}I", *words)


def table() -> dict[str, dict[str, dict[str, Any]]]:
    rows: dict[str, dict[str, dict[str, Any]]] = yaml.safe_load(
        (_FOLDER / "attempts.yaml").read_text()
    )
    return rows


def make(folder: Path, named: Sequence[str] = ()) -> tuple[list[Attempt], list[str]]:
    """The attempts, and what of the host they have changed. ``named``: as on the command line."""
    ground, rows = Ground(folder), table()
    alone = {name: rows["alone"][name] for name in named or rows["alone"]}
    attempts = [*_together(ground, rows["attempts"]), *_alone(ground, alone)]
    return attempts, ground.harmed()


def _together(ground: Ground, rows: dict[str, dict[str, Any]]) -> Iterator[Attempt]:
    transcript = ground.run(0, [f"{name} {row['do']}" for name, row in rows.items()])
    said = dict(re.findall(r"^attempt ([\w-]+): (.*)$", _console(transcript), re.M))
    for name, row in rows.items():
        yield Attempt(name, row["do"], row["expect"], said.get(name, "nothing was said"))


def _alone(ground: Ground, rows: dict[str, dict[str, Any]]) -> Iterator[Attempt]:
    for number, (name, row) in enumerate(rows.items(), start=1):
        lines = row["do"] if isinstance(row["do"], list) else [row["do"]]
        transcript = ground.run(number, [f"{name} {line}" for line in lines], row["expect"])
        assert transcript.observation is not None
        finding = execution_cause(transcript.observation, ending(transcript), None)
        how = "ended" if finding is None else f"{finding[0]} {finding[1].kind}"
        if finding is not None and how not in row["expect"].split("|"):
            how += f" ({finding[1].text})"
        if transcript.npu is not None and transcript.npu.stop is not None:
            how += f" (NPU: {transcript.npu.stop.result} {transcript.npu.stop.message})"
        yield Attempt(name, "; ".join(lines), row["expect"], how)


def _limits(expected: str) -> Limits:
    host = 2.0 if "HANG deadline" in expected else 120.0
    return Limits(host=host, stall=2.0 if "HANG stall" in expected else 60.0)


def _console(transcript: Transcript) -> str:
    return (transcript.run_dir / CONSOLE).read_text("utf-8", "replace")


def main() -> None:
    attempts, harmed = make(Path(sys.argv[1]), sys.argv[2:])
    rows = [{**asdict(attempt), "as_expected": attempt.as_expected} for attempt in attempts]
    print(json.dumps({"uid": os.getuid(), "attempts": rows, "harmed": harmed}))


if __name__ == "__main__":
    main()
