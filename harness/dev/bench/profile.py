"""``hil bench --profile``: where the time goes, so that the next change can be compared.

Four things: a test of ExecuTorch's suite for the Ethos-U55 (from nothing), a warm run, a collection
of this project's tests, and a network on the NPU model. Each is a process that is sampled
(``system.sampling``). What was found is added to ``.hil/bench/profile.jsonl``, with the commit and
what had been found before beside it. Run as a module it is the process that is sampled.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.conformance.recorder import PROFILE
from harness.errors import InfraError
from harness.system.files import write_whole
from harness.system.json_file import MALFORMED
from harness.system.paths import project_root, state_dir
from harness.system.progress import Progress
from harness.system.sampling import Profile, Sampler, profile_from, save

if TYPE_CHECKING:
    from harness.export.program import Program

_SUITE_TEST = "test_add_tensor_u55_INT and 4d_ones_1"
_RUN = ("run", "corstone-300-m55", "ds_cnn")
_NPU = "npu"  # no module
_HIL = "harness.cli.main"  # `harness` itself would end this process
SUBJECTS = ("conformance test", "warm run", "pytest collection", "NPU network")


@dataclass(frozen=True)
class Found:
    """``before``: of the same on this machine, the last time."""

    what: str
    now: Profile
    before: Profile | None

    def lines(self) -> Iterator[str]:
        then = self.before
        yield _line(self.what, self.now.wall, None if then is None else then.wall, "of time")
        stages = {**dict.fromkeys(then.stages if then else (), 0.0), **self.now.stages}
        for stage, seconds in stages.items():
            was = None if then is None else then.stages.get(stage, 0.0)
            yield _line(f"  {stage}", seconds, was, "of processor")
        was = None if then is None else then.children
        yield _line("  processes it waited for", self.now.children, was, "of processor")
        was = None if then is None else then.rest
        yield _line("  waiting, or not alone", self.now.rest, was, "of time")


@dataclass(frozen=True)
class Profiles:
    found: tuple[Found, ...]
    kept: Path

    def text(self) -> str:
        lines = [line for one in self.found for line in one.lines()]
        return "\n".join([*lines, f"kept in {self.kept}"])

    def summary(self) -> dict[str, Any]:
        return {
            "profiles": {
                one.what: {
                    "now": one.now.as_json(),
                    "before": None if one.before is None else one.before.as_json(),
                }
                for one in self.found
            },
            "kept": str(self.kept),
        }


def measure_profiles(progress: Progress) -> Profiles:
    """Raises InfraError when one of the processes fails."""
    kept = state_dir() / "bench" / "profile.jsonl"
    before = last_profiles(kept)
    found = []
    for what in SUBJECTS:
        progress(f"profiling: {what}")
        found.append(Found(what, _profiled(what), before.get(what)))
    _keep(kept, {one.what: one.now for one in found})
    return Profiles(tuple(found), kept)


def last_profiles(kept: Path) -> dict[str, Profile]:
    """The newest of each subject; lines that are no profiles are passed over."""
    found: dict[str, Profile] = {}
    with suppress(FileNotFoundError):
        for line in kept.read_text("utf-8").splitlines():
            with suppress(*MALFORMED):
                entry = json.loads(line)
                found |= {w: profile_from(p) for w, p in entry["profiles"].items()}
    return found


def _keep(kept: Path, profiles: Mapping[str, Profile]) -> None:
    commit = subprocess.run(
        ["git", "-C", project_root(), "describe", "--always", "--dirty"],
        capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    entry = {
        "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": commit,
        "profiles": {what: profile.as_json() for what, profile in profiles.items()},
    }
    kept.parent.mkdir(parents=True, exist_ok=True)
    earlier = kept.read_text("utf-8") if kept.exists() else ""
    write_whole(kept, f"{earlier}{json.dumps(entry)}\n")


def _profiled(what: str) -> Profile:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "profile.json")
        if what == "conformance test":
            words = ["-m", "harness", "conformance", "ethos-u55", "-k", _SUITE_TEST, "--no-cache"]
            _run([*words, "--workers", "1"], **{PROFILE: str(out)})
        elif what == "warm run":
            _run(["-m", "harness", *_RUN])
            _run(["-m", __name__, str(out), _HIL, *_RUN])
        elif what == "pytest collection":
            words = ["pytest", "--collect-only", "-q", str(project_root() / "tests")]
            _run(["-m", __name__, str(out), *words])
        else:
            _run(["-m", __name__, str(out), _NPU])
        return profile_from(json.loads(out.read_text()))


def _run(words: list[str], **variables: str) -> None:
    done = subprocess.run(
        [sys.executable, *words], env={**os.environ, **variables}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip())[-500:]
        raise InfraError(f"what was to be profiled ended with {done.returncode}: {said}")


def _npu_network() -> None:
    """MobileNet on the Ethos-U55's model, from the reading of its stream on."""
    from harness.ethosu.model import Network

    for delegate in (program := _npu_program()).delegates:
        network = Network((program.directory / delegate.blob).read_bytes())
        inputs = [(program.directory / name).read_bytes() for name in delegate.sets[0].inputs]
        for _ in range(20):
            network.run(inputs)


def _npu_program() -> Program:
    from harness.case.models import find_model
    from harness.export.batch import export
    from harness.export.request import ExportRequest

    (result,) = export([ExportRequest(find_model("mobilenet_v1_025"), "ethos-u55-128")])
    return result.unwrap()


def _sampled(out: Path, module: str, *words: str) -> None:
    """In the process that is sampled."""
    sampler = Sampler()
    status: object = 0
    if module == _NPU:
        _npu_program()  # from the cache, from now on
    sampler.start()
    try:
        if module == _NPU:
            _npu_network()
        else:
            sys.argv = [module, *words]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as error:
        status = error.code
    finally:
        save(sampler.stop(), out)
    sys.exit(status)  # type: ignore[arg-type]


def _line(what: str, seconds: float, before: float | None, unit: str) -> str:
    was = "" if before is None else f"   was {before:8.3f}  ({seconds - before:+.3f})"
    return f"{what:28}{seconds:9.3f} s {unit:13}{was}".rstrip()


if __name__ == "__main__":
    _sampled(Path(sys.argv[1]), *sys.argv[2:])
