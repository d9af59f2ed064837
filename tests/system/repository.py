"""Small git repositories, made by git itself."""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_WHO = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "A"), ("EMAIL", "a@example.com"))
}


@dataclass(frozen=True)
class Repository:
    folder: Path

    def git(self, *arguments: str, day: int = 1) -> str:
        dates = {
            f"GIT_{who}_DATE": f"2026-01-{day:02}T12:00:00+0100" for who in ("AUTHOR", "COMMITTER")
        }
        done = subprocess.run(
            ["git", "-C", str(self.folder), *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **_WHO, **dates},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, subject: str, day: int = 1, **files: str) -> str:
        """The hash of a new commit, in which ``files`` have these contents."""
        for name, content in files.items():
            (self.folder / name).write_text(content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject, day=day)
        return self.git("rev-parse", "HEAD")

    def state(self) -> dict[str, str]:
        """The content of everything there is, but objects and what git keeps for worktrees."""
        found = {}
        for path in sorted(self.folder.rglob("*")):
            name = str(path.relative_to(self.folder))
            if path.is_file() and not name.startswith((".git/objects/", ".git/worktrees/")):
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found


def make_repository(folder: Path) -> Repository:
    folder.mkdir()
    made = Repository(folder)
    made.git("init", "-q", "-b", "main")
    return made
