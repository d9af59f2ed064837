"""ExecuTorch's Arm CI jobs: those of a checkout's workflow files, and the list that knows them.

A job of a workflow counts when its docker image has Arm's or Zephyr's SDK. Its matrix is expanded,
also that of a reusable workflow in the same repository; ``${{ matrix.x }}`` and ``${{ inputs.x }}``
are filled in. (GitHub Actions, "Workflow syntax": strategy.matrix, include, workflow_call.)

``jobs.yaml`` has what a workflow file does not say: which copy of the checkout a job may share with
others, whether it has to start the FVP, what it needs, or why it cannot run here. ``commands`` is
a digest of what the job ran when the entry was written.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from harness.config import strict_yaml
from harness.config.schema import Data, Text, checked_document
from harness.core.errors import UsageError
from harness.system.artifact_cache import key_of
from harness.system.files import text_of

_LIST = Path(__file__).with_name("jobs.yaml")
_FOLDER = Path(".github/workflows")
_PLACEHOLDER = re.compile(r"\$\{\{\s*(?:matrix|inputs)\.([\w-]+)\s*\}\}")
_FROM_JSON = re.compile(r"\$\{\{\s*fromJSON\(inputs\.([\w-]+)\)\s*\}\}")
_NO_AXES = ("include", "exclude")
_SCRIPT = re.compile(r"(?<![\w.-])(?:[\w.-]+/)+[\w.-]+\.(?:sh|py)\b")
_FUNCTION = r"(?ms)^{}\(\) \{{.*?^\}}$"  # of a shell script; all of it if it has no such function


@dataclass(frozen=True, kw_only=True)
class Listed(Data):
    """A row of jobs.yaml. ``overlay``: jobs with the same one share a copy of the checkout with its
    builds. ``packages``: Python packages that the job's own set-up would have installed.
    ``downloads``: why it needs the network while it runs. ``zephyr``: the target whose workspace
    it is built in. ``then``: a command after the job's own, which does not change its status."""

    commands: Text
    overlay: Text = "cortex-m55"
    simulates: bool = True
    packages: tuple[Text, ...] = ()
    cannot: Text | None = None
    downloads: Text | None = None
    zephyr: Text | None = None
    then: Text | None = None
    note: Text | None = None


@dataclass(frozen=True, kw_only=True)
class Replaced(Data):
    """A line of a job that sets up its machine, and is left out, or ``instead`` is run."""

    line: Text
    provided: Text
    instead: Text | None = None


@dataclass(frozen=True, kw_only=True)
class JobList(Data):
    workflows: tuple[Text, ...]
    images: Text
    aside: dict[Text, Text]  # reasons, by pattern of names
    environment: tuple[Replaced, ...]
    jobs: dict[Text, Listed]


UNKNOWN = Listed(commands="unknown")


@dataclass(frozen=True)
class CiJob:
    """``place``: file and line; ``script``: its commands, whole; ``commands``: their digest, with
    the scripts that they call. ``listed``: UNKNOWN for a job that the list does not have."""

    name: str
    place: str
    script: str
    commands: str
    listed: Listed

    @property
    def difference(self) -> str:
        """Where the list does not fit the checkout, in a sentence."""
        if self.listed is UNKNOWN:
            return f"the list does not know the checkout's job {self.name} ({self.place})"
        if self.listed.commands != self.commands:
            return f"the commands of {self.name} ({self.place}) are not those that the list knows"
        return ""

    def steps(self, replaced: Sequence[Replaced]) -> tuple[str, tuple[str, ...]]:
        """The script without the lines that set up a machine, and what stands for these."""
        lines, provided = [], []
        for line in self.script.splitlines():
            rule = next((r for r in replaced if re.search(r.line, line)), None)
            if rule is None:
                lines.append(line)
            else:
                provided.append(rule.provided)
                lines += [rule.instead] if rule.instead else []
        then = [f"({self.listed.then}) || true"] if self.listed.then else []
        return "\n".join([*lines, *then]) + "\n", tuple(dict.fromkeys(provided))


@dataclass(frozen=True)
class CiJobs:
    """``aside``: reasons, by name of a job that is left out. ``gone``: listed, and not in the
    checkout."""

    jobs: tuple[CiJob, ...]
    aside: Mapping[str, str]
    gone: tuple[str, ...]
    environment: tuple[Replaced, ...]

    @property
    def differences(self) -> tuple[str, ...]:
        gone = (f"the checkout does not have the list's job {name}" for name in self.gone)
        return (*(job.difference for job in self.jobs if job.difference), *gone)

    def select(self, patterns: Sequence[str]) -> tuple[CiJob, ...]:
        """The jobs whose names have one of the texts in them, or match it; without any, all.
        Raises UsageError for one that no job has."""
        for pattern in patterns:
            if not any(_matches(job.name, pattern) for job in self.jobs):
                raise UsageError(
                    f"no job of the checkout's Arm CI matches {pattern!r}",
                    hint="--list names all jobs",
                )
        chosen = (j for j in self.jobs if any(_matches(j.name, p) for p in patterns))
        return tuple(chosen) if patterns else self.jobs


