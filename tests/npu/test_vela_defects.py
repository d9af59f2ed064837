"""Each known defect of Vela: still there, made small, looked up, and gone where it never was.

When a defect is not seen any more Vela was mended: the entry belongs to the versions that
``seen_in`` of ``targets/npu/defects.yaml`` names.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tosa_reference_model", reason="needs Vela and tosa-tools")

from harness.config import npu as known
from harness.core.errors import ExportError, TargetError
from harness.export.child.tosa_graph import read_graph
from harness.system.paths import data_root
from tests.late import Late
from tests.npu import vela_defects
from tests.npu.tosa_graph import compile_tosa

localise = Late("harness.export.child.localise")
TARGETS = {"u55": "ethos-u55-128", "u65": "ethos-u65-256", "u85": "ethos-u85-256"}
DEFECTS = known.defects().defects


# More programs of a defect: its name, the products.
OTHERS = {
    vela_defects.dilated: ("slice-before-padded", ("u55", "u65", "u85")),
    vela_defects.long_steps: ("slice-before-padded", ("u85",)),
    vela_defects.averaged: ("slice-before-padded", ("u85",)),
    vela_defects.clamp_lost: ("second-activation-lost", ("u85",)),
    vela_defects.reversed_between: ("second-activation-lost", ("u85",)),
    vela_defects.batches_exchanged: ("reordered-before-activation", ("u55", "u65", "u85")),
}


def smallest(
    name: str,
    target: str,
    other: vela_defects.Program | None = None,
    options: tuple[str, ...] = (),
) -> Any:
    def compiled(tosa: bytes) -> bytes:
        try:
            return compile_tosa(tosa, target, options)
        except (Exception, SystemExit) as error:
            raise ExportError(str(error)) from error

    program = vela_defects.make(name, other)
    return localise.reduce(program.tosa, program.inputs, localise.npu_trial(compiled))


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
    assert localise.known_vela_defect(read_graph(found.tosa), product, macs, found.trouble) == name
    if defect.macs:
        assert localise.known_vela_defect(read_graph(found.tosa), product, 128, found.trouble) == ""


@pytest.mark.parametrize("product", TARGETS)
@pytest.mark.parametrize("program", OTHERS)
def test_the_same_defect_in_other_programs(program: vela_defects.Program, product: str) -> None:
    name, products = OTHERS[program]
    found = smallest(name, TARGETS[product], program)
    assert (found is not None) == (product in products)
    if found is not None:
        macs = int(TARGETS[product].split("-")[2])
        assert (
            localise.known_vela_defect(read_graph(found.tosa), product, macs, found.trouble) == name
        )


def test_a_select_that_reads_outside_a_region_of_its_own_is_the_same_defect() -> None:
    options = ("--cop-format=COP2", "--separate-io-regions")
    name, other = "select-of-reshaped", vela_defects.flags_reshaped
    found = smallest(name, TARGETS["u85"], other, options)
    assert found is not None
    assert found.trouble is localise.WrongResult.OUTSIDE
    assert localise.known_vela_defect(read_graph(found.tosa), "u85", 256, found.trouble) == name


NAMES = {
    "c": "clamp",
    "T": "table",
    "t": "transpose",
    "w": "four-dimensions",
    "r": "reshape",
    "s": "rescale",
}


@pytest.mark.parametrize("target", [*TARGETS.values(), "ethos-u85-1024"])
@pytest.mark.parametrize(
    "steps",
    ["ct", "tT", "ctsT", "cttT", "crtT", "csT", "crT", "wsT"],
    ids=lambda steps: "-".join(NAMES[step] for step in steps),
)
def test_right_programs_have_no_such_name(steps: str, target: str) -> None:
    """Activations and transposes that Vela compiles rightly, near those that it does not."""
    program = vela_defects.make(steps, partial(vela_defects.steps, steps=steps))
    trial = localise.npu_trial(partial(compile_tosa, target=target))
    assert trial(program.tosa, program.inputs) is None
    product, graph = target.split("-")[1], read_graph(program.tosa)
    for trouble in (localise.WrongResult.VALUES, localise.WrongResult.UNVERIFIED):
        assert localise.known_vela_defect(graph, product, 256, trouble) == ""


@pytest.mark.parametrize("trouble", ["VALUES", "OUTSIDE", "UNWRITTEN", "MISSING", "UNVERIFIED"])
def test_a_defect_is_known_by_its_trouble(trouble: str) -> None:
    """Operators that stand as a defect has them, and something else that is wrong with them."""
    graph = read_graph(vela_defects.make("slice-before-padded").tosa)
    found = localise.known_vela_defect(graph, "u55", 128, localise.WrongResult[trouble])
    seen = {"VALUES": "slice-before-padded", "UNWRITTEN": "slice-before-padded"}
    assert found == {**seen, "MISSING": "output-dropped"}.get(trouble, "")


def test_every_defect_says_what_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {word for defect in DEFECTS.values() for word in defect.trouble} <= set(
        localise.WrongResult
    )
    file = tmp_path / "targets" / "npu" / "defects.yaml"
    file.parent.mkdir(parents=True)
    text = (data_root() / "targets" / "npu" / "defects.yaml").read_text()
    file.write_text(text.replace("    trouble: [an output is missing]\n", ""))
    monkeypatch.setattr(known, "data_root", lambda: tmp_path)
    known.defects.cache_clear()
    try:
        with pytest.raises(TargetError, match="trouble"):
            known.defects()
    finally:
        known.defects.cache_clear()
