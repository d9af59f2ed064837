"""Protects the night that repositories call: the action, the workflow that spreads it, GitLab's.

What their steps install is not installed here, as in ``test_pipelines``; that the names of packages
are right is looked up. What the services bring and keep between jobs is carried by hand.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.nightly.history.database import open_history
from harness.nightly.history.nights import last_tries
from harness.run.bundle import unpack
from harness.system.packages import packages
from tests.report.services import GitHub, Service, running
from tools.clone import project_root

from .steps import Action, Done, shell

ACTION = project_root() / "action.yml"
WORKFLOW = project_root() / ".github" / "workflows" / "nightly.yml"
GITLAB = project_root() / ".gitlab" / "nightly.yml"
INSTALLS = ("apt-get", "pip", "sysctl")
NIGHT = "4711"
# The second model is over a budget of its own.
SUITE = """
cases:
  - {targets: [my-board], models: [models/tiny.py, models/scores.py]}
notify: ["json://127.0.0.1:$CHAT/x"]
issues: true
"""


def read(file: Path) -> Any:
    return yaml.safe_load(file.read_text())


@pytest.mark.parametrize(
    ("file", "schema"),
    [(ACTION, "github-actions"), (WORKFLOW, "github-workflows"), (GITLAB, "gitlab-ci")],
    ids=lambda one: str(one),
)
def test_the_services_schema(file: Path, schema: str) -> None:
    argv = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    done = subprocess.run([*argv, str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_workflow_gives_the_action_what_it_takes() -> None:
    """And nothing else; a misspelt input would be no more than a warning."""
    inputs = read(ACTION)["inputs"].keys()
    steps = [s for job in read(WORKFLOW)["jobs"].values() for s in job["steps"]]
    given = [step["with"].keys() for step in steps if step.get("uses") == "./.hil-action"]
    assert len(given) == 2
    assert all(keys <= inputs for keys in given)


def test_what_gitlab_installs_is_what_runs_need() -> None:
    said = set(" ".join(read(GITLAB)["hil-shard"]["before_script"]).split())
    there = {"ca-certificates", "python3", "python3-venv", "util-linux"}
    wanted = {name for name, package in packages().items() if package.purpose == "run"}
    assert not wanted - there - said


def test_what_the_action_installs_is_what_was_asked_for() -> None:
    """The line of its shell that chooses names from the list."""
    (step,) = (s for s in read(ACTION)["runs"]["steps"] if s.get("name") == "System packages")
    choose = step["run"].partition("sudo")[0] + 'echo "$wanted"'
    environ = {
        "PATH": os.environ["PATH"],
        "PURPOSES": "run linux",
        "LIST": str(project_root() / "docker" / "packages.txt"),
    }
    names = set(shell(choose, project_root(), environ).stdout.split())
    assert names == {
        p.names["ubuntu"]
        for p in packages().values()
        if p.purpose in ("run", "linux") and "ubuntu" in p.names
    }


def test_without_its_history_the_harness_has_its_commit_for_a_version(tmp_path: Path) -> None:
    """GitHub brings an action as a tarball. Every commit once called itself 0.1.0."""
    commit, archive = (
        subprocess.run(["git", *argv], cwd=project_root(), check=True, capture_output=True).stdout
        for argv in (["rev-parse", "HEAD"], ["archive", "HEAD"])
    )
    (tmp_path / "action").mkdir()
    subprocess.run(["tar", "x"], cwd=tmp_path / "action", input=archive, check=True)
    (step,) = (s for s in read(ACTION)["runs"]["steps"] if s.get("name") == "The harness")
    name_it = "".join(re.findall(r"^.*(?:commit=|VERSION).*\n", step["run"], re.MULTILINE))
    pip = f"{sys.executable} -m pip wheel -q --no-deps --no-build-isolation --no-index -w ."
    environ = {"PATH": os.environ["PATH"], "HERE": str(tmp_path / "action")}
    done = shell(f'{name_it}{pip} "$HERE"', tmp_path, environ)
    assert done.returncode == 0, done.stdout
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith(f"executorch_hil-0.1.0+g{commit.decode().strip()}-")


Place = Callable[[str], Path]


@pytest.fixture
def place(tmp_path: Path, repository: Path, shared_hil_home: str) -> Place:
    """A runner's workspace: a clone of the user's repository, with the programs of the cache."""

    def make(name: str) -> Path:
        folder = tmp_path / name / "my-models"
        shutil.copytree(repository, folder, symlinks=True)
        (folder / "suite.yaml").write_text(SUITE)
        (folder / "models" / "scores.yaml").write_text("budgets:\n  limits: {pte_bytes: 100}\n")
        (folder / ".hil").mkdir(exist_ok=True)
        (folder / ".hil" / "cache").symlink_to(Path(shared_hil_home) / "cache")
        return folder

    return make


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    kept = ("HIL_HOME", "HIL_PROJECT", "HIL_REFERENCES", "HIL_HISTORY")
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {
        **{name: value for name, value in os.environ.items() if name not in kept},
        "PATH": programs,
        "PYTHONPATH": str(project_root()),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GITHUB_ACTIONS": "true",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }


def whole_night(database: Path) -> dict[str, str]:
    """Its verdicts; the night has ended."""
    history = open_history(f"sqlite:///{database}")
    night = history.night(NIGHT)
    assert night is not None
    assert history.unfinished(night) == []
    verdicts = {c: r.verdict.name for c, r in last_tries(history.rows([NIGHT])).items()}
    history.close()
    return verdicts


VERDICTS = {"my-board/models/tiny.py": "PASS", "my-board/models/scores.py": "OVER_BUDGET"}


def codes(done: list[Done]) -> dict[str, int]:
    return {one.name: one.code for one in done}


def test_two_runners_and_the_one_that_puts_them_together(
    place: Place, environ: Mapping[str, str], tmp_path: Path
) -> None:
    """The failure ends its own shard and the whole with 1, and is told once, by the whole; what is
    kept is kept all the same."""
    said = read(ACTION)
    ends, told, last = [], "", place("last")
    for number in (1, 2):
        here = place(f"runner-{number}")
        action = Action(ACTION, here, environ, (*INSTALLS, "doctor"))
        inputs = {"suite": "suite.yaml", "shard": f"{number}/2", "tell": "false"}
        done = action.run(said, inputs, tmp_path)
        ends.append(codes(done))
        told += "".join(one.out for one in done)
        assert "::error" not in told
        part = action.values["steps.names.outputs.part"]
        shutil.copytree(here / "hil-night", last / "shards" / part)
    assert sorted(end["The night"] for end in ends) == [0, 1], told
    assert [end["The night as a SQLite file, and the table of nights"] for end in ends] == [0, 0]
    assert not (tmp_path / "summary.md").exists()

    here = last
    with running(Service()) as chat, running(GitHub()) as github:
        job = {"CHAT": str(chat.port), "GITHUB_REPOSITORY": "o/r", "GITHUB_API_URL": github.url}
        action = Action(ACTION, here, {**environ, **job}, INSTALLS)
        merge = {"suite": "suite.yaml", "merge": "shards", "token": "secret"}
        done = action.run(said, merge, tmp_path)
    (message,) = chat.received
    assert "new: my-board/models/scores.py: OVER_BUDGET" in message[2]["message"]
    assert [each["title"] for each in github.issues] == [
        "my-board/models/scores.py: OVER_BUDGET over_limit"
    ]
    assert codes(done) == {
        "Names": 0,
        "The parts of the night": 1,
        "The night as a SQLite file, and the table of nights": 0,
    }
    assert (here / "hil-night" / "pages" / "index.html").exists()
    assert whole_night(here / ".hil" / "history.db") == VERDICTS
    (error,) = re.findall("^::error .*", done[1].out, re.MULTILINE)
    assert "my-board/models/scores.py" in error
    assert "my-board/models/scores.py" in (tmp_path / "summary.md").read_text()
    assert 'failures="1"' in (here / "hil-night" / "junit.xml").read_text()
    assert "<!DOCTYPE html>" in (here / "hil-night" / "night.html").read_text()
    assert whole_night(here / "hil-night" / "night.db") == VERDICTS
    (bundle,) = here.glob("shards/shard-*-of-2/bundles/*.tar.zst")
    assert "repro.sh" in unpack(bundle, tmp_path / "bundle")


def lines(job: Any) -> Iterator[str]:
    for text in (*job["before_script"], *job["script"]):
        if not any(re.search(rf"\b{word}\b", text) for word in INSTALLS):
            yield text


@pytest.mark.thorough
def test_gitlabs_two_jobs(place: Place, environ: Mapping[str, str]) -> None:
    """One runner; a job is one shell."""
    said, here = read(GITLAB), place("runner")
    values = {"CI_PROJECT_DIR": str(here), "CI_PIPELINE_ID": NIGHT, "HIL_SUITE": "suite.yaml"}
    own = {k: v.replace("$CI_PROJECT_DIR", str(here)) for k, v in said["variables"].items()}
    variables = {**environ, **own, **said["hil-shard"]["variables"], **values}
    del variables["GITHUB_ACTIONS"], variables["GITHUB_STEP_SUMMARY"]
    done = shell("\n".join(lines(said["hil-shard"])), here, variables)
    assert done.returncode == 1, done.stdout
    (here / ".hil" / "history.db").unlink()  # a job is given what is cached and kept, no more
    done = shell("\n".join(lines(said["hil-night"])), here, {**variables, "HIL_HOME": f"{here}/x"})
    assert done.returncode == 1, done.stdout
    assert whole_night(here / "x" / "history.db") == VERDICTS
    assert 'failures="1"' in (here / "hil-night" / "junit.xml").read_text()
