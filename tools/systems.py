"""``hil test --only systems``: what README promises of other systems, in clean ones.

debootstrap makes a Debian that has nothing installed; in it README's first command is given as
users give it, in a clone and from a wheel, and has to end with PASS for every model. On the way: a
user with sudo, root, a path with spaces, a second use without a network, a checkout that cannot be
written. What apt and pip fetched is kept for the next time, the systems are not.

It needs root, debootstrap and a Debian mirror, and takes an hour; so it is not in every run.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.core.errors import InfraError
from harness.system.git import git
from harness.system.paths import state_dir
from tools.clone import project_root

MODELS = ("ds_cnn", "resnet8", "mobilenet_v1_025", "deep_autoencoder")
FIRST = ("run", "corstone-300-m55", *MODELS, "--json")
# Other ways through the compilers: the NPU's backend, and this machine's own.
ALSO = (("run", "corstone-320-u85-256", "ds_cnn", "--json"), ("run", "host", "ds_cnn", "--json"))
_MIRROR = "http://deb.debian.org/debian"
_TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
_IMAGE_SUITE = "bookworm"  # the base of docker/Dockerfile
_INCLUDED = "ca-certificates,sudo"
_USER = "maker"
_UID = 1000
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# What a machine says of its network and where packages come from holds in its roots, too.
_HANDED_ON = (
    "PIP_FIND_LINKS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
)
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LINES_SHOWN = 30
# Beside pytest 9 of the environment, which stays.
_WITH_PYTEST_8 = """
.venv/bin/python -m pip install -q --target /tmp/pytest8 'pytest<9' pytest-rerunfailures
PYTHONPATH=/tmp/pytest8 .venv/bin/python -m pytest -q tests/plugin/test_manners.py
"""


@dataclass(frozen=True)
class System:
    """``suite``: as debootstrap names it; ``user``: who works there; ``clone``: where."""

    suite: str
    name: str
    user: str
    clone: str


SYSTEMS = (
    System("bookworm", "Debian 12", _USER, f"/home/{_USER}/a clone"),
    System("trixie", "Debian 13", "root", "/root/clone"),
)


class StepFailed(InfraError):
    """``log``: all that it said."""

    def __init__(self, what: str, log: Path, why: str) -> None:
        super().__init__(f"{what}: {why}", hint=f"what it said is in {log}", path=log)


@dataclass
class Root:
    """A system that is there, until the ``with`` block that made it ends. ``seconds``: of steps."""

    system: System
    folder: Path
    kept: Path
    seconds: dict[str, float] = field(default_factory=dict)

    def call(
        self,
        step: str,
        words: Sequence[str],
        *,
        where: str = "/",
        user: str | None = None,
        offline: bool = False,
    ) -> str:
        """Its standard output; the rest goes to a log. Raises StepFailed."""
        user = user or self.system.user
        log = self.kept / f"{self.system.suite} {step}.log"
        script = project_root() / "scripts" / "in-root.sh"
        started = time.monotonic()
        with log.open("wb") as file:
            done = subprocess.run(
                ["sh", str(script), str(self.folder), where, *words],
                env=self._environment(user, offline),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=file,
            )
            file.write(done.stdout)
        self.seconds[step] = round(time.monotonic() - started, 1)
        if done.returncode != 0:
            tail = log.read_text("utf-8", "replace").splitlines()[-_LINES_SHOWN:]
            print(*tail, sep="\n", file=sys.stderr)
            raise StepFailed(f"{self.system.name}, {step}", log, f"status {done.returncode}")
        return done.stdout.decode("utf-8", "replace")

    def cases(self, step: str, words: Sequence[str], **how: object) -> None:
        """``hil run … --json``. Raises StepFailed unless every case passed."""
        said = self.call(step, words, **how)  # type: ignore[arg-type]
        cases = json.loads(said)["cases"]
        verdicts = [case["verdict"] for case in cases]
        print(
            f"{self.system.name}, {step}: {', '.join(verdicts)} in {self.seconds[step]} s",
            file=sys.stderr,
        )
        if not verdicts or set(verdicts) != {"PASS"}:
            log = self.kept / f"{self.system.suite} {step}.log"
            raise StepFailed(f"{self.system.name}, {step}", log, f"verdicts {verdicts}")

    def _environment(self, user: str, offline: bool) -> dict[str, str]:
        handed = {name: os.environ[name] for name in _HANDED_ON if name in os.environ}
        handed |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        pip = self.kept / f"pip {user}"  # pip takes no cache that is somebody else's
        pip.mkdir(exist_ok=True)
        os.chown(pip, *((0, 0) if user == "root" else (_UID, _UID)))
        folders = {str(self.kept / "debs"): "/var/cache/apt/archives", str(pip): "/var/cache/pip"}
        for word in os.environ.get("PIP_FIND_LINKS", "").split():
            if Path(word).is_dir():
                folders[f"-{word}"] = word
        return {
            **handed,
            "PATH": _PATH,
            "LC_ALL": "C.UTF-8",
            "TERM": "dumb",
            "HIL_USER": user,
            "HIL_OFFLINE": "1" if offline else "",
            "PIP_CACHE_DIR": "/var/cache/pip",
            "HIL_BIND": "\n".join(f"{here}\t{there}" for here, there in folders.items()),
        }


def lacking(environ: Mapping[str, str] = os.environ) -> str | None:
    """Why clean systems cannot be made here, if so."""
    if os.geteuid() != 0:
        return "only root can make them"
    path = environ.get("PATH")
    for tool, package in (("debootstrap", "debootstrap"), ("unshare", "util-linux")):
        if shutil.which(tool, path=path) is None:
            return f"{tool} is not installed (apt-get install {package})"
    return None


def systems(only: Sequence[str] = ()) -> bool:
    """Whether the promises hold on each system, or on those of the suites in ``only``."""
    if (reason := lacking()) is not None:
        print(f"not examined: {reason}", file=sys.stderr)
        return False
    if git(project_root(), "status", "--porcelain"):
        print("only what is committed is cloned, and so examined", file=sys.stderr)
    kept = state_dir() / "systems"
    (kept / "debs" / "partial").mkdir(parents=True, exist_ok=True)
    held = True
    figures: dict[str, Mapping[str, float]] = {}
    for system in SYSTEMS:
        if only and system.suite not in only:
            continue
        try:
            with clean(system, kept) as root:
                figures[system.name] = root.seconds
                prove(root)
        except StepFailed as error:
            print(f"{error.message}\n{error.hint}", file=sys.stderr)
            held = False
    (kept / "seconds.json").write_text(json.dumps(figures, indent=2) + "\n")
    return held


@contextmanager
def clean(system: System, kept: Path) -> Iterator[Root]:
    """A new system. It is deleted afterwards."""
    folder = kept / system.suite
    shutil.rmtree(folder, ignore_errors=True)
    log = kept / f"{system.suite} debootstrap.log"
    words = [
        "unshare",
        "--mount",
        "debootstrap",
        "--variant=minbase",
        f"--include={_INCLUDED}",
        f"--cache-dir={kept / 'debs'}",
        system.suite,
        str(folder),
        _MIRROR,
    ]
    started = time.monotonic()
    try:
        with log.open("wb") as file:
            done = subprocess.run(words, stdout=file, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise StepFailed(system.name, log, f"debootstrap's status is {done.returncode}")
        _settle(folder)
        seconds = {"debootstrap": round(time.monotonic() - started, 1)}
        yield Root(system, folder, kept, seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _settle(folder: Path) -> None:
    """A user, and what a machine says of its network."""
    etc = folder / "etc"
    with (etc / "passwd").open("a") as file:
        file.write(f"{_USER}:x:{_UID}:{_UID}::/home/{_USER}:/bin/sh\n")
    with (etc / "group").open("a") as file:
        file.write(f"{_USER}:x:{_UID}:\n")
    with (etc / "shadow").open("a") as file:
        file.write(f"{_USER}:*:19000:0:99999:7:::\n")
    (etc / "hosts").write_text(f"127.0.0.1 localhost {platform.node()}\n")
    (etc / "sudoers.d" / _USER).write_text(f"{_USER} ALL=(ALL) NOPASSWD: ALL\n")
    home = folder / "home" / _USER
    home.mkdir(parents=True)
    os.chown(home, _UID, _UID)
    keep = 'Binary::apt::APT::Keep-Downloaded-Packages "true";\n'
    (etc / "apt" / "apt.conf.d" / "99keep").write_text(keep)
    (etc / "dpkg" / "dpkg.cfg.d" / "99quick").write_text("force-unsafe-io\n")
    for file_here in (Path("/etc/resolv.conf"), _CERTIFICATES):
        if file_here.is_file():
            shutil.copyfile(file_here, folder / str(file_here).lstrip("/"))


def prove(root: Root) -> None:
    """Raises StepFailed at the first promise that does not hold."""
    system = root.system
    clone = root.folder / system.clone.lstrip("/")
    git(project_root(), "clone", "-q", "--no-hardlinks", ".", str(clone))
    if system.user != "root":
        subprocess.run(["chown", "-R", f"{_UID}:{_UID}", str(clone)], check=True)
    root.cases("first command", ("./hil", *FIRST), where=system.clone)
    root.cases("again, offline", ("./hil", *FIRST), where=system.clone, offline=True)
    for words in ALSO:
        root.cases(words[1], ("./hil", *words), where=system.clone)
    root.call("pytest 8", ("sh", "-euc", _WITH_PYTEST_8), where=system.clone)
    root.call("as locked", (".venv/bin/python", "-m", "pip", "check"), where=system.clone)
    if system.user == "root":
        # An installation by root in a clone that nobody else writes to, used by somebody else.
        (root.folder / "root").chmod(0o755)
        one = ("./hil", "run", "corstone-300-m55", "ds_cnn", "--json")
        root.cases("root's, by a user", one, where=system.clone, user=_USER)
    _prove_wheel(root)
    if system.suite == _IMAGE_SUITE:
        prove_image(root)


def prove_image(root: Root) -> None:
    """The steps of docker/Dockerfile, each by the user and in the folder that it says; the base is
    what debootstrap made. Raises StepFailed, also for an instruction that is not known here."""
    dockerfile = project_root() / "docker" / "Dockerfile"
    user, where, arguments = "root", "/", ""
    for number, (word, text) in enumerate(instructions(dockerfile.read_text()), 1):
        step = f"image, step {number}, {word}"
        if word == "RUN":
            root.call(step, ("sh", "-euc", f"{arguments}{text}"), where=where, user=user)
        elif word == "ARG":
            arguments += f"{text}\n"  # NAME=default, as a shell writes it
        elif word == "USER":
            user = text
        elif word == "WORKDIR":
            where = text
            (root.folder / where.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif word == "COPY":
            _copy(root, step, text.split(), where)
        elif word == "ENTRYPOINT":
            argv = (*json.loads(text), "run", "corstone-300-m55", "ds_cnn", "--json")
            root.cases(step, argv, where=where, user=user)
        elif word != "FROM":
            raise StepFailed(f"{root.system.name}, {step}", dockerfile, "not known here")


def instructions(dockerfile: str) -> Iterator[tuple[str, str]]:
    """Word and text, without comments, lines that go on joined."""
    lines = [line for line in dockerfile.splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", "").splitlines():
        word, _, text = line.partition(" ")
        if word:
            yield word, text.strip()


def _copy(root: Root, step: str, words: Sequence[str], where: str) -> None:
    """``[--chown=USER:GROUP] FROM TO``, of a file, or of the whole project."""
    owner = [word.removeprefix("--chown=") for word in words if word.startswith("--chown=")]
    source, target = words[len(owner) :]
    there = root.folder / str(Path(where, target)).lstrip("/")
    if source == ".":
        git(project_root(), "clone", "-q", "--no-hardlinks", ".", str(there))
    else:
        shutil.copyfile(project_root() / source, there)
    for name in owner:
        words = ("chown", "-R", name, str(Path(where, target)))
        root.call(step, words, user="root")


def _prove_wheel(root: Root) -> None:
    """In an empty virtual environment and a directory of no repository."""
    system = root.system
    made = f"{'/root' if system.user == 'root' else f'/home/{_USER}'}/wheel"
    build = (".venv/bin/python", "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation")
    root.call("building the wheel", (*build, "-w", made, "."), where=system.clone)
    (wheel,) = (root.folder / made.lstrip("/")).glob("*.whl")
    root.call("an empty environment", ("python3", "-m", "venv", f"{made}/venv"))
    torch = ("torch", "--extra-index-url", _TORCH_INDEX)
    install = (f"{made}/venv/bin/pip", "install", "-q", f"{made}/{wheel.name}[export]", *torch)
    root.call("installing the wheel", install)
    root.call("an empty folder", ("mkdir", f"{made}/empty"))
    root.cases("first command, wheel", (f"{made}/venv/bin/hil", *FIRST), where=f"{made}/empty")
