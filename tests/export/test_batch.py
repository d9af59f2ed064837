"""Several models are exported side by side, as far as there are processors and memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.config.models import ModelSource
from harness.export import batch
from harness.export.batch import EXPORT_BYTES, REQUESTS_EACH, export, side_by_side
from harness.export.request import ExportRequest

Write = Callable[..., ModelSource]
MEETS = """
import time
from pathlib import Path
here, other = Path({here!r}), Path({other!r})
here.touch()
print("waiting for", other.name)
end = time.monotonic() + {seconds}
while not other.exists():
    assert time.monotonic() < end, "the other model was not exported meanwhile"
    time.sleep(0.01)
"""


def results(tmp_path: Path, user_model: Write, seconds: float) -> list[batch.ExportResult]:
    """Of two models that end only when both run."""
    a, b = str(tmp_path / "a.here"), str(tmp_path / "b.here")
    texts = {
        "a.py": MEETS.format(here=a, other=b, seconds=seconds),
        "b.py": MEETS.format(here=b, other=a, seconds=seconds),
    }
    return export([ExportRequest(user_model(text, name)) for name, text in texts.items()])


@pytest.fixture
def at_a_time(
    double: Callable[..., None], own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[int], None]:
    """So many models, whatever the machine."""
    double()
    return lambda count: monkeypatch.setattr(batch, "side_by_side", lambda *_: count)


def test_two_models_at_a_time(
    at_a_time: Callable[[int], None], tmp_path: Path, user_model: Write
) -> None:
    """Each has its own log, and its place in the answer."""
    at_a_time(2)
    for name, other, result in zip("ab", "ba", results(tmp_path, user_model, 60), strict=True):
        program = result.unwrap()
        assert program.model == name
        log = (program.directory / "export.log").read_text()
        assert log.strip() == f"waiting for {other}.here"


def test_one_model_at_a_time(
    at_a_time: Callable[[int], None], tmp_path: Path, user_model: Write
) -> None:
    at_a_time(1)
    first, second = results(tmp_path, user_model, 0.5)
    assert "the other model was not exported meanwhile" in str(first.error)
    assert second.error is None


def test_as_many_as_there_are_processors_and_memory_for() -> None:
    processors = os.cpu_count() or 1
    assert side_by_side(2 * REQUESTS_EACH - 1, 100 * EXPORT_BYTES) == 1
    assert side_by_side(2 * REQUESTS_EACH, 100 * EXPORT_BYTES) == min(2, processors)
    assert side_by_side(100, 1000 * EXPORT_BYTES) == processors
    assert side_by_side(100, EXPORT_BYTES * 2 - 1) == 1
    assert side_by_side(100, 0) == 1
    assert side_by_side(0, EXPORT_BYTES) == 1
