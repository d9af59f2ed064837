"""Another Vela in an environment of its own compiles what is left of a wrong program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.config.models import ModelSource, find_model
from harness.core.errors import ExportError, InfraError
from harness.export.failures import StageFailed
from harness.export.localise import NewestVela, newest_vela, smallest_part
from harness.export.process import ExportProcess
from harness.export.program import Program
from harness.export.request import ExportRequest, exporter_versions
from tests.judge.test_blame import SLICED
from tests.late import Late

lower = Late("harness.export.child.lower")
worker = Late("harness.export.child.worker")
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


def no_index() -> NewestVela:
    raise InfraError("no newest Vela")


@pytest.mark.parametrize(
    ("newest", "told", "helps"),
    [
        (lambda: INSTALLED, "; Vela 9.9.9 compiles this graph", "./hil +vela-9.9.9 run …"),
        (lambda: NewestVela("9.9.9", Path("false")), "; Vela 9.9.9 refuses the graph: ", None),
        (no_index, "RuntimeError: planted", None),
    ],
    ids=["compiles", "refuses", "no-index"],
)
def test_what_this_vela_refuses_is_tried_with_the_newest(
    monkeypatch: pytest.MonkeyPatch, newest: Callable[[], NewestVela], told: str, helps: str | None
) -> None:
    def refuses(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr("harness.export.child.lower.newest_vela", newest)
    monkeypatch.setattr(lower.EthosUBackend, "_compile_tosa_flatbuffer", staticmethod(refuses))
    request = ExportRequest(find_model("linear"), TARGET)
    with pytest.raises(StageFailed, match="failed to lower") as caught:  # where it can be planted
        worker.export(lambda _: None, request, exporter_versions(TARGET), "no such folder")
    error = caught.value
    assert told in error.message
    assert error.cause == "RuntimeError"
    assert error.newer_vela == ("9.9.9" if helps else None)
    assert error.hint == (f"what helps (it was tried): {helps}" if helps else None)


def test_without_an_index_it_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIL_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(InfraError, match=r"no newest Vela: .*ethos-u-vela"):
        newest_vela()
