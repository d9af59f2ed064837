"""Vela's estimates as a table and as a page: named as estimates, escaped, whole at 80 columns."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.export.estimates import Cycles, Estimate, Layer
from harness.report.console import Terminal
from harness.report.estimates import CAVEAT, fields, print_comparison, print_layers, write_page

AREAS = ("sram", "dram", "on_chip_flash", "off_chip_flash")


def estimate(
    macs: int = 1024, cycles: int = 12_345_678, mode: str = "Dedicated_Sram_512KB"
) -> Estimate:
    return Estimate(
        npu=f"ethos-u85-{macs}",
        system_config="Ethos_U85_SYS_DRAM_Mid",
        memory_mode=mode,
        clock=1e9,
        cycles=Cycles(cycles, cycles // 2, 7, 8, 9, 10),
        macs=cycles * macs // 4,
        memory=dict(zip(AREAS, (1 << 20, 1 << 24, 0, 0), strict=True)),
        moved=dict.fromkeys(AREAS, 1 << 26),
        layers=(Layer("DepthwiseConv2D", "tosa_<b>[bold]", Cycles(cycles, 1, 2, 3, 4, 5), 6),),
    )


def printed(show: object, *arguments: object) -> str:
    out = io.StringIO()
    assert callable(show)
    show(Terminal(file=out, width=80), *arguments)
    return out.getvalue()


def test_a_comparison_fits_the_terminal_and_says_what_it_is() -> None:
    """Large figures of the largest NPU with the longest mode: nothing is cut off."""
    text = printed(print_comparison, "m[bold]", [estimate(), estimate(2048, 9_000_000)])
    lines = text.splitlines()
    assert "…" not in text
    assert lines[1].split() == [
        "1024", "Dedicated_Sram_512KB", "12,345,678", "12.346", "25.0", "%", "1,024",
        "16,384", "262,144",
    ]  # fmt: skip
    assert lines[2].split()[2:4] == ["9,000,000", "*"], "the fewest cycles"
    assert f"m[bold] with Ethos_U85_SYS_DRAM_Mid: {CAVEAT}" in lines


def test_operators_of_a_stream() -> None:
    """Names are shown as they are, whatever they hold."""
    text = printed(print_layers, 0, estimate(cycles=2_000_000))
    assert "DepthwiseConv2D" in text
    assert "tosa_<b>[bold]" in text.replace("\n", "").replace(" ", "")
    assert f"2,000,000 cycles, 2.000 ms at 1000 MHz, 25.0 % of the MACs: {CAVEAT}" in text


def test_json_has_what_follows_too() -> None:
    found = fields(estimate(cycles=4_000_000))
    assert (found["milliseconds"], found["utilisation"]) == (4.0, 0.25)
    assert found["layers"][0]["cycles"]["total"] == 4_000_000


def test_the_page_is_whole_and_escapes(tmp_path: Path) -> None:
    """No network, no markup of a stranger's model, only memories that are used."""
    page = tmp_path / "page.html"
    write_page(page, "<script>alert(1)</script>", [estimate(), estimate(2048, 9_000_000)])
    text = page.read_text()
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "http" not in text
    assert CAVEAT.replace("'", "&#39;") in text
    assert text.count('<rect class="npu"') == 3, "a legend and two bars"
    assert "dram, KiB" in text
    assert "on chip flash" not in text


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="writing"):
        write_page(tmp_path / "none" / "page.html", "add", [estimate()])
