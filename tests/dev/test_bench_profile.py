"""Protects what a profile says: a stage for each sample, and the difference to the last one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.main import main
from harness.dev.bench.profile import Found, Profiles, last_profiles
from harness.errors import InfraError
from harness.system.sampling import OTHER, Profile, Sampler, stage_of


@pytest.mark.parametrize(("frames", "stage"), [
    ([("/x/json/decoder.py", "decode")], OTHER),
    ([("/x/torch/export/_trace.py", "_export"), ("/s/executorch/exir/program.py", "to_edge")],
     "lower"),
    ([("<frozen importlib._bootstrap>", "_load"), ("/s/torch/export/__init__.py", "<module>")],
     "imports"),
    ([("/s/numpy/core.py", "equal"), ("/s/executorch/backends/test/harness/tester.py",
                                      "_assert_outputs_equal")], "compare"),
    ([("/x/harness/ethosu/u55/engine.py", "run"), ("/x/_pytest/python.py", "runtest")],
     "NPU model"),
])  # fmt: skip
def test_a_sample_has_the_stage_it_was_taken_in(frames: list[tuple[str, str]], stage: str) -> None:
    assert stage_of(frames) == stage


def test_a_process_is_sampled_to_the_last_second_of_its_processor_time() -> None:
    """All of it is in some stage, that of children apart."""
    sampler = Sampler()
    sampler.start()
    sum(number * number for number in range(1_000_000))
    subprocess.run([sys.executable, "-c", "sum(range(3000000))"], check=True)
    profile = sampler.stop()
    assert set(profile.stages) == {OTHER, "collect"} or "collect" in profile.stages
    assert profile.cpu > 0
    assert profile.children > 0
    assert profile.wall > 0


def test_the_last_profile_of_each_subject_is_found_again(tmp_path: Path) -> None:
    """What is no profile, half a line of a process that was killed, is passed over."""
    kept = tmp_path / "profile.jsonl"
    assert last_profiles(kept) == {}
    old, new = Profile({"lower": 1.0}, 0.5, 2.0), Profile({"lower": 0.25, "Vela": 1.0}, 0.5, 2.0)
    entries = [{"profiles": {what: one.as_json()}} for what, one in
               (("warm run", old), ("NPU network", old), ("warm run", new))]  # fmt: skip
    kept.write_text("".join(json.dumps(e) + "\n" for e in entries) + '{"profiles": {"wa')
    assert last_profiles(kept) == {"warm run": new, "NPU network": old}
    lines = list(Found("warm run", new, old).lines())
    assert "(-0.750)" in next(line for line in lines if "lower" in line)
    assert Profiles((Found("warm run", new, None),), kept).text().endswith(str(kept))


def test_what_fails_is_no_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.dev.bench import profile

    with pytest.raises(InfraError, match="what was to be profiled ended with 3: oh"):
        profile._run(["-c", "import sys; sys.stderr.write('oh'); sys.exit(3)"])


def test_a_bench_has_no_profile_of_its_own() -> None:
    done = CliRunner().invoke(main, ["bench", "npu", "--profile"])
    assert done.exit_code == 2
    assert "--profile is of its own four subjects" in done.output
