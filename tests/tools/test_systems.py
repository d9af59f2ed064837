"""Protects the examination of clean systems: what it cannot do is said, what fails is red.

The real ones take an hour; here a folder with a shell stands for the system's root.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.core.verdict import ExitCode
from tools import systems
from tools.clone import project_root
from tools.selftest import STEPS, Options, run_steps
from tools.systems import (
    SYSTEMS,
    Root,
    StepFailed,
    instructions,
    lacking,
    prove_image,
)

ROOT_ONLY = pytest.mark.skipif(
    os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"]).returncode != 0,
    reason="no mount namespaces here",
)


def test_clean_systems_are_examined_only_by_name_and_never_green_unseen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (step,) = [step for step in STEPS if step.only_by_name]
    assert step.name == "systems"
    monkeypatch.setattr(systems, "lacking", lambda: "planted")
    found, code = run_steps(["systems"], Options(), as_json=True)
    assert (code, found["steps"]["systems"]["passed"]) == (ExitCode.FAILED, False)
    assert "not examined: planted" in capsys.readouterr().err


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert lacking({"PATH": "/nowhere"}) == (
        "debootstrap is not installed (apt-get install debootstrap)"
    )
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert lacking() == "only root can make them"


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    """With this machine's /usr, which it gets as a folder of wheels would be given to it."""
    folder = tmp_path / "small"
    for name in ("dev", "proc", "root"):
        (folder / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (folder / name).symlink_to(f"usr/{name}")
    monkeypatch.setenv("PIP_FIND_LINKS", "/usr")
    (tmp_path / "debs").mkdir()
    return Root(SYSTEMS[1], folder, tmp_path)


@ROOT_ONLY
def test_a_command_sees_its_root_alone(small: Root) -> None:
    said = small.call(
        "look",
        ("sh", "-c", "ls /; ls -d /proc/[0-9]*; touch /usr/x || echo kept; pwd"),
        where="/root",
    )
    assert "opt" not in said.split()
    assert sum(word.startswith("/proc/") for word in said.split()) <= 2  # itself, and ls
    assert said.split()[-2:] == ["kept", "/root"]
    mounts = Path("/proc/self/mounts").read_text()
    assert str(small.folder) not in mounts


@ROOT_ONLY
def test_offline_is_offline(small: Root) -> None:
    look = ("sed", "1,2d", "/proc/net/dev")
    assert len(small.call("offline", look, offline=True).splitlines()) == 1  # the loopback


@ROOT_ONLY
def test_a_step_that_fails_says_so_and_what_it_said(
    small: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(StepFailed, match="Debian 13, planted: status 7") as caught:
        small.call("planted", ("sh", "-c", "echo because >&2; exit 7"))
    assert "because" in capsys.readouterr().err
    assert "trixie planted.log" in str(caught.value.hint)


@ROOT_ONLY
@pytest.mark.parametrize("cases", ["[]", '[{"verdict": "PASS"}, {"verdict": "MISMATCH"}]'])
def test_anything_but_pass_is_red(small: Root, cases: str) -> None:
    with pytest.raises(StepFailed, match="verdicts"):
        small.cases("planted", ("sh", "-c", f"""echo '{{"cases": {cases}}}'"""))


def test_a_mirror_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What debootstrap left is taken away, and the step is red."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path))
    monkeypatch.setattr(systems, "lacking", lambda: None)

    def failing(words: list[str], **_options: object) -> subprocess.CompletedProcess[bytes]:
        Path(words[-2]).mkdir()
        return subprocess.CompletedProcess(words, 1)

    monkeypatch.setattr(systems.subprocess, "run", failing)
    monkeypatch.setattr(systems, "git", lambda *_words: "")
    assert not systems.systems(["trixie"])
    assert "debootstrap's status is 1" in capsys.readouterr().err
    assert not (tmp_path / "systems" / "trixie").exists()


def test_the_steps_of_an_image() -> None:
    text = "# why\nARG BASE=x\nFROM ${BASE}\nRUN one \\\n # not this\n && two\nUSER hil\n"
    assert [*instructions(text)] == [
        ("ARG", "BASE=x"),
        ("FROM", "${BASE}"),
        ("RUN", "one  && two"),
        ("USER", "hil"),
    ]


@ROOT_ONLY
def test_an_image_is_made_as_its_file_says(
    small: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the user, in the folder; and a step that is not known is not passed over."""
    project = tmp_path / "project"
    shutil.copytree(project_root() / "scripts", project / "scripts")
    (project / "docker").mkdir()
    (project / "list.txt").write_text("a list\n")
    monkeypatch.setattr(systems, "project_root", lambda: project)
    (small.folder / "tmp").mkdir()
    dockerfile = project / "docker" / "Dockerfile"
    program = '["sh", "-c", "cat \\"$PWD/list.txt\\" >&2; echo \'{\\"cases\\": []}\'"]'
    dockerfile.write_text(
        'FROM x\nARG WHAT="a b"\nWORKDIR /hil\nCOPY list.txt list.txt\n'
        "RUN pwd >where; echo $WHAT >what\n"
        f"ENTRYPOINT {program}\n"
    )
    with pytest.raises(StepFailed, match=r"step 6, ENTRYPOINT: verdicts \[\]"):
        prove_image(small)
    assert (small.folder / "hil" / "where").read_text() == "/hil\n"
    assert (small.folder / "hil" / "what").read_text() == "a b\n"
    assert (small.folder / "hil" / "list.txt").read_text() == "a list\n"
    dockerfile.write_text("FROM x\nHEALTHCHECK NONE\n")
    with pytest.raises(StepFailed, match="HEALTHCHECK: not known here"):
        prove_image(small)


def _packages(purposes: str) -> set[str]:
    """Which packages docker/Dockerfile asks for, by its own command."""
    (text,) = [text for word, text in instructions(_dockerfile()) if "packages.txt)" in text]
    chosen = text[text.index("$(") + 2 : text.index("packages.txt)")] + "packages.txt"
    chosen = chosen.replace("/tmp/packages.txt", "docker/packages.txt")
    done = subprocess.run(
        ["sh", "-euc", f'PURPOSES="{purposes}"\n{chosen}'],
        cwd=project_root(),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def _dockerfile() -> str:
    return (project_root() / "docker" / "Dockerfile").read_text()


def test_an_image_has_what_its_purposes_need() -> None:
    """None that only tests need where it is not asked for, and a dash is no package."""
    run, all_ = _packages("run linux"), _packages("run linux dev")
    assert {"ninja-build", "gcc-aarch64-linux-gnu"} <= run
    assert run < all_
    assert "clang" in all_ - run
    assert not {"-", "run", "linux", "dev"} & all_


def test_the_dev_container_is_the_image_with_what_tests_need() -> None:
    """Its file names the image's user, arguments and files as they are."""
    folder = project_root() / ".devcontainer"
    lines = (folder / "devcontainer.json").read_text().splitlines()
    said = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
    dockerfile = (folder / said["build"]["dockerfile"]).resolve().read_text()
    assert f"USER {said['remoteUser']}\n" in dockerfile
    for name in said["build"]["args"]:
        assert f"ARG {name}=" in dockerfile
    assert said["build"]["args"]["PURPOSES"].split() == ["run", "linux", "dev"]
