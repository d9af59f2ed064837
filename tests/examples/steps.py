"""As much of a runner of GitHub or GitLab as the steps of a pipeline need: what is in ``${{ }}``,
the files in which one step leaves something for the next, a shell for each.

``uses`` of other people's actions are not run: what they would bring or keep is the caller's.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")
_CONDITION = re.compile(r"(inputs\.[\w-]+) (==|!=) '([^']*)'")


@dataclass
class Done:
    """``name`` of the step, and how its shell ended."""

    name: str
    code: int
    out: str


@dataclass
class Action:
    """A composite action in a workspace. ``without``: words of steps that are left out."""

    file: Path
    workspace: Path
    environment: Mapping[str, str]
    without: Sequence[str] = ()
    values: dict[str, str] = field(default_factory=dict)

    def run(self, said: Any, inputs: Mapping[str, str], scratch: Path) -> list[Done]:
        """Each step with a shell, until one fails; then those that are always run."""
        self.values = {
            f"inputs.{name}": one.get("default", "") for name, one in said["inputs"].items()
        }
        self.values |= {f"inputs.{name}": value for name, value in inputs.items()}
        self.values["github.action_path"] = str(self.file.parent)
        self.values["github.workspace"] = str(self.workspace)
        self.values |= {"github.run_id": "4711", "github.token": ""}
        environ = {**self.environment, "GITHUB_WORKSPACE": str(self.workspace), "CI": "true"}
        done: list[Done] = []
        for step in said["runs"]["steps"]:
            failed = any(one.code for one in done)
            if "run" in step and self._wanted(step, failed) and not self._left_out(step["run"]):
                done.append(self._step(step, environ, scratch))
        return done

    def _wanted(self, step: Any, failed: bool) -> bool:
        said = step.get("if", "")
        if failed and "always()" not in said:
            return False
        pairs = _CONDITION.findall(said)
        return all((self._text(self.values[a]) == b) == (sign == "==") for a, sign, b in pairs)

    def _left_out(self, text: str) -> bool:
        return any(re.search(rf"\b{word}\b", text) for word in self.without)

    def _text(self, said: object) -> str:
        """With its expressions replaced. Raises KeyError for one that nobody knows."""
        text = str(said)
        while _EXPRESSION.search(text):
            text = _EXPRESSION.sub(lambda found: self.values[found[1]], text)
        return text

    def _step(self, step: Any, environ: dict[str, str], scratch: Path) -> Done:
        assert "${{" not in step["run"], "an input in a script is a script"
        own = {name: self._text(value) for name, value in step.get("env", {}).items()}
        files = {name: scratch / name for name in ("GITHUB_OUTPUT", "GITHUB_ENV")}
        for file in files.values():
            file.write_text("")
        ended = shell(
            step["run"],
            self.workspace,
            {
                **environ,
                **own,
                **{name: str(file) for name, file in files.items()},
            },
        )
        outputs = pairs(files["GITHUB_OUTPUT"])
        self.values |= {f"steps.{step.get('id')}.outputs.{n}": v for n, v in outputs}
        environ.update(pairs(files["GITHUB_ENV"]))
        return Done(step.get("name", ""), ended.returncode, ended.stdout)


def pairs(file: Path) -> Iterator[tuple[str, str]]:
    for line in file.read_text().splitlines():
        name, _, value = line.partition("=")
        yield name, value


def shell(text: str, where: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """As both services do it: a shell that the first command which fails ends."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
        cwd=where,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
