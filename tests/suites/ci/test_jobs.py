"""Protects that every Arm job of a checkout's workflow files is known by its name and commands, and
that a job which is new, gone or changed is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from harness.config import strict_yaml
from harness.config.schema import checked_document
from harness.core.errors import TargetError, UsageError
from harness.suites.ci import jobs as jobs_module
from harness.suites.ci.jobs import CiJobs, JobList, read_jobs
from tests.firmware.executorch.conftest import Source

_PULL = """\
name: pull
on: {pull_request: {branches: [main]}}
jobs:
  lint:
    uses: pytorch/test-infra/.github/workflows/linux_job_v2.yml@main
    with: {docker-image: ci-image:executorch-ubuntu-22.04-clang12, script: lint}
  arm:
    strategy:
      matrix:
        include:
          - test: test_run
          - test: test_ops
    with:
      docker-image: ci-image:executorch-ubuntu-22.04-arm-sdk
      script: |
        conda activate base
        backends/arm/test/all.sh "${{ matrix.test }}"
  zephyr:
    strategy:
      matrix:
        include:
          - {readme: zephyr/samples/hello/README.md, target: u55}
    with:
      docker-image: ci-image:zephyr-sdk
      script: run ${{ matrix.readme }} ${{ matrix.target }}
  e2e:
    uses: ./.github/workflows/_e2e.yml
    with: {models: '["mv2", "mv3"]'}
"""
_E2E = """\
on:
  workflow_call:
    inputs:
      models: {type: string}
      targets: {type: string, default: '["m55", "m7"]'}
jobs:
  run:
    strategy:
      matrix:
        model: ${{ fromJSON(inputs.models) }}
        target: ${{ fromJSON(inputs.targets) }}
    with:
      docker-image: ci-image:arm-sdk
      script: bash e2e.sh "${{ matrix.model }}" "${{ matrix.target }}"
"""
_SCRIPT = """\
#!/bin/bash
test_run() { # examples
    run.sh --model=add
}
test_ops() {
    pytest ops
}
"$1"
"""
_LIST = {
    "workflows": ["pull.yml"],
    "images": "arm-sdk|zephyr-sdk",
    "aside": {"zephyr/*": "needs a workspace"},
    "environment": [{"line": "^conda ", "provided": "conda"}],
    "jobs": {},
}


class Repository:
    def __init__(self, folder: Path) -> None:
        self.root, self._list = folder / "executorch", folder / "jobs.yaml"
        self.write(".github/workflows/pull.yml", _PULL)
        self.write(".github/workflows/_e2e.yml", _E2E)
        self.write("backends/arm/test/all.sh", _SCRIPT)
        self.listed: dict[str, dict[str, object]] = {}

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def jobs(self) -> CiJobs:
        self._list.write_text(yaml.safe_dump({**_LIST, "jobs": self.listed}))
        return read_jobs(self.root, self._list)

    def list_all(self) -> None:
        self.listed = {job.name: {"commands": job.commands} for job in self.jobs().jobs}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_matrices_and_called_workflows_are_expanded(repository: Repository) -> None:
    jobs = repository.jobs()
    assert [job.name for job in jobs.jobs] == [
        *("arm/test_run", "arm/test_ops"),
        *("e2e/mv2/m55", "e2e/mv2/m7", "e2e/mv3/m55", "e2e/mv3/m7"),
    ]
    assert jobs.jobs[0].place == "pull.yml:7"
    assert jobs.jobs[-1].script == 'bash e2e.sh "mv3" "m7"'
    assert jobs.aside == {"zephyr/hello/u55": "needs a workspace"}


def test_lines_that_set_up_a_machine_are_left_out_and_named(repository: Repository) -> None:
    jobs = repository.jobs()
    steps, provided = jobs.jobs[0].steps(jobs.environment)
    assert steps == 'backends/arm/test/all.sh "test_run"\n'
    assert provided == ("conda",)


def test_a_list_that_fits_has_no_differences(repository: Repository) -> None:
    repository.list_all()
    assert repository.jobs().differences == ()


def test_a_job_that_the_list_does_not_know_is_reported(repository: Repository) -> None:
    repository.list_all()
    del repository.listed["arm/test_ops"]
    assert repository.jobs().differences == (
        "the list does not know the checkout's job arm/test_ops (pull.yml:7)",
    )


def test_a_job_that_went_is_reported(repository: Repository) -> None:
    repository.list_all()
    repository.listed["arm/test_old"] = {"commands": "0123"}
    (difference,) = repository.jobs().differences
    assert difference == "the checkout does not have the list's job arm/test_old"


@pytest.mark.parametrize(
    ("name", "old", "new", "changed"),
    [
        (".github/workflows/pull.yml", "all.sh", "some.sh", ["arm/test_run", "arm/test_ops"]),
        ("backends/arm/test/all.sh", "--model=add", "--model=mul", ["arm/test_run"]),
    ],
)
def test_changed_commands_are_reported_of_the_jobs_that_run_them(
    repository: Repository, name: str, old: str, new: str, changed: list[str]
) -> None:
    repository.list_all()
    repository.write(name, (repository.root / name).read_text().replace(old, new))
    assert [job.name for job in repository.jobs().jobs if job.difference] == changed


def test_jobs_are_selected_by_a_part_of_their_name(repository: Repository) -> None:
    jobs = repository.jobs()
    assert [job.name for job in jobs.select(["mv2", "arm/*_ops"])] == [
        *("arm/test_ops", "e2e/mv2/m55", "e2e/mv2/m7"),
    ]
    with pytest.raises(UsageError, match=r"no job of the checkout's Arm CI matches 'mv4'$"):
        jobs.select(["mv4"])


@pytest.mark.parametrize("text", ["", "jobs: [", "jobs: {a: 1}", "on: push"])
def test_a_workflow_file_that_cannot_be_read_is_named(repository: Repository, text: str) -> None:
    repository.write(".github/workflows/pull.yml", text)
    with pytest.raises(UsageError, match=r"pull\.yml is not a workflow file that can be read"):
        repository.jobs()


def test_a_wrong_list_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text("workflows: [pull.yml]\nimages: a\naside: {}\nenvironment: []\njobs: {a: {}}\n")
    with pytest.raises(TargetError, match=r"jobs\.yaml:5: .*'jobs.a.commands' is missing"):
        read_jobs(tmp_path, path)


def test_the_jobs_of_a_real_checkout_are_read(real: Source) -> None:
    jobs = read_jobs(real.root)
    assert len(jobs.jobs) > 25
    assert all(job.script for job in jobs.jobs)


def test_every_reason_of_the_list_is_a_sentence() -> None:
    path = Path(jobs_module.__file__).with_name("jobs.yaml")
    known = checked_document(JobList, strict_yaml.read(path))
    assert len(known.jobs) >= 33
    for name, job in known.jobs.items():
        assert job.cannot is None or len(job.cannot.split()) > 4, name
