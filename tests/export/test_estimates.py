"""Vela's estimates: of the very stream that the program has, and of nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import ExportError, InfraError, UsageError
from harness.export import estimates
from harness.export.estimates import AnotherStream, choices_of, compare, flags, of_program
from harness.export.npu_options import resolve
from harness.export.program import Program

Get = Callable[..., Program]
U55 = "ethos-u55-128"


@pytest.mark.parametrize("direct_drive", [False, True])
def test_vela_is_told_what_the_exporter_tells_it(direct_drive: bool) -> None:
    """Else the figures would be of another compilation."""
    from harness.export.lower_ethosu import compile_spec

    options = resolve("ethos-u85-256", direct_drive=direct_drive)
    assert flags(options) == list(compile_spec(options).compiler_flags)


def test_figures_of_a_stream_and_its_operators(exported: Get) -> None:
    """A linear layer of nine inputs and three outputs has 27 multiplications in any compiler."""
    program = exported("linear", U55)
    (found,) = of_program(program)
    assert (found.npu, found.memory_mode, found.clock) == (U55, "Shared_Sram", 500e6)
    assert found.macs == 27
    assert [layer.operator for layer in found.layers] == ["Conv2D"]
    assert sum(layer.cycles.total for layer in found.layers) == found.cycles.total > 0
    assert found.seconds == found.cycles.total / 500e6
    assert found.utilisation == 27 / (128 * found.cycles.total)
    assert found.memory["sram"] > 0
    assert found.moved["sram"] > 0


def test_every_delegate_counts(exported: Get) -> None:
    """ds_cnn has two on a U55: a comparison is of the whole program."""
    program = exported("ds_cnn", U55)
    parts = of_program(program)
    assert len(parts) == 2
    (own,) = [o for o in choices_of(program) if (o.compile_target, o.memory_mode) == (
        U55, "Shared_Sram")]  # fmt: skip
    (whole,) = compare(program, [own])
    assert whole.cycles.total == sum(part.cycles.total for part in parts)
    assert whole.macs == sum(part.macs for part in parts)
    assert whole.memory["sram"] == max(part.memory["sram"] for part in parts)


def test_every_mac_count_and_memory_mode_is_compared(exported: Get) -> None:
    """All legal ones; a network of convolutions gains from a larger NPU."""
    program = exported("ds_cnn", U55)
    choices = choices_of(program)
    assert [(o.compile_target, o.memory_mode) for o in choices] == [
        (f"ethos-u55-{macs}", mode)
        for macs in (32, 64, 128, 256)
        for mode in ("Sram_Only", "Shared_Sram")
    ]
    found = list(compare(program, [o for o in choices if o.memory_mode == "Sram_Only"]))
    assert [one.npu for one in found] == [f"ethos-u55-{macs}" for macs in (32, 64, 128, 256)]
    cycles = [one.cycles.npu for one in found]
    assert sorted(cycles, reverse=True) == cycles


def test_figures_of_another_program_are_refused(exported: Get) -> None:
    """As after an upgrade of Vela: what it makes now is not what was exported."""
    program = exported("linear", U55)
    other = replace(program, compile_target="ethos-u55-64", versions={"ethos-u-vela": "1.2.3"})
    with pytest.raises(AnotherStream, match="another command stream of delegate 0") as raised:
        of_program(other)
    assert raised.value.compiled == "1.2.3"
    assert "compiled by 1.2.3" in raised.value.hint


def test_nothing_on_the_npu_is_nothing_to_compare(exported: Get) -> None:
    with pytest.raises(UsageError, match="nothing of add runs on an Ethos-U"):
        choices_of(exported("add"))


def test_a_graph_that_vela_refuses(exported: Get, tmp_path: Path) -> None:
    program = exported("linear", U55)
    (tmp_path / program.delegates[0].tosa).parent.mkdir(parents=True)
    (tmp_path / program.delegates[0].tosa).write_bytes(b"no graph at all")
    with pytest.raises(ExportError, match=r"Vela does not compile the graph for ethos-u55-128, Sh"):
        of_program(replace(program, directory=tmp_path))


def test_a_vela_that_says_nothing(exported: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended well and left no figures: no estimate is made of that."""
    monkeypatch.setattr(estimates, "_vela", lambda *_: None)
    with pytest.raises(ExportError, match=r"not where those of Vela 5\.1\.0 are"):
        of_program(exported("linear", U55))


def test_a_vela_that_does_not_end(exported: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "_SECONDS", 0.01)
    with pytest.raises(InfraError, match=r"Vela has not ended after 0\.01 s"):
        of_program(exported("linear", U55))
