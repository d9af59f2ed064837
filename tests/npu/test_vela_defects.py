"""Each known defect of Vela: still there, made small, looked up, and gone where it never was.

When a defect is not seen any more Vela was mended: the entry belongs to the versions that
``seen_in`` of ``targets/npu/defects.yaml`` names.
"""

from __future__ import annotations

import pytest

pytest.importorskip("tosa_reference_model", reason="needs Vela and tosa-tools")

from harness.config import npu as known
from harness.core.errors import ExportError, TargetError
from harness.export.child.reduce import Smallest, known_defect, npu_trial, reduce
from harness.export.child.tosa_graph import read_graph
from tests.npu import vela_defects
from tests.npu.tosa_graph import compile_tosa

TARGETS = {"u55": "ethos-u55-128", "u65": "ethos-u65-256", "u85": "ethos-u85-256"}
DEFECTS = known.defects().defects


def smallest(name: str, target: str) -> Smallest | None:
    def compiled(tosa: bytes) -> bytes:
        try:
            return compile_tosa(tosa, target)
        except (Exception, SystemExit) as error:
            raise ExportError(str(error)) from error

    program = vela_defects.make(name)
    return reduce(program.tosa, program.inputs, npu_trial(compiled))


def test_every_defect_has_its_program() -> None:
    assert set(DEFECTS) == set(vela_defects.PROGRAMS)


@pytest.mark.parametrize("product", TARGETS)
@pytest.mark.parametrize("name", DEFECTS)
def test_it_is_there_and_is_known_by_what_is_left_of_it(name: str, product: str) -> None:
    defect, target = DEFECTS[name], TARGETS[product]
    if defect.macs:
        target = f"ethos-{product}-{defect.macs[0] if product in defect.products else 256}"
    found = smallest(name, target)
    if product not in defect.products:
        assert found is None
        return
    assert found is not None, "Vela compiles it rightly now"
    macs = int(target.split("-")[2])
    assert known_defect(read_graph(found.tosa), product, macs, found.trouble) == name
    if defect.macs:
        assert known_defect(read_graph(found.tosa), product, 128, found.trouble) == ""


def test_what_a_file_of_defects_must_say(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "defects.yaml"  # type: ignore[operator]
    text = known.defects_path().read_text()
    file.write_text(text.replace("    from: [PAD]\n", ""))
    monkeypatch.setattr(known, "defects_path", lambda: file)
    known.defects.cache_clear()
    try:
        with pytest.raises(TargetError, match="a defect needs its trouble, or operators"):
            known.defects()
    finally:
        known.defects.cache_clear()
