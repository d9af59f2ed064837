"""Another Vela in an environment of its own compiles what is left of a wrong program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.config.models import ModelSource
from harness.core.errors import ExportError, InfraError
from harness.export.localise import smallest_part
from harness.export.newest_vela import NewestVela, newest_vela
from harness.export.process import ExportProcess
from harness.export.program import Program
from tests.judge.test_blame import SLICED

TARGET = "ethos-u55-128"
INSTALLED = NewestVela("9.9.9", Path(sys.executable))


def flags(program: Program) -> list[str]:
    npu = program.npu
    return [
        f"--accelerator-config={npu.compile_target}",
        "--config=Arm/vela.ini",
        "--output-format=raw",
        f"--system-config={npu.system_config}",
        f"--memory-mode={npu.memory_mode}",
    ]


def test_it_packs_the_stream_as_the_export_does(exported: Callable[..., Program]) -> None:
    """The same Vela, started as another one would be, gives the same bytes."""
    program = exported("linear", TARGET)
    (delegate,) = program.delegates
    tosa = (program.directory / delegate.tosa).read_bytes()
    blob = (program.directory / delegate.blob).read_bytes()
    assert INSTALLED.compile(tosa, flags(program)) == blob
    with pytest.raises(ExportError, match=r"Vela 9\.9\.9 refuses the graph"):
        INSTALLED.compile(b"no graph", flags(program))


def test_a_defect_is_told_to_be_there_still(
    exported: Callable[..., Program],
    user_model: Callable[[str], ModelSource],
    hil_export_process: ExportProcess,
) -> None:
    program = exported(user_model(SLICED), TARGET)
    part = smallest_part(hil_export_process, program, 0, 0, tries=20, newest=INSTALLED)
    assert part is not None
    assert part.newest == "wrong with Vela 9.9.9"


def test_without_an_index_it_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIL_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(InfraError, match=r"no newest Vela: .*ethos-u-vela"):
        newest_vela()
