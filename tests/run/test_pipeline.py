"""The pipeline's own refusals; what it does when all is well is in tests/cli and tests/doubles."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.run.directory import save_record
from harness.run.judging import judge_again

from .test_record import record


def test_a_run_without_its_expectations_is_not_judged_again(tmp_path: Path) -> None:
    """A record alone proves nothing: what the outputs should have been is gone."""
    save_record(record(tmp_path))
    with pytest.raises(UsageError, match="does not hold a whole run") as caught:
        judge_again(tmp_path)
    assert caught.value.path == str(tmp_path)
