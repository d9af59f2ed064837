"""The pipeline's own refusals; what it does when all is well is in tests/cli and tests/doubles."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.run.judging import judge_again

from .test_record import record


def test_a_run_without_its_expectations_is_not_judged_again(tmp_path: Path) -> None:
    """A record alone proves nothing: what the outputs should have been is gone."""
    record(tmp_path).save()
    with pytest.raises(UsageError, match="does not hold a whole run") as caught:
        judge_again(tmp_path)
    assert caught.value.path == str(tmp_path)


# Says whether what judges was there before there were threads, and goes no further.
WHEN_THREADS_BEGIN = """
import sys
from harness.case.case import Case
from harness.run import pipeline

class Begun(BaseException): ...

def pool(**_):
    print("harness.run.judging" in sys.modules)
    raise Begun

pipeline.ThreadPoolExecutor = pool
pipeline.cached_cases = lambda *_: None
try:
    pipeline.run_cases([Case("corstone-300-m55", m) for m in sys.argv[1:]], pipeline.RunOptions())
except Begun:
    sys.exit(0)
sys.exit("no threads")
"""


@pytest.mark.parametrize(("models", "there"), [(["add"], "False"), (["add", "softmax"], "True")])
def test_threads_do_not_import_what_judges_from_two_sides(models: list[str], there: str) -> None:
    """Each may be given half of a package ("partially initialized module"), once in a dozen runs.
    One run alone imports it while its simulator works."""
    argv = [sys.executable, "-c", WHEN_THREADS_BEGIN, *models]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, there), done.stderr
