"""Local repositories that stand for Zephyr's on GitHub: what `hil zephyr init` fetches from."""

from __future__ import annotations

import subprocess
from pathlib import Path

from harness.firmware.zephyr.init import MODULES, UPSTREAM

_REPOSITORIES = {name: "CMSIS_6" if name == "cmsis_6" else name for name in MODULES}
_BUILD = """\
from west.commands import WestCommand
class Build(WestCommand):
    def __init__(self):
        super().__init__("build", "build", "")
    def do_add_parser(self, adder):
        return adder.add_parser(self.name)
    def do_run(self, args, unknown):
        pass
"""
_COMMANDS = """\
west-commands:
  - file: scripts/build.py
    commands:
      - {name: build, class: Build, help: build}
"""


def git(folder: Path, *words: str) -> str:
    name = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *name, "-C", str(folder), *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(folder: Path, files: dict[str, str]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".git").exists():
        git(folder, "init", "-q")
    for file, text in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "made")
    return git(folder, "rev-parse", "HEAD")


def make_remote(root: Path) -> Path:
    """Zephyr with a tag, its modules by commit, and one nobody asks for, whose repository is not
    there. Each has a history."""
    rows = ["    - {name: hal_unneeded, path: modules/hal/unneeded, revision: main}"]
    for name, repository in _REPOSITORIES.items():
        commit(root / repository, {"old": "old"})
        pinned = commit(root / repository, {"README": name})
        commit(root / repository, {"README": "newer than the manifest says"})
        rows.append(
            f"    - {{name: {name}, repo-path: {repository}, path: modules/{name}, "
            f"revision: {pinned}}}"
        )
    west = [
        *("manifest:", "  defaults: {remote: upstream}", "  remotes:"),
        *(f"    - {{name: upstream, url-base: {UPSTREAM}}}", "  projects:", *rows),
        *("  self:", "    path: zephyr", "    west-commands: scripts/west-commands.yml", ""),
    ]
    commit(root / "zephyr", {"old": "old"})
    commit(
        root / "zephyr",
        {
            "west.yml": "\n".join(west),
            "VERSION": "VERSION_MAJOR = 4\nVERSION_MINOR = 1\nPATCHLEVEL = 0\nEXTRAVERSION =\n",
            "share/zephyr-package/cmake/ZephyrConfig.cmake": "",
            "scripts/west-commands.yml": _COMMANDS,
            "scripts/build.py": _BUILD,
            "scripts/requirements-base.txt": "# nothing to fetch\n",
        },
    )
    git(root / "zephyr", "tag", "v4.1.0")
    return root
