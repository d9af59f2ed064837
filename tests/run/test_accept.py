"""Accepting a run: what can go wrong when the new reference is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import InfraError
from harness.run import accept


def test_a_reference_that_cannot_be_written_is_infrastructure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(InfraError, match="writing the reference") as caught:
        accept._write(tmp_path / "file" / "ds_cnn.json", "{}")
    assert caught.value.facts["path"].endswith("file")
