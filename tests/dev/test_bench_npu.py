"""``hil bench npu``: it measures what it says; how fast that is, is nowhere asserted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.dev.bench.npu import NpuResults, NpuTimes, Times, _child, times_among


def test_the_table_and_the_ratios() -> None:
    """Decoding is the first run without reading the stream and without a warm one."""
    compiled = Times(reading=0.05, first=0.3, warm=0.1, strict=0.2)
    numpy = Times(reading=0.05, first=1.6, warm=0.8, strict=0.8)
    results = NpuResults((NpuTimes("net", "ethos-u55-128", compiled, numpy, tosa=0.9),))
    assert results.text().splitlines()[1].split() == [
        "net", "ethos-u55-128", "100.0", "800.0", "8.0", "4.0", "300.0", "150.0", "5.0", "9.0",
    ]  # fmt: skip
    assert results.summary()["rows"][0]["ratios"] == pytest.approx(
        {"warm": 8.0, "strict": 4.0, "first": 16 / 3, "decoding": 5.0, "tosa": 9.0}
    )


def test_a_measurement_has_all_figures(tmp_path: Path) -> None:
    pytest.importorskip("tosa_reference_model", reason="needs Vela and tosa-tools")
    from tests.ethosu import tosa_cases

    case = tosa_cases.make("pointwise", 0)
    (tmp_path / "blob").write_bytes(case.compile())
    (tmp_path / "tosa").write_bytes(case.tosa)
    paths = []
    for index, value in enumerate(case.inputs):
        paths.append(tmp_path / f"i{index}")
        paths[-1].write_bytes(value.tobytes())
    shapes = json.dumps([(str(value.dtype), value.shape) for value in case.inputs])
    times = _child(shapes, tmp_path / "blob", tmp_path / "tosa", paths)
    assert sorted(times) == ["compiled", "numpy", "tosa"]
    for way in ("compiled", "numpy"):
        assert sorted(times[way]) == ["first", "reading", "strict", "warm"]
    assert all(seconds > 0 for figures in times.values() for seconds in figures.values())


@pytest.mark.parametrize("said", ["WARNING: a\n\n{TIMES}\n", "\n{TIMES}\nWARNING: a\nWARNING: a\n"])
def test_times_are_found_before_and_after_what_the_reference_model_says(said: str) -> None:
    """Its words are buffered in C, and come when the process ends."""
    times = {"tosa": {"run": 0.78}}
    assert times_among(said.replace("{TIMES}", json.dumps(times))) == times
