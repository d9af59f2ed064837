"""Vela's estimates: of the very stream that the program has, and of nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.errors import ExportError, InfraError
from harness.export import estimates
from harness.export.estimates import CAVEAT, estimates_of, vela_flags
from harness.export.program import Program
from harness.export.request import NpuOptions, resolve

Get = Callable[..., Program]
U55 = "ethos-u55-128"


@pytest.mark.parametrize("direct_drive", [False, True])
def test_vela_gets_the_flags_of_the_exporter(direct_drive: bool) -> None:
    """Else the figures would be of another compilation."""
    from harness.export.child.lower import compile_spec

    options = resolve(NpuOptions("ethos-u85-256", direct_drive=direct_drive))
    assert vela_flags(options) == list(compile_spec(options).compiler_flags)


def test_the_summary_of_a_stream(exported: Get) -> None:
    """A linear layer of nine inputs and three outputs has 27 multiplications in any compiler."""
    (estimate,) = estimates_of(exported("linear", U55))
    summary = estimate.summary
    assert (estimate.npu, estimate.memory_mode) == (U55, "Shared_Sram")
    assert (summary["core_clock"], summary["nn_macs"]) == (500e6, 27)
    assert estimate.utilisation == 27 / (128 * summary["cycles_total"])
    text = estimate.text()
    assert f"{summary['cycles_total']:,.0f} cycles" in text
    assert "at 500 MHz" in text
    assert CAVEAT in text
    assert "on chip flash" not in text, "an area that is not used is not shown"


def test_every_delegate_has_an_estimate(exported: Get) -> None:
    """ds_cnn has two on a U55."""
    assert len(estimates_of(exported("ds_cnn", U55))) == 2


def test_figures_of_another_program_are_refused(exported: Get) -> None:
    """As after an upgrade of Vela: what it makes now is not what was exported."""
    program = exported("linear", U55)
    other = replace(program, compile_target="ethos-u55-64", versions={"ethos-u-vela": "1.2.3"})
    with pytest.raises(ExportError, match="another command stream for delegate 0") as raised:
        estimates_of(other)
    assert "compiled by 1.2.3" in raised.value.hint


def test_a_graph_that_vela_refuses(exported: Get, tmp_path: Path) -> None:
    program = exported("linear", U55)
    (tmp_path / program.delegates[0].tosa).parent.mkdir(parents=True)
    (tmp_path / program.delegates[0].tosa).write_bytes(b"no graph at all")
    with pytest.raises(ExportError, match=r"Vela does not compile the graph for ethos-u55-128, Sh"):
        estimates_of(replace(program, directory=tmp_path))


def test_a_vela_without_figures(exported: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended well and left no figures."""
    monkeypatch.setattr(estimates, "_run_vela", lambda *_: None)
    with pytest.raises(ExportError, match=r"not where those of Vela 5\.1\.0 are"):
        estimates_of(exported("linear", U55))


def test_a_vela_that_does_not_end(exported: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "_TIMEOUT_S", 0.01)
    with pytest.raises(InfraError, match=r"Vela: no end after 0\.01 s"):
        estimates_of(exported("linear", U55))