def _matches(name: str, pattern: str) -> bool:
    return pattern in name or fnmatchcase(name, pattern)


def read_jobs(root: Path, path: Path = _LIST) -> CiJobs:
    """The Arm jobs of the checkout ``root``. Raises UsageError when its workflow files cannot be
    read, TargetError when the list is malformed."""
    known = checked_document(JobList, strict_yaml.read(path))
    found: list[CiJob] = []
    aside: dict[str, str] = {}
    for workflow in known.workflows:
        for name, place, script in _read(root, workflow, known.images):
            if reason := next((r for p, r in known.aside.items() if fnmatchcase(name, p)), ""):
                aside[name] = reason
            else:
                listed = known.jobs.get(name, UNKNOWN)
                found.append(CiJob(name, place, script, _digest(root, script), listed))
    gone = tuple(name for name in known.jobs if name not in {job.name for job in found})
    return CiJobs(tuple(found), aside, gone, known.environment)


def _read(root: Path, workflow: str, images: str) -> list[tuple[str, str, str]]:
    try:
        return list(_arm_jobs(root, workflow, images))
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(
            f"{root / _FOLDER / workflow} is not a workflow file that can be read: {error}",
            hint="--executorch names a whole checkout of ExecuTorch, with its .github folder",
            path=root,
        ) from error


def _arm_jobs(root: Path, workflow: str, images: str) -> Iterator[tuple[str, str, str]]:
    """Name, place and script of each Arm job of a workflow file."""
    text, document = _workflow(root, workflow)
    for name, job in document["jobs"].items():
        called: Iterable[Any] = [job]
        inputs: dict[str, Any] = {}
        if str(job.get("uses", "")).startswith(f"./{_FOLDER}/"):
            _, reusable = _workflow(root, Path(job["uses"]).name)
            called = reusable["jobs"].values()
            inputs = {**_defaults(reusable), **job.get("with", {})}
        place = f"{workflow}:{text[: text.find(f'{chr(10)}  {name}:')].count(chr(10)) + 2}"
        for inner in called:
            given = inner.get("with", {})
            if re.search(images, str(given.get("docker-image", ""))):
                for values in _matrix(inner.get("strategy", {}).get("matrix", {}), inputs):
                    words = (Path(v).parent.name if "/" in v else v for v in values.values())
                    script = _filled(str(given.get("script", "")), {**inputs, **values})
                    yield "/".join([name, *words]), place, script


def _filled(script: str, values: Mapping[str, Any]) -> str:
    return _PLACEHOLDER.sub(lambda m: str(values.get(m[1], m[0])), script).strip("\n")


def _workflow(root: Path, name: str) -> tuple[str, Any]:
    text = (root / _FOLDER / name).read_text("utf-8")
    return text, yaml.safe_load(text)


def _defaults(workflow: Any) -> dict[str, Any]:
    called = (workflow.get("on") or workflow[True])["workflow_call"]  # YAML 1.1 reads "on" as true
    inputs = (called or {}).get("inputs") or {}
    return {key: given.get("default") for key, given in inputs.items()}


def _matrix(matrix: Mapping[str, Any], inputs: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Each combination of values; the rows of ``include``, if there is nothing else."""
    axes = {key: _values(given, inputs) for key, given in matrix.items() if key not in _NO_AXES}
    if axes:
        for values in itertools.product(*axes.values()):
            yield dict(zip(axes, values, strict=True))
        return
    for row in matrix.get("include", [{}]):
        yield {key: str(value) for key, value in row.items()}


def _values(given: Any, inputs: Mapping[str, Any]) -> list[str]:
    if isinstance(given, str) and (found := _FROM_JSON.fullmatch(given.strip())):
        given = json.loads(str(inputs[found[1]]))
    return list(map(str, given))


def _digest(root: Path, script: str) -> str:
    """Changes with the commands and with the scripts that they name; of a script with one function
    for each job, with that function alone."""
    words = sorted(set(re.findall(r"\w+", script)))
    facts: list[object] = [script]
    for name in sorted(set(_SCRIPT.findall(script))):
        text = text_of(root / name)
        found = (
            re.search(_FUNCTION.format(word), text, re.DOTALL | re.MULTILINE) for word in words
        )
        facts += [name, *([match[0] for match in found if match] or [text])]
    return key_of(facts)[:12]
