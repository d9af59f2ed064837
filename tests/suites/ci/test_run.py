"""Protects that a job runs its own commands in a copy of the checkout, on the stand-in, and passes
only with evidence."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.export.checkout import CheckoutExporter
from harness.export.exporter import ExporterFacts
from harness.suites.ci.jobs import CiJobs, Replaced, read_jobs
from harness.suites.ci.results import Exactness, JobResult, JobVerdict
from harness.suites.ci.run import CiOptions, kept_results, run_jobs
from tests.firmware.executorch.conftest import Source
from tests.firmware.executorch.small import git
from tests.link.workspace import enter
from tests.suites.standin.conftest import U55, Guest

_ENDS = "PTE @ 0x0 [----ET12]\\nProgram complete, exiting.\\n\\4"
_GOOD = "TEST: BundleIO index[0] Test_result: PASS\\n" + _ENDS


class Ci:
    """One job, ``arm``, whose script a test chooses."""

    def __init__(self, small: Source, folder: Path) -> None:
        self.source, self._list = small, folder / "jobs.yaml"
        self._packages = folder / "packages"
        self._packages.mkdir()

    def jobs(self, script: str, **listed: Any) -> CiJobs:
        job = {"with": {"docker-image": "ci-image:arm-sdk", "script": script}}
        workflow = self.source.root / ".github/workflows/pull.yml"
        workflow.parent.mkdir(parents=True, exist_ok=True)
        workflow.write_text(yaml.safe_dump({"jobs": {"arm": job}}))
        known = {
            "workflows": ["pull.yml"],
            "images": "arm-sdk",
            "aside": {},
            "environment": [],
            "jobs": {"arm": {"commands": "0", **listed}},
        }
        self._list.write_text(yaml.safe_dump(known))
        return read_jobs(self.source.root, self._list)

    def options(self, *, resume: bool = False) -> CiOptions:
        root = self.source.root
        facts = ExporterFacts(str(root), "0", "main", False, "1", "1")
        exporter = CheckoutExporter(root, self._packages, "", {}, "", facts)
        return CiOptions(self.source.find(), exporter, resume)

    def run(self, script: str, *, resume: bool = False, **listed: Any) -> JobResult:
        jobs = self.jobs(script, **listed)
        options = self.options(resume=resume)
        (result,) = run_jobs(jobs.jobs, jobs.environment, options, lambda _text: None)
        return result


@pytest.fixture
def ci(small: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ci:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    return Ci(small, tmp_path)


def fvp(elf: Path) -> str:
    """A call as scripts make it: the status of the model is lost in the pipe."""
    return (
        f"cp {elf} program.elf; {U55} -C mps3_board.uart0.out_file=- "
        "-C mps3_board.uart0.shutdown_on_eot=1 --timelimit 20 -a program.elf 2>&1 | tee log || true"
    )


def test_a_job_that_runs_a_program_to_its_end_passes(ci: Ci, guest: Guest) -> None:
    result = ci.run(fvp(guest(TEXT=f'"{_GOOD}"', LOOP=1)))
    assert (result.verdict, result.reasons) == (JobVerdict.PASSED, ())
    assert [call.model for call in result.calls] == [U55]
    assert result.calls[0].exactness is Exactness.NOTHING  # its runner prints no error


def test_a_program_that_says_nothing_is_not_a_pass(ci: Ci, guest: Guest) -> None:
    result = ci.run(fvp(guest(TEXT='"\\4"', LOOP=1)))
    assert (result.verdict, result.status) == (JobVerdict.UNPROVEN, 0)
    assert result.reasons[0].startswith("simulation 1: NO_VERDICT")


def test_a_program_that_the_standin_refuses_is_not_a_pass(ci: Ci, guest: Guest) -> None:
    result = ci.run(fvp(guest(code=0x12000000)))
    assert (result.verdict, result.status) == (JobVerdict.UNPROVEN, 0)
    assert "the stand-in refused a program: " in result.reasons[0]
    assert "is not in memory that this machine has" in result.reasons[0]


def test_a_job_without_a_simulation_is_not_a_pass(ci: Ci) -> None:
    assert ci.run("echo PASS").reasons == ("nothing was simulated",)
    assert ci.run("echo PASS", simulates=False).verdict is JobVerdict.PASSED


def test_a_command_after_a_job_is_judged_and_does_not_fail_it(ci: Ci, guest: Guest) -> None:
    """A job that only builds: what it built is run after it."""
    built = ci.run("echo built", then=f"{fvp(guest(code=0x12000000))}; false")
    assert (built.verdict, built.status) == (JobVerdict.UNPROVEN, 0)
    assert "is not in memory that this machine has" in built.reasons[0]
    good = ci.run("echo built", then=fvp(guest(TEXT=f'"{_GOOD}"', LOOP=1)))
    assert good.verdict is JobVerdict.PASSED, good.reasons
    assert ci.run("false", then="true").verdict is JobVerdict.FAILED


def test_a_job_of_zephyr_is_built_in_the_named_workspace(
    ci: Ci, small_zephyr: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(small_zephyr, monkeypatch)
    script = (
        "cd zephyr_dev_root; s=modules/lib/executorch/zephyr/samples/hello-executorch; "
        'test "$(realpath $s)" = "$(realpath ../zephyr/samples/hello-executorch)"; '
        "test -x modules/lib/executorch/examples/arm/arm-scratch/FVP-corstone300/models/"
        f"Linux64_GCC-9.3/{U55}; "
        "west build -b mps3/corstone300/fvp $s -- -DET_PTE_FILE_PATH=none || true; "
        "grep -q EXTRA_ZEPHYR_MODULES:.*=$(dirname $PWD) build/CMakeCache.txt"
    )
    result = ci.run(script, simulates=False, zephyr="zephyr-corstone-300")
    log = Path(result.log).read_text()
    assert "Could not find ExecuTorch model at ET_PTE_FILE_PATH: none" in log, log
    assert result.verdict is JobVerdict.PASSED, log


def test_a_job_of_zephyr_without_a_workspace_says_so(
    ci: Ci, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    result = ci.run("false", zephyr="zephyr-corstone-300")
    assert result.verdict is JobVerdict.NOT_RUN
    assert "ZEPHYR_BASE is not set" in result.reasons[0]


def test_a_line_that_sets_up_a_machine_has_another_in_its_place(ci: Ci) -> None:
    jobs = ci.jobs("setup --all\necho on", simulates=False)
    rules = [Replaced(line="^setup", provided="a machine", instead="echo mine")]
    (result,) = run_jobs(jobs.jobs, rules, ci.options(), lambda _text: None)
    assert Path(result.log).read_text() == "mine\non\n"
    assert result.provided == ("a machine",)


def test_a_script_that_fails_fails_with_its_last_words(ci: Ci) -> None:
    result = ci.run("echo 'RuntimeError: no a.c'\necho done\nfalse\necho on", simulates=False)
    assert (result.verdict, result.status) == (JobVerdict.FAILED, 1)
    assert result.reasons == ("ExecuTorch's own script ended with 1: RuntimeError: no a.c",)


def test_a_script_that_fails_to_link_fails_with_the_symbol(ci: Ci) -> None:
    """As of a source file that is in no CMake target; west's last line only names the command."""
    ld = "arm-none-eabi-ld: a.c:(.text.main+0x4): undefined reference to \\`add_out'"
    result = ci.run(f'echo "{ld}"; echo "FATAL ERROR: cmake --build"; exit 1', simulates=False)
    (reason,) = result.reasons
    assert reason.startswith("ExecuTorch's own script ended with 1: ")
    assert "add_out is needed by" in reason


