"""``hil bench npu``: it measures what it says; how fast that is, is nowhere asserted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.bench.npu import NpuResults, NpuTimes, Times, _child, times_among


def test_the_table_and_the_ratio() -> None:
    """Decoding is the first run without reading the stream and without a warm one."""
    times = Times(reading=0.05, first=0.3, warm=0.1, strict=0.2)
    results = NpuResults((NpuTimes("net", "ethos-u55-128", times, tosa=0.9),))
    row = ["net", "ethos-u55-128", "100.0", "200.0", "50.0", "300.0", "150.0", "9.0"]
    assert results.text().splitlines()[1].split() == row
    assert results.summary()["rows"][0]["ratio"] == pytest.approx(9.0)


def test_a_measurement_has_all_figures(tmp_path: Path) -> None:
    pytest.importorskip("tosa_reference_model", reason="needs Vela and tosa-tools")
    from tests.npu import tosa_cases

    case = tosa_cases.make("pointwise", 0)
    (tmp_path / "blob").write_bytes(case.compile())
    (tmp_path / "tosa").write_bytes(case.tosa)
    paths = []
    for index, value in enumerate(case.inputs):
        paths.append(tmp_path / f"i{index}")
        paths[-1].write_bytes(value.tobytes())
    shapes = json.dumps([(str(value.dtype), value.shape) for value in case.inputs])
    times = _child(shapes, tmp_path / "blob", tmp_path / "tosa", paths)
    assert sorted(times) == ["npu", "tosa"]
    assert sorted(times["npu"]) == ["first", "reading", "strict", "warm"]
    assert all(seconds > 0 for figures in times.values() for seconds in figures.values())


@pytest.mark.parametrize("said", ["WARNING: a\n\n{TIMES}\n", "\n{TIMES}\nWARNING: a\nWARNING: a\n"])
def test_times_are_found_before_and_after_what_the_reference_model_says(said: str) -> None:
    """Its words are buffered in C, and come when the process ends."""
    times = {"tosa": {"run": 0.78}}
    assert times_among(said.replace("{TIMES}", json.dumps(times))) == times
