"""Protects ./hil's first use: what it installs, and what it refuses, said in words.

The script runs for real in a copy of the few files it reads; only ``pip`` is a stand-in that
writes down what it was asked, because these tests must not install anything.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.system.confine import what_lacks
from tests.thorough import cases

ROOT = Path(__file__).parents[2]
CONFINED = pytest.mark.skipif(bool(what_lacks()), reason="bubblewrap does not work here")
PIP = """#!/bin/sh
if [ "$1 $2" = "-m pip" ]; then
  echo "$@" >> "{log}"
  case "$*" in
    *--dry-run*) cp "{plan}" "$(echo "$*" | sed 's/.*--report \\(.*\\) torch.*/\\1/')" ;;
    *"--no-deps torch=="*|*"{wheel}"*) touch "{log}.torch" ;;
    *"-e "*) exit {project_status} ;;
  esac
  exit 0
fi
case "$*" in
  *"m.version('torch')"*) test -e "{log}.torch"; exit ;;
  *urlopen*) exit 1 ;;
  *"import harness."*) exit ;;
esac
exec "{python}" "$@"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what ./hil reads, with a .venv whose pip only pretends; its path has a space."""
    root = tmp_path / "the checkout"
    for name in (
        "hil",
        "scripts/bootstrap.sh",
        "scripts/install-packages.sh",
        "scripts/steps.sh",
        "scripts/run.lock",
        "scripts/dev.lock",
        "pyproject.toml",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    (root / "docker").mkdir()
    (root / "docker/packages.txt").write_text("run git git git\n")
    (root / "tools").mkdir()
    (root / "tools" / "__main__.py").touch()
    return root


def bootstrap(
    root: Path,
    *,
    plan: list[str],
    project_status: int = 0,
    verb: str = "doctor",
    release: str = "",
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    (root / "plan.json").write_text(
        json.dumps({"install": [{"metadata": {"name": name}} for name in plan]})
    )
    venv = root / (f".venv-{release}" if release else ".venv")
    python = venv / "bin/python"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text(
        PIP.format(
            log=root / "pip.log",
            plan=root / "plan.json",
            python=sys.executable,
            wheel="torch-cpu.whl",
            project_status=project_status,
        )
    )
    python.chmod(0o755)
    hil = venv / "bin/hil"
    hil.write_text('#!/bin/sh\necho "hil got: $*"\n')
    hil.chmod(0o755)
    return subprocess.run(
        [str(root / "hil"), *([f"+{release}"] if release else []), verb, "--json"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HIL_NO_SYSTEM_PACKAGES": "1", **environment},
    )


def test_first_use_installs_cpu_torch_alone_then_the_project(checkout: Path) -> None:
    done = bootstrap(checkout, plan=["torch", "numpy"])
    assert done.returncode == 0, done.stderr
    assert done.stdout == "hil got: doctor --json\n"
    asked = (checkout / "pip.log").read_text().splitlines()
    installs = [line for line in asked if "--dry-run" not in line]
    assert [line.partition(" install --no-compile ")[2] for line in installs] == [
        f"--require-hashes --no-deps -r {checkout}/.hil/pip.lock",
        f"--require-hashes --no-deps --no-build-isolation -r {checkout}/scripts/run.lock",
        "--no-deps torch==2.13.0",
        f"--no-deps --no-build-isolation -e {checkout}",
    ]
    first = (checkout / ".hil" / "pip.lock").read_text()
    assert re.findall(r"^(\S+)==", first, re.MULTILINE) == ["pip", "setuptools"]
    assert set(first.splitlines()) <= set((ROOT / "scripts/run.lock").read_text().splitlines())
    assert first.count("--hash=") >= 2


def test_another_release_has_an_environment_of_its_own(checkout: Path) -> None:
    """With the compilers that it asks for; the pinned one stays as it is."""
    done = bootstrap(checkout, plan=["torch"], release="1.5.0")
    assert (done.returncode, done.stdout) == (0, "hil got: doctor --json\n"), done.stderr
    asked = (checkout / "pip.log").read_text().splitlines()
    installs = [line.partition(" install --no-compile ")[2] for line in asked]
    assert "--no-deps executorch==1.5.0" in installs
    assert any(re.match(r"--no-deps .*\bethos-u-vela==\d", line) for line in installs)
    assert not (checkout / ".venv").exists()


def test_what_our_own_tests_need_is_for_them_alone(checkout: Path) -> None:
    """A run takes neither their Python packages nor the system's, and none of what only targets
    with Linux or a checkout need; the suite takes all."""
    packages = checkout / "docker/packages.txt"
    packages.write_text(
        "run no-such-a - -\nlinux no-such-b - -\ndev no-such-c - -\nzephyr no-such-d - -\n"
    )
    ran = bootstrap(checkout, plan=["torch"])
    assert "HIL_NO_SYSTEM_PACKAGES=1: no-such-a\n" in ran.stderr
    assert "dev.lock" not in (checkout / "pip.log").read_text()
    tested = bootstrap(checkout, plan=["torch"], verb="test")
    assert "HIL_NO_SYSTEM_PACKAGES=1: no-such-a no-such-b no-such-c\n" in tested.stderr
    assert "dev.lock" in (checkout / "pip.log").read_text()
    assert [bootstrap(checkout, plan=[], verb=v).stderr for v in ("run", "test")] == ["", ""]


def test_second_use_does_nothing_but_run(checkout: Path) -> None:
    bootstrap(checkout, plan=["torch"])
    (checkout / "pip.log").unlink()
    done = bootstrap(checkout, plan=["torch"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "hil got: doctor --json\n", "")
    assert not (checkout / "pip.log").exists()


@pytest.mark.parametrize("package", cases("nvidia-cublas", thorough=["cuda-toolkit", "triton"]))
def test_cuda_is_refused_with_the_way_out(checkout: Path, package: str) -> None:
    done = bootstrap(checkout, plan=["torch", package])
    assert done.returncode == 3
    assert "gigabytes of CUDA packages" in done.stderr
    assert "PIP_FIND_LINKS=" in done.stderr
    assert not any(
        line.endswith("install --no-compile --no-deps torch==2.13.0")
        for line in (checkout / "pip.log").read_text().splitlines()
    )


def test_a_failing_install_is_not_taken_for_done(checkout: Path) -> None:
    done = bootstrap(checkout, plan=["torch"], project_status=1)
    assert done.returncode == 3
    assert "installing the project failed" in done.stderr
    assert "bootstrap.log" in done.stderr
    assert bootstrap(checkout, plan=["torch"]).returncode == 0  # the next use tries again


def test_without_apt_it_lists_what_to_install(checkout: Path, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in (
        "sh",
        "sed",
        "cat",
        "cmp",
        "mkdir",
        "dirname",
        "tail",
        "touch",
        "cp",
        "rm",
        "test",
        "env",
        "flock",
        "awk",
        "sort",
        "grep",
        "tr",
        "cksum",
    ):
        found = shutil.which(tool)
        assert found is not None
        (tools / tool).symlink_to(found)
    (tools / "python3").symlink_to(sys.executable)
    shutil.copy(ROOT / "docker/packages.txt", checkout / "docker")
    done = bootstrap(checkout, plan=["torch"], PATH=str(tools))
    assert "no apt here" in done.stderr
    assert "qemu-system-arm" in done.stderr
    assert "gcc-arm-none-eabi" in done.stderr


def test_no_python_is_said(checkout: Path, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("sh", "sed", "cat", "cmp", "mkdir", "dirname", "rm", "awk", "sort", "grep"):
        found = shutil.which(tool)
        assert found is not None
        (tools / tool).symlink_to(found)
    script = (checkout / "scripts/bootstrap.sh").read_text().replace("/usr/bin/python3", "")
    (checkout / "scripts/bootstrap.sh").write_text(script)
    done = bootstrap(checkout, plan=["torch"], PATH=str(tools))
    assert done.returncode == 3
    assert "no Python 3.10 to 3.13" in done.stderr
    assert "HIL_PYTHON" in done.stderr


def test_missing_system_packages_are_named(checkout: Path) -> None:
    packages = checkout / "docker/packages.txt"
    packages.write_text("# none has this\nrun no-such-package-anywhere - -\n")
    done = bootstrap(checkout, plan=["torch"])
    if shutil.which("dpkg-query"):
        assert "missing and HIL_NO_SYSTEM_PACKAGES=1: no-such-package-anywhere" in done.stderr
    else:
        assert "no-such-package-anywhere" in done.stderr


APT = """#!/bin/sh
# Of `install`, waits for what is to come first, and writes down what is there at its end, and
# whether another bootstrap could begin.
[ "$1" = install ] || exit 0
for _ in $(seq 300); do
  if {come}; then
    sleep 0.3
    ls "{root}" > "{root}/apt.log"
    flock -n "{root}/.hil/bootstrap.lock" true && touch "{root}/unlocked"
    exit {status}
  fi
  sleep 0.1