def test_the_checkout_is_only_read(ci: Ci) -> None:
    root = ci.source.root
    result = ci.run(
        "test $(basename $PWD) = executorch; touch new; echo edit >> version.txt", simulates=False
    )
    assert result.verdict is JobVerdict.PASSED
    assert git(root, "status", "--porcelain").strip() == "?? .github/"  # this test's
    again = ci.run("test -e new; ! grep edit version.txt; cmake --version", simulates=False)
    assert again.verdict is JobVerdict.PASSED, again.reasons


def test_a_checkout_without_git_and_with_its_parts_inside(ci: Ci) -> None:
    root = ci.source.root
    shutil.rmtree(root / ".git")
    (root / "third-party/json/old").mkdir(parents=True)
    (root / "third-party/json/old/file").write_text("of another version")
    result = ci.run(
        "test -e third-party/json/CMakeLists.txt; test ! -e third-party/json/old", simulates=False
    )
    assert result.verdict is JobVerdict.PASSED, result.reasons


def test_every_python_of_a_job_can_import_torchvision(ci: Ci) -> None:
    """Beside a torch for the CPU, where "operator torchvision::nms does not exist" otherwise."""
    script = 'python3 -c "import sys; print(type(sys.meta_path[0]).__name__)"'
    if importlib.util.find_spec("torchvision") is not None:
        script += '; python3 -c "import torchvision; torchvision.models.mobilenet_v2()"'
    result = ci.run(script, simulates=False)
    assert result.verdict is JobVerdict.PASSED, result.reasons
    assert Path(result.log).read_text().splitlines()[0] == "Finder"


