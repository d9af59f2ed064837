"""What is made of another program is, in every byte, what a whole export gives.

Protects the proof that a PASS rests on: a program taken for another core's or another NPU's must
be that core's. And what may differ in more than Vela's work is exported as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.case.models import ModelSource, find_model
from harness.errors import ExportError
from harness.export import batch
from harness.export.batch import Origin, export
from harness.export.program import Program
from harness.export.request import ExportRequest, exporter_versions
from tests.export.test_reproducible import contents
from tests.late import Late

kindred = Late("harness.export.kindred")

Get = Callable[..., Program]


def asked(
    target: str, model: str = "ds_cnn", mode: str = "", direct: bool = False
) -> ExportRequest:
    return ExportRequest(find_model(model), target, memory_mode=mode, direct_drive=direct)


def only(base: ExportRequest, program: Program) -> Callable[[ExportRequest], Program | None]:
    """A cache with one program in it."""
    sought = replace(base, system_config="", memory_mode="")
    return lambda request: program if request == sought else None


# Of each kind one that is furthest away: another kind of pipeline in the same kind of kernels;
# other MACs; another product with another memory and two delegates; a driver of Linux.
@pytest.mark.parametrize(
    ("base", "wanted"),
    [
        (asked("cortex-m4"), asked("cortex-m7")),
        (asked("ethos-u85-256", "linear"), asked("ethos-u85-2048", "linear", "Dedicated_Sram")),
        (asked("ethos-u55-128"), asked("ethos-u65-512", mode="Shared_Sram")),
        (asked("ethos-u85-256", "add", direct=True), asked("ethos-u85-128", "add", direct=True)),
    ],
    ids=["cores", "U85", "U65 of U55", "direct drive"],
)  # fmt: skip
def test_it_is_what_an_export_gives(
    base: ExportRequest, wanted: ExportRequest, tmp_path: Path
) -> None:
    (of,) = export([base])
    made = kindred.make(wanted, only(base, of.unwrap()))
    whole = batch._load_worker()(wanted, exporter_versions(wanted.compile_target))
    assert made is not None
    for name, one in (("made", made), ("whole", whole)):
        (tmp_path / name).mkdir()
        one.write(tmp_path / name).save()
    assert contents(tmp_path / "made") == contents(tmp_path / "whole")


@pytest.mark.parametrize(
    ("base", "wanted"),
    [
        (asked("cortex-m4", "qadd"), asked("cortex-m3", "qadd")),
        (asked("cortex-m55", "qadd"), asked("cortex-m7", "qadd")),
        (asked("ethos-u55-128", "qadd"), asked("ethos-u85-256", "qadd")),
        (asked("ethos-u85-256", "qadd", direct=True), asked("ethos-u85-256", "qadd")),
    ],
    ids=["kernels of another kind", "Helium", "profile", "driver"],
)  # fmt: skip
def test_others_are_not_asked_for(base: ExportRequest, wanted: ExportRequest) -> None:
    found: list[ExportRequest] = []
    assert kindred.make(wanted, found.append) is None  # type: ignore[arg-type, func-returns-value]
    assert found
    assert base not in found
    assert wanted not in found


def test_a_program_for_a_cpu_has_no_kin() -> None:
    assert kindred.make(asked("xnnpack-int8", "qadd"), pytest.fail) is None


def test_a_program_for_a_cpu_has_no_kindred() -> None:
    """Not every lowering has kinds of kernels or a profile."""
    assert kindred.make(asked("portable-fp32", "qadd"), lambda _request: None) is None


def test_a_delegate_that_was_told_something_else_is_not_changed(exported: Get) -> None:
    """A profile, or an option of Vela's that ExecuTorch does not have by itself."""
    program = exported("qadd", "ethos-u55-128")
    pte = program.pte_path.read_bytes()
    blob = (program.directory / program.delegates[0].blob).read_bytes()
    to = asked("ethos-u55-32", "qadd").npu
    assert kindred._with_streams(pte, {blob: blob}, to) is not None
    assert kindred._with_streams(pte, {}, to) is None, "a stream of no delegate"
    other = pte.replace(b"TOSA-1.0+INT+int16+int4+u55", b"TOSA-1.0+INT+int16+int4+u56")
    assert other != pte
    assert kindred._with_streams(other, {blob: blob}, to) is None


def test_what_vela_refuses_is_said_by_the_export(
    exported: Get, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = exported("qadd", "ethos-u55-128")

    def refuse(*_: object) -> bytes:
        raise ExportError("Vela does not compile the graph: planted")

    monkeypatch.setattr("harness.export.kindred.compile_graph", refuse)
    wanted = asked("ethos-u55-32", "qadd")
    assert kindred.make(wanted, only(asked("ethos-u55-128", "qadd"), base)) is None


READS = """
from pathlib import Path
import torch
scale = float(Path(__file__).with_name("scale.txt").read_text())
class Scaled(torch.nn.Module):
    def forward(self, x):
        return x * scale
ModelUnderTest = Scaled()
ModelInputs = (torch.ones(2, 8),)
"""


def test_a_program_that_read_more_than_its_sources_makes_no_other(
    own_home: Path, user_model: Callable[[str], ModelSource], tmp_path: Path
) -> None:
    """What it read may have changed in between."""
    (tmp_path / "scale.txt").write_text("2.0")
    reads, plain = user_model(READS), find_model("qadd")
    requests = [ExportRequest(model, "cortex-m4") for model in (reads, plain)]
    for result in export(requests):
        result.unwrap()
    assert batch._load_kindred(requests[0]) is None
    assert batch._load_kindred(requests[1]) is not None


def test_a_checkouts_exporter_is_not_the_wheels(own_home: Path) -> None:
    """It may see otherwise what a program depends on."""
    export([asked("cortex-m4", "qadd")])[0].unwrap()
    wanted = asked("cortex-m7", "qadd")
    of_wheel, of_checkout = (
        batch._Batch([wanted], {}, {}, batch.ignore, origin)._of_kindred(wanted)
        for origin in (Origin(), Origin({"executorch": "of a checkout"}))
    )
    assert of_wheel is not None
    assert of_checkout is None


def test_another_wheels_exporter_is_not_trusted_with_it(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its passes ask of a core was not read."""
    export([asked("cortex-m4", "qadd")])[0].unwrap()
    of = batch._Batch([asked("cortex-m7", "qadd")], {}, {}, batch.ignore, Origin())
    assert of._of_kindred(asked("cortex-m7", "qadd")) is not None
    monkeypatch.setattr("harness.export.kindred.EXECUTORCH", "1.4.0")
    assert of._of_kindred(asked("cortex-m7", "qadd")) is None