done
exit 9
"""


def with_apt(
    checkout: Path, tmp_path: Path, come: str, *, status: int = 0, **stand_ins: str
) -> dict[str, str]:
    """An environment in which a package is missing; nothing is installed."""
    (checkout / "docker/packages.txt").write_text("run no-such-package no-such-package -\n")
    folder = tmp_path / "stand-ins"
    folder.mkdir()
    scripts = {"apt-get": APT.format(come=come, root=checkout, status=status)}
    scripts |= {"dpkg-query": "#!/bin/sh\nexit 1\n", "id": "#!/bin/sh\necho 0\n"} | stand_ins
    for name, text in scripts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return {"HIL_NO_SYSTEM_PACKAGES": "", "PATH": f"{folder}:{os.environ['PATH']}"}


def test_system_packages_come_next_to_pythons(checkout: Path, tmp_path: Path) -> None:
    """apt here ends after pip has begun: one after the other, it would fail."""
    environment = with_apt(checkout, tmp_path, f"[ -e '{checkout}/pip.log' ]")
    done = bootstrap(checkout, plan=["torch"], **environment)
    assert (done.returncode, done.stdout) == (0, "hil got: doctor --json\n"), done.stderr
    assert "system packages to install: no-such-package" in done.stderr


def test_a_failing_apt_is_not_taken_for_done(checkout: Path, tmp_path: Path) -> None:
    """Also where all that pip does went well before."""
    last = f"grep -qs -e '-e {checkout}' '{checkout}/pip.log'"
    done = bootstrap(checkout, plan=["torch"], **with_apt(checkout, tmp_path, last, status=7))
    assert (done.returncode, done.stdout) == (3, "")
    assert "apt-get install failed" in done.stderr
    assert f"the whole output is in {checkout}/.hil/packages.log" in done.stderr
    assert "ready" not in done.stderr
    assert not list(checkout.glob(".venv/.hil-stamp*"))


def test_apt_is_waited_for_where_pip_fails(checkout: Path, tmp_path: Path) -> None:
    last = f"grep -qs -e '-e {checkout}' '{checkout}/pip.log'"
    environment = with_apt(checkout, tmp_path, last)
    done = bootstrap(checkout, plan=["torch"], project_status=1, **environment)
    assert done.returncode == 3
    assert "installing the project failed" in done.stderr
    assert (checkout / "apt.log").exists()
    assert not (checkout / "unlocked").exists()


def test_a_password_is_asked_for_before_anything_else_is_said(
    checkout: Path, tmp_path: Path
) -> None:
    environment = with_apt(
        checkout,
        tmp_path,
        "true",
        id="#!/bin/sh\necho 1000\n",
        sudo='#!/bin/sh\n[ "$1" != -n ] || exit 1\nexec "$@"\n',
    )
    done = bootstrap(checkout, plan=["torch"], **environment)
    assert done.returncode == 0, done.stderr
    assert "pip.log" not in (checkout / "apt.log").read_text().split("\n")


# Makes an environment with no more in it than the first one had.
VENV = """#!/bin/sh
if [ "$1 $2" = "-m venv" ]; then
  mkdir -p "$3/bin"
  cp "{stub}" "$3/bin/python"
  printf '#!/bin/sh\\necho "the hil of %s"\\n' "$3" > "$3/bin/hil"
  chmod +x "$3/bin/python" "$3/bin/hil"
  exit 0
