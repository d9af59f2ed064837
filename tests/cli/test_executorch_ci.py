"""Protects `hil suite executorch-ci`: what it shows of jobs, and wrong uses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from harness.cli.main import main
from harness.cli.suite import keep_jobs
from harness.nightly.history.database import open_history
from harness.suites.ci.results import FvpCall, JobResult, JobVerdict
from tests.firmware.executorch.conftest import Source, pristine, small
from tests.firmware.executorch.small import git

__all__ = ["pristine", "small"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    monkeypatch.delenv("EXECUTORCH_ROOT", raising=False)


def invoked(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["suite", "executorch-ci", *map(str, words)])
    return result.exit_code, result.output


def parts(small: Source) -> list[str]:
    named = (f"--part={name}={folder}" for name, folder in small.parts.items())
    return [f"--executorch={small.root}", *named]


def write_workflows(root: Path) -> None:
    folder = root / ".github" / "workflows"
    folder.mkdir(parents=True)
    job = {"with": {"docker-image": "ci-image:arm-sdk", "script": "true"}}
    for name in ("pull", "trunk", "nightly"):
        (folder / f"{name}.yml").write_text(yaml.safe_dump({"jobs": {f"{name}-arm": job}}))


def test_the_list_has_each_job_with_its_state(small: Source, tmp_path: Path) -> None:
    write_workflows(small.root)
    page = tmp_path / "page.md"
    code, said = invoked(*parts(small), "--list", "--report", page)
    assert code == 0, said
    assert "the list does not know the checkout's job pull-arm (pull.yml:2)" in said
    assert "trunk-arm (trunk.yml:2): not run yet" in said
    text = page.read_text()
    assert "0 of 3 jobs" in text
    assert "| pull-arm | pull.yml:2 | not run |" in text


def test_json_has_the_digest_that_the_list_wants(small: Source) -> None:
    write_workflows(small.root)
    code, said = invoked(*parts(small), "--list", "--json", "--only", "nightly")
    assert code == 0, said
    (job,) = json.loads(said)["jobs"]
    assert (job["name"], job["verdict"], len(job["commands"])) == ("nightly-arm", "not run", 12)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "runs a checkout's jobs, and none is named"),
        (("-k", "add"), "--only selects jobs by a part of their names"),
    ],
)
def test_wrong_uses_are_named(words: tuple[str, ...], said: str) -> None:
    code, output = invoked(*words)
    assert code == 2
    assert said in " ".join(output.split())


def test_a_checkout_without_workflows_is_named(small: Source) -> None:
    code, said = invoked(*parts(small), "--list")
    assert code == 2
    assert "is not a workflow file that can be read" in " ".join(said.split())


def test_its_options_are_not_for_suites_of_tests() -> None:
    result = CliRunner().invoke(main, ["suite", "cortex-m", "--list"])
    assert result.exit_code == 2
    said = " ".join(result.output.split())
    assert "--only, --list, --resume, --commits, --downloads and --history are for" in said


def test_two_commits_are_compared(small: Source) -> None:
    write_workflows(small.root)
    for name in ("exir", "backends/arm"):
        (small.root / name).mkdir(parents=True, exist_ok=True)
        (small.root / name / "__init__.py").touch()
    git(small.root, "add", "--all")
    git(small.root, "commit", "-qm", "workflows")
    workflow = small.root / ".github/workflows/nightly.yml"
    workflow.write_text(workflow.read_text().replace("script: 'true'", "script: exit 3"))
    git(small.root, "commit", "-qam", "a fault")
    words = (*parts(small), "--commits", "HEAD~1..HEAD", "--only", "arm")
    code, said = invoked(*words)
    assert code == 1, said
    assert "nightly-arm (nightly.yml:2): ExecuTorch's own script ended with 3" in said
    assert re.search(r"nightly-arm \(nightly.yml:2\): verdict at \w+: unproven, now failed", said)
    assert "trunk-arm (trunk.yml:2): verdict at" not in said
    code, said = invoked(*parts(small), "--commits", "HEAD")
    assert (code, "'HEAD' is not BASE..HEAD" in said) == (2, True), said


@pytest.mark.parametrize(
    ("result", "verdict"),
    [
        (JobResult("arm", "pull.yml:2", "c1", JobVerdict.PASSED, seconds=3.0), "PASS"),
        (JobResult("arm", "pull.yml:2", "c1", JobVerdict.UNPROVEN, ("no FVP",)), "NO_VERDICT"),
        (JobResult("arm", "pull.yml:2", "c1", JobVerdict.NOT_RUN, ("no package",)), "SKIPPED"),
        (JobResult("arm", "pull.yml:2", "c1", JobVerdict.FAILED, ("exit 1",)), "BUILD_ERROR"),
        (
            JobResult("arm", "p", "c1", JobVerdict.FAILED, ("exit 1",), tests={"failed": 2}),
            "MISMATCH",
        ),
        (
            JobResult("arm", "p", "c1", JobVerdict.FAILED, calls=(FvpCall("m", "HANG"),)),
            "HANG",
        ),
    ],
)
def test_a_job_is_a_row_of_the_history(tmp_path: Path, result: JobResult, verdict: str) -> None:
    url = f"sqlite:///{tmp_path}/history.db"
    keep_jobs(url, [result])
    history = open_history(url)
    (night,) = history.nights(suite="executorch-ci")
    (row,) = history.rows([night.id])
    history.close()
    assert (row.case, row.verdict, row.identity.sources) == ("arm", verdict, "c1")
    assert row.cause is None or row.cause.text == "; ".join(result.reasons)
    shown = CliRunner().invoke(main, ["history", "arm", "--history", url])
    assert verdict in shown.output, shown.output