def test_cmake_gets_the_definitions_when_it_configures(ci: Ci) -> None:
    script = (
        "mkdir -p p; echo 'cmake_minimum_required(VERSION 3.20)\nproject(p NONE)\n"
        'message(NOTICE "fetch ${FETCH_ETHOS_U_CONTENT} ${HIL_REGIONS}")\' > p/CMakeLists.txt; '
        "cmake -S p -B b; cmake -S p -B c -DN=ethos-u85-256; cmake --build b"
    )
    result = ci.run(script, simulates=False)
    assert result.verdict is JobVerdict.PASSED, result.reasons
    lines = Path(result.log).read_text().splitlines()
    assert "fetch OFF " in lines
    assert any(line.startswith("fetch OFF BROM=0x10000000") for line in lines)


@pytest.mark.parametrize(
    ("listed", "reason"),
    [
        ({"cannot": "its weights are elsewhere"}, "its weights are elsewhere"),
        (
            {"downloads": "its weights come from elsewhere"},
            "its weights come from elsewhere: --downloads runs it all the same",
        ),
        ({"packages": ["no-such-package"]}, "needs the Python package no-such-package"),
    ],
)
def test_a_job_that_cannot_run_says_why(ci: Ci, listed: dict[str, Any], reason: str) -> None:
    result = ci.run("false", **listed)
    assert result.verdict is JobVerdict.NOT_RUN
    assert result.reasons[0].startswith(reason)


def test_results_are_kept_for_the_content_of_the_checkout(ci: Ci) -> None:
    script = "true"
    assert ci.run(script, simulates=False).verdict is JobVerdict.PASSED
    jobs = ci.jobs(script, simulates=False)
    (kept,) = kept_results(jobs.jobs, ci.options().checkout)
    assert kept.verdict is JobVerdict.PASSED
    os.utime(kept.log, (0, 0))
    ci.run(script, resume=True, simulates=False)
    assert os.stat(kept.log).st_mtime == 0  # it was not run again
    (ci.source.root / "version.txt").write_text("9.9\n")
    (unknown,) = kept_results(jobs.jobs, ci.options().checkout)
    assert unknown.reasons == ("not run yet",)


def test_edited_files_are_named(ci: Ci) -> None:
    (ci.source.root / "version.txt").write_text("9.9\n")
    result = ci.run("true", simulates=False)
    assert any(note.startswith("edited: ") and "version.txt" in note for note in result.notes)


def test_an_edited_checkout_is_compared_with_its_commit(ci: Ci, guest: Guest) -> None:
    """What a sample printed; ExecuTorch's job of it compares nothing."""
    place = "I [executorch:a.cpp:1 main()]"
    tensor = f"{place}   output[0]: tensor scalar_type=Float numel=1\\n"
    printed = f"{tensor}{place}     [0] = {{}}\\n{_ENDS}"  # as a string of C
    one, two = (fvp(guest(TEXT=f'"{printed.format(value)}"', LOOP=1)) for value in (1.5, 2.0))
    jobs = ci.jobs(f"if test -e edited; then {one}; else {two}; fi")
    git(ci.source.root, "add", "--all")
    git(ci.source.root, "commit", "-qm", "a workflow")

    def run() -> JobResult:
        (result,) = run_jobs(jobs.jobs, jobs.environment, ci.options(), lambda _text: None)
        return result

    clean = run()
    assert (clean.verdict, clean.reasons) == (JobVerdict.PASSED, ())
    (ci.source.root / "other").touch()
    assert run().verdict is JobVerdict.PASSED
    (ci.source.root / "edited").touch()
    other = run()
    assert (other.verdict, other.status) == (JobVerdict.UNPROVEN, 0)
    assert other.reasons == (f"simulation 1 printed other outputs than at {clean.commit}",)


def test_pytest_of_a_job_is_observed(ci: Ci) -> None:
    test = "def test_a(): pass\ndef test_b(): raise ValueError('planted')\n"
    result = ci.run(f'printf "{test}" > test_x.py; pytest -c /dev/null test_x.py', simulates=False)
    assert result.verdict is JobVerdict.FAILED
    assert result.tests == {"passed": 1, "failed": 1}


def test_a_file_of_tests_that_lacks_a_package_is_not_a_pass(ci: Ci) -> None:
    files = 'echo "def test_a(): pass" > test_x.py; echo "import absent_package" > test_y.py'
    result = ci.run(f"{files}; pytest -c /dev/null test_x.py test_y.py", simulates=False)
    assert (result.verdict, result.status) == (JobVerdict.UNPROVEN, 1)
    assert result.tests == {"passed": 1, "unsupported": 1}
    assert "needs absent_package, which is not installed" in result.reasons[0]
