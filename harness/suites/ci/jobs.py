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
from collections.abc import Iterator, Mapping, Sequence
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
_PLACEHOLDER = re.compile(r"\$\{\{\s*(matrix|inputs)\.([\w-]+)\s*\}\}")
_FROM_JSON = re.compile(r"\$\{\{\s*fromJSON\((.*)\)\s*\}\}")
_SCRIPT = re.compile(r"(?<![\w.-])(?:[\w.-]+/)+[\w.-]+\.(?:sh|py)\b")
_FUNCTION = r"^{}\(\) \{{.*?^\}}$"  # of a shell script; all of it if it has no such function


@dataclass(frozen=True, kw_only=True)
class Listed(Data):
    """A row of jobs.yaml. ``overlay``: jobs with the same one share a copy of the checkout with its
    builds. ``packages``: Python packages that the job's own set-up would have installed."""

    commands: Text
    overlay: Text = "cortex-m55"
    simulates: bool = True
    packages: tuple[Text, ...] = ()
    files: tuple[Text, ...] = ()
    cannot: Text | None = None
    note: Text | None = None


@dataclass(frozen=True, kw_only=True)
class Replaced(Data):
    """A line of a job that sets up its machine. ``by``: what runs instead, if anything does."""

    line: Text
    provided: Text
    by: Text | None = None


@dataclass(frozen=True, kw_only=True)
class JobList(Data):
    workflows: tuple[Text, ...]
    images: Text
    aside: dict[Text, Text]  # reasons, by pattern of names
    environment: tuple[Replaced, ...]
    jobs: dict[Text, Listed]


@dataclass(frozen=True)
class Job:
    """``place``: file and line; ``script``: its commands, whole; ``commands``: their digest, with
    the scripts that they call. ``listed``: None for a job that the list does not know."""

    name: str
    place: str
    script: str
    commands: str
    listed: Listed | None

    @property
    def changed(self) -> bool:
        return self.listed is not None and self.listed.commands != self.commands

    def steps(self, replaced: Sequence[Replaced]) -> tuple[str, tuple[str, ...]]:
        """The script without the lines that set up a machine, and what stands for these."""
        lines, provided = [], []
        for line in self.script.splitlines():
            rule = next((r for r in replaced if re.search(r.line, line)), None)
            if rule is None:
                lines.append(line)
                continue
            provided.append(rule.provided)
            if rule.by is not None:
                lines.append(re.sub(rule.line, rule.by, line))
        return "\n".join(lines) + "\n", tuple(dict.fromkeys(provided))


@dataclass(frozen=True)
class Jobs:
    """``aside``: reasons, by name of a job that is left out. ``gone``: listed, not in the
    checkout."""

    jobs: tuple[Job, ...]
    aside: Mapping[str, str]
    gone: tuple[str, ...]
    environment: tuple[Replaced, ...]

    @property
    def differences(self) -> tuple[str, ...]:
        """Where the list does not fit the checkout, in sentences."""
        return (
            *(
                f"the checkout has a job that the list does not know: {job.name} ({job.place})"
                for job in self.jobs
                if job.listed is None
            ),
            *(
                f"the commands of {job.name} ({job.place}) have changed since the list was written"
                for job in self.jobs
                if job.changed
            ),
            *(f"the list has a job that the checkout does not have: {name}" for name in self.gone),
        )

    def select(self, patterns: Sequence[str]) -> tuple[Job, ...]:
        """The jobs whose names have one of the texts in them, or match it. Raises UsageError."""
        for pattern in patterns:
            if not any(_matches(job.name, pattern) for job in self.jobs):
                reason = next((r for n, r in self.aside.items() if _matches(n, pattern)), None)
                raise UsageError(
                    f"no job of the checkout's Arm CI matches {pattern!r}"
                    + (f": {reason}" if reason else ""),
                    hint="--list names all jobs",
                )
        chosen = (j for j in self.jobs if any(_matches(j.name, p) for p in patterns))
        return tuple(chosen) if patterns else self.jobs


def _matches(name: str, pattern: str) -> bool:
    return pattern in name or fnmatchcase(name, pattern)


