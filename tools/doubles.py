"""Doubles: programs under an FVP's name that end in every possible way, and a case to run on them.

The script and the table of endings are in tests/doubles; used by our tests and by
``hil bench verdict``. A double simulates nothing, and no result of one is ever called an FVP's.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import struct
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from harness.config.target import Region
from harness.core.errors import InfraError
from harness.core.judgement import Reason
from harness.core.verdict import Verdict
from harness.export.program import InputSet, Program, TensorSpec
from harness.firmware.names import BUNDLED
from harness.firmware.source import Arithmetic, CheckoutFacts, FirmwareSource, source_named
from harness.sim.run_files import output_base, output_name
from harness.system import toolchain
from harness.system.confine import why_not
from tools.clone import project_root

BUILD_ID = "00112233445566778899"
# Of one method without instructions, values and outputs, as flatc makes it.
_PROGRAM = base64.b64decode(
    "EAAAAEVUMTIIAAgAAAAEAAgAAAAEAAAAAQAAABwAAAAAABYAJAAEAAAACAAMABAAFAAYABwAIAAWAAAAYAAAAFgAAABQAAAA"
    "SAAAACQAAAAcAAAAFAAAAAQAAAABAAAAAAAAAAAAAAAAAAAAAAAAAAEAAAAQAAAAAAAKAAgAAAAAAAQACgAAAAQAAAAAAAAA"
    "AAAAAAAAAAAAAAAABwAAAGZvcndhcmQA"
)
_EXPECTED = struct.pack("<4f", 0.0, 0.5, 1.0, 1.5)
_WRONG = struct.pack("<4f", 0.0, 0.5, 1.25, 1.5)  # one step of 0.25 off


@dataclass(frozen=True)
class FakeFirmware:
    """As much of a Firmware as running and judging need."""

    elf: Path
    build_id: str = BUILD_ID
    key: str = "0" * 32
    toolchain_id: str = "none"
    regions: tuple[Region, ...] = ()
    stored_bytes: int | None = None
    source: FirmwareSource = field(default_factory=lambda: source_named(BUNDLED))
    checkout: CheckoutFacts | None = None
    arithmetic: Arithmetic = Arithmetic.CMSIS_NN
    elf_sha256: str = ""
    sources: str = ""
    root: Path | None = None
    program: str = ""
    notes: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)

    @property
    def images(self) -> tuple[Path, ...]:
        return (self.elf,)

    @property
    def printed_build_id(self) -> str | None:
        return self.build_id if self.source.prints_build_id else None

    @property
    def one_set_per_process(self) -> bool:
        return self.source.one_set_per_process

    takes_flags = False


def endings() -> dict[str, tuple[str, str | None]]:
    """Ending -> (verdict, kind of its cause)."""
    table = json.loads((_folder() / "endings.json").read_text())
    if why_not() is not None:  # then who has left the process group outlives the simulator
        table["keeps_pipe_open"] = (Verdict.NO_VERDICT, Reason.CONSOLE_CUT)
    return {name: (verdict, cause) for name, (verdict, cause) in table.items()}


def install_double(folder: Path, executable: str, ending: str, parameters: Iterable[str]) -> Path:
    """A double called ``executable`` in ``folder``, which must be new; $HIL_FVP_DIR names it."""
    folder.mkdir(parents=True)
    for name, content in (("answers", _EXPECTED), ("wrong", _WRONG)):
        (folder / name).mkdir()
        for input_set in range(2):
            (folder / name / output_name(output_base(input_set), 0)).write_bytes(content)
    (folder / "ending").write_text(ending)
    (folder / "build_id").write_text(BUILD_ID)
    (folder / "parameters").write_text("".join(f"{name}\n" for name in parameters))
    shutil.copy(_folder() / "fvp.sh", folder / executable)
    return folder / executable


def double_program(folder: Path, model: str = "add") -> Program:
    """A Program with two input sets of four floats, whose outputs the doubles know."""
    folder.mkdir(parents=True)
    for name in ("in0.bin", "in1.bin", "out0.bin", "out1.bin"):
        (folder / name).write_bytes(_EXPECTED)
    (folder / "program.pte").write_bytes(_PROGRAM)
    spec = TensorSpec("output", "float32", (4,), (0,), scale=0.25, zero_point=0)
    return Program(
        directory=folder,
        model=model,
        compile_target="cortex-m55",
        pte="program.pte",
        pte_sha256=hashlib.sha256(_PROGRAM).hexdigest(),
        oracle="none",
        inputs=(spec,),
        outputs=(spec,),
        sets=(InputSet(("in0.bin",), ("out0.bin",)), InputSet(("in1.bin",), ("out1.bin",))),
        operators=(),
        versions={},
    )


def double_firmware(folder: Path) -> FakeFirmware:
    """A file that is an ELF and nothing more."""
    elf = folder / "firmware.elf"
    header = struct.pack(
        "<4s5B7xHHIIIIIHHHHHH", b"\x7fELF", 1, 1, 1, 0, 0, 2, 40, 1, 0, 0, 0, 0, 52, 0, 0, 0, 0, 0
    )
    elf.write_bytes(header)
    return FakeFirmware(elf)


def _folder() -> Path:
    return project_root() / "tests" / "doubles"


def planted_endings() -> dict[str, tuple[str, str | None]]:
    """Ending of planted firmware -> (verdict, kind of its cause)."""
    table = json.loads((_planted() / "planted.json").read_text())
    return {name: (verdict, cause) for name, (verdict, cause) in table.items()}


def planted_firmware(
    folder: Path, ending: str, name: str = BUNDLED, words: str = "", status: int = 1
) -> FakeFirmware:
    """Firmware for the Corstone-300 that ends in the given way, and that takes its command line
    as the runner of that source does. ``words``, ``status``: of SPEAKS and SPEAKS_LATE. Raises
    InfraError."""
    source = source_named(name)
    elf = folder / f"{ending}.elf"
    compiler = toolchain.require("arm-none-eabi-gcc")
    argv = [
        str(compiler.path),
        "-mcpu=cortex-m55",
        "-mfloat-abi=hard",
        "-mthumb",
        "-O1",
        "-g",
        "-fno-optimize-sibling-calls",
        "-fno-builtin",
        "-w",
        "-nostartfiles",
        "--specs=nano.specs",
        f"-DENDING={ending}",
        f"-DWORDS={json.dumps(words)}",
        f"-DSTATUS={status}",
        *(["-DONE_SET"] if source.one_set_per_process else []),
        "-Wl,-Ttext=0x10000100",
        "-Wl,--section-start=.vectors=0x10000000",
        "-Wl,-Tdata=0x30010000",
        "-Wl,-Tbss=0x30011000",
        "-Wl,-e,reset",
        "-o",
        str(elf),
        str(_planted() / "planted.c"),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InfraError(f"the planted firmware does not build: {done.stderr[:500]}")
    return FakeFirmware(elf, source=source)


def _planted() -> Path:
    return project_root() / "tests" / "endings"