fi
exec "{python}" "$@"
"""


@pytest.mark.parametrize(
    ("named", "there", "taken"),
    [
        ("", True, "distribution"),
        ("", False, "path"),
        ("named", True, "named"),
        ("nowhere", True, "distribution"),
    ],
)
def test_which_python_the_environment_is_made_of(
    checkout: Path, tmp_path: Path, named: str, there: bool, taken: str
) -> None:
    """The one that is named, the distribution's, the first of PATH; the first that can be used."""
    assert bootstrap(checkout, plan=["torch"]).returncode == 0
    shutil.copy(checkout / ".venv/bin/python", tmp_path / "stub")
    shutil.rmtree(checkout / ".venv")
    text = VENV.format(stub=tmp_path / "stub", python=sys.executable)
    pythons = {"named": tmp_path / "named", "path": tmp_path / "bin" / "python3"}
    pythons |= {"distribution": tmp_path / "usr bin" / "python3"} if there else {}
    for name, python in pythons.items():
        python.parent.mkdir(exist_ok=True)
        python.write_text(text.replace("  mkdir", f'  echo {name} >> "{tmp_path}/made"\n  mkdir'))
        python.chmod(0o755)
    script = checkout / "scripts/bootstrap.sh"
    distribution = f"'{tmp_path / 'usr bin' / 'python3'}'"
    changed = script.read_text().replace(":-/usr/bin/python3}", f":-{distribution[1:-1]}}}")
    script.write_text(changed.replace(" /usr/bin/python3 ", f" {distribution} "))
    environment = {**os.environ, "HIL_NO_SYSTEM_PACKAGES": "1"}
    environment |= {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "HIL_PYTHON": ""}
    if named:
        environment["HIL_PYTHON"] = str(tmp_path / named)
    done = subprocess.run([checkout / "hil"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made").read_text() == f"{taken}\n"


@pytest.mark.parametrize(
    ("how", "stamp"),
    [
        ("copied", "new"),
        ("moved", "old"),
        pytest.param("copied", "old", marks=pytest.mark.thorough),
        pytest.param("moved", "new", marks=pytest.mark.thorough),
    ],
)
def test_a_checkout_elsewhere_makes_its_own_environment(
    checkout: Path, tmp_path: Path, how: str, stamp: str
) -> None:
    """The stamp is the same there, and the .venv has the paths of where it was made."""
    assert bootstrap(checkout, plan=["torch"]).returncode == 0
    python = tmp_path / "python3"
    python.write_text(VENV.format(stub=tmp_path / "stub", python=sys.executable))
    python.chmod(0o755)
    shutil.copy(checkout / ".venv/bin/python", tmp_path / "stub")
    if stamp == "old":
        (checkout / ".venv/.hil-stamp-run").rename(checkout / ".venv/.hil-stamp")
    other = tmp_path / "other"
    shutil.copytree(checkout, other, symlinks=True)
    if how == "moved":
        shutil.rmtree(checkout)
        (checkout / ".venv/bin").mkdir(parents=True)
        (checkout / "plan.json").write_text('{"install": []}')
    command = [str(other / "hil")]
    environment = {**os.environ, "HIL_NO_SYSTEM_PACKAGES": "1", "HIL_PYTHON": str(python)}
    first = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert first.returncode == 0, first.stderr
    assert first.stdout == f"the hil of {other}/.venv\n"
    assert (
        f"the environment here was made for {checkout}; making one for this folder" in first.stderr
    )
    again = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (again.stdout, again.stderr) == (f"the hil of {other}/.venv\n", "")


def test_the_same_checkout_by_another_path_is_the_same(checkout: Path, tmp_path: Path) -> None:
    """Through a link: nothing is made again."""
    bootstrap(checkout, plan=["torch"])
    (tmp_path / "link").symlink_to(checkout)
    done = subprocess.run([str(tmp_path / "link" / "hil")], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def elsewhere(checkout: Path, tmp_path: Path) -> Path:
    """A home for whoever cannot write to the checkout, and a Python that makes environments."""
    stub = PIP.format(
        log=tmp_path / "home" / "pip.log",
        plan=tmp_path / "plan.json",
        wheel="-",
        python=sys.executable,
        project_status=0,
    )
    (tmp_path / "home").mkdir()
    (tmp_path / "stub").write_text(stub)
    (tmp_path / "plan.json").write_text('{"install": []}')
    (tmp_path / "python3").write_text(VENV.format(stub=tmp_path / "stub", python=sys.executable))
    for name in ("stub", "python3"):
        (tmp_path / name).chmod(0o755)
    return tmp_path / "home"


def read_only(home: Path, *folders: Path) -> subprocess.CompletedProcess[str]:
    """./hil where ``folders`` cannot be written, not by root either."""
    words = [word for folder in folders for word in ("--ro-bind", str(folder), str(folder))]
    return subprocess.run(
        [
            "bwrap",
            "--dev-bind",
            "/",
            "/",
            *words,
            "env",
            "-u",
            "XDG_CACHE_HOME",
            str(folders[0] / "hil"),
            "doctor",
        ],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "HIL_NO_SYSTEM_PACKAGES": "1",
            "HOME": str(home),
            "HIL_PYTHON": str(home.parent / "python3"),
        },
    )


@CONFINED
def test_a_clone_that_cannot_be_written(checkout: Path, elsewhere: Path) -> None:
    """Its environment is made elsewhere, once."""
    first = read_only(elsewhere, checkout)
    assert first.returncode == 0, first.stderr
    cache = elsewhere / ".cache" / "executorch-hil"
    assert first.stdout.startswith(f"the hil of {cache}/")
    again = read_only(elsewhere, checkout)
    assert (again.stdout, again.stderr) == (first.stdout, "")


@CONFINED
def test_the_environment_that_its_owner_made_is_taken(checkout: Path, elsewhere: Path) -> None:
    """And nothing is made for whoever may not write there."""
    assert bootstrap(checkout, plan=["torch"]).returncode == 0
    done = read_only(elsewhere, checkout)
    assert (done.stdout, done.stderr) == ("hil got: doctor\n", "")
    assert not (elsewhere / ".cache").exists()


@CONFINED
def test_nowhere_to_write(checkout: Path, elsewhere: Path) -> None:
    """Said with the way out, not as mkdir says it."""
    done = read_only(elsewhere, checkout, elsewhere)
    assert done.returncode == 3
    assert f"{elsewhere}/.cache/executorch-hil/" in done.stderr
    assert "cannot be written" in done.stderr
    assert "set XDG_CACHE_HOME to a folder that can be" in done.stderr
    assert "mkdir" not in done.stderr


@pytest.mark.parametrize("gone", ["bin/python", "bin/hil", "lib/python3.11/site-packages/click"])
def test_a_damaged_environment_is_said_and_made_again(checkout: Path, gone: str) -> None:
    """A traceback, or `exec: not found`, at every later use."""
    packages = checkout / ".venv" / "lib" / "python3.11" / "site-packages"
    for name in ("click", "click-8.1.dist-info", "rich"):
        (packages / name).mkdir(parents=True)
    assert bootstrap(checkout, plan=["torch"]).returncode == 0
    assert "damaged" not in bootstrap(checkout, plan=["torch"]).stderr
    place = checkout / ".venv" / gone
    shutil.copy(checkout / ".venv/bin/python", checkout / "stub")
    place.rmdir() if place.is_dir() else place.unlink()
    environment = {**os.environ, "HIL_NO_SYSTEM_PACKAGES": "1"}
    python = checkout / "its own python"
    python.write_text(VENV.format(stub=checkout / "stub", python=sys.executable))
    python.chmod(0o755)
    environment["HIL_PYTHON"] = str(python)
    done = subprocess.run([checkout / "hil", "x"], capture_output=True, text=True, env=environment)
    assert ".venv is damaged: its Python or a package is gone; making it again" in done.stderr
    assert not (packages / "rich").exists(), "it was not made again"


def test_a_package_of_the_users_own_damages_nothing(checkout: Path) -> None:
    packages = checkout / ".venv" / "lib" / "python3.11" / "site-packages"
    (packages / "click").mkdir(parents=True)
    assert bootstrap(checkout, plan=["torch"]).returncode == 0
    (packages / "torchvision").mkdir()
    done = bootstrap(checkout, plan=["torch"])
    assert (done.stderr, done.stdout) == ("", "hil got: doctor --json\n")


def test_a_python_that_cannot_be_used_is_named(checkout: Path) -> None:
    done = bootstrap(checkout, plan=["torch"], HIL_PYTHON="/usr/bin/false")
    assert done.returncode == 0
    assert "HIL_PYTHON=/usr/bin/false is not a Python 3.10 to 3.13" in done.stderr