def read_jobs(root: Path, path: Path = _LIST) -> Jobs:
    """The Arm jobs of the checkout ``root``. Raises UsageError when its workflow files cannot be
    read, TargetError when the list is malformed."""
    known = checked_document(JobList, strict_yaml.read(path))
    found: list[Job] = []
    aside: dict[str, str] = {}
    for workflow in known.workflows:
        for name, place, script in _expanded(root, workflow, known.images):
            reason = next((r for p, r in known.aside.items() if fnmatchcase(name, p)), None)
            if reason is not None:
                aside[name] = reason
                continue
            found.append(Job(name, place, script, _digest(root, script), known.jobs.get(name)))
    names = {job.name for job in found}
    gone = tuple(name for name in known.jobs if name not in names)
    return Jobs(tuple(found), aside, gone, known.environment)


def _expanded(root: Path, workflow: str, images: str) -> Iterator[tuple[str, str, str]]:
    """Name, place and script of each Arm job of a workflow file."""
    text, jobs = _workflow(root, workflow)
    for name, job in jobs.items():
        place = f"{workflow}:{_line(text, name)}"
        local = str(job.get("uses", ""))
        if local.startswith(f"./{_FOLDER}/"):
            called = root / local
            inputs = {**_defaults(root, called.name), **job.get("with", {})}
            for inner in _workflow(root, called.name)[1].values():
                for matrix, values in _matrix(inner, inputs):
                    if script := _arm_script(inner, {**matrix, **inputs}, images):
                        yield "/".join([name, *values]), place, script
            continue
        for matrix, values in _matrix(job, {}):
            if script := _arm_script(job, matrix, images):
                yield "/".join([name, *values]), place, script


def _workflow(root: Path, name: str) -> tuple[str, dict[str, Any]]:
    path = root / _FOLDER / name
    try:
        text = path.read_text("utf-8")
        jobs = yaml.safe_load(text)["jobs"]
        if not all(isinstance(job, dict) for job in jobs.values()):
            raise TypeError("a job is not a mapping")
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} is not a workflow file that can be read: {error}",
            hint="--executorch names a whole checkout of ExecuTorch, with its .github folder",
            path=path,
        ) from error
    return text, dict(jobs)


def _line(text: str, job: str) -> int:
    found = re.search(rf"^  {re.escape(job)}:", text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def _defaults(root: Path, name: str) -> dict[str, Any]:
    document = yaml.safe_load((root / _FOLDER / name).read_text("utf-8"))
    triggers = document.get("on", document.get(True, {}))  # YAML 1.1 reads "on" as true
    called = (triggers.get("workflow_call") or {}) if isinstance(triggers, dict) else {}
    return {key: given.get("default") for key, given in (called.get("inputs") or {}).items()}


def _matrix(
    job: Mapping[str, Any], inputs: Mapping[str, Any]
) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Each combination, and the values that name it."""
    matrix = dict(job.get("strategy", {}).get("matrix", {}))
    included = [dict(row) for row in matrix.pop("include", ())]
    axes = {key: _values(values, inputs) for key, values in matrix.items() if key != "exclude"}
    if not axes:
        for row in included or [{}]:
            filled = {key: str(value) for key, value in row.items()}
            yield filled, [Path(v).parent.name if "/" in v else v for v in filled.values()]
        return
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True)), list(values)


def _values(values: Any, inputs: Mapping[str, Any]) -> list[str]:
    if isinstance(values, str) and (found := _FROM_JSON.fullmatch(values.strip())):
        key = found[1].strip().removeprefix("inputs.")
        values = json.loads(str(inputs.get(key, "[]")))
    return [str(value) for value in values] if isinstance(values, list) else [str(values)]


def _arm_script(job: Mapping[str, Any], values: Mapping[str, Any], images: str) -> str:
    given = job.get("with", {})
    if not re.search(images, str(given.get("docker-image", ""))):
        return ""
    return _PLACEHOLDER.sub(
        lambda m: str(values.get(m[2], m[0])), str(given.get("script", ""))
    ).strip("\n")


def _digest(root: Path, script: str) -> str:
    """Changes with the commands and with the scripts that they name; of a script with one function
    for each job, with that function alone."""
    words = set(re.findall(r"\w+", script))
    facts = [script]
    for name in sorted(set(_SCRIPT.findall(script))):
        text = text_of(root / name)
        bodies = [
            found[0]
            for word in sorted(words)
            if (found := re.search(_FUNCTION.format(word), text, re.MULTILINE | re.DOTALL))
        ]
        facts += [name, *(bodies or [text])]
    return key_of(facts)[:12]
