"""Every sample model on every kind of target: the anatomy is the file, with nothing unknown."""

from __future__ import annotations

from pathlib import Path

from harness.size.measure import figures_of_program, measure_file
from tests.thorough import is_thorough


def test_every_byte_of_every_model(programs: dict[str, Path]) -> None:
    assert len(programs) == (21 if is_thorough() else 12)
    for name, file in programs.items():
        anatomy = measure_file(file)
        assert sum(p.bytes for p in anatomy.parts) == anatomy.total == file.stat().st_size, name
        assert anatomy.unknown == 0, name
        assert anatomy.under("unreferenced") == 0, name


def test_delegated_models_are_mostly_weights(programs: dict[str, Path]) -> None:
    """Vela's constants are understood: weights and scales, not one opaque blob."""
    for name in ("ethos-u55-128/ds_cnn", "ethos-u85-256/ds_cnn", "ethos-u85-256/resnet8"):
        anatomy = measure_file(programs[name])
        weights = sum(p.bytes for p in anatomy.parts if p.path[-1] in ("weights", "scales"))
        assert weights > 0.6 * anatomy.total, name
        assert not any("opaque" in p.path for p in anatomy.parts), name


def test_npu_scratch_is_reported(programs: dict[str, Path]) -> None:
    figures = figures_of_program(measure_file(programs["ethos-u55-128/ds_cnn"]))
    assert figures["npu_scratch_bytes"] > 1000
    assert figures_of_program(measure_file(programs["cortex-m55/ds_cnn"]))["npu_scratch_bytes"] == 0
