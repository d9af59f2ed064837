"""The export process: whatever a model's file does to it fails that model alone.

The process is real; only what lowers a model is a double (``double`` in conftest.py), which runs
the model's file and needs no torch.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.config.models import ModelSource, find_model
from harness.core.errors import HarnessError, InfraError
from harness.core.verdict import Verdict
from harness.export import process
from harness.export.batch import export
from harness.export.process import ExportProcess, ExportProcessFailed
from harness.export.request import ExportRequest
from harness.system.files import DiskError
from tests.processes import ends

Write = Callable[..., ModelSource]
NAMES = "ModelUnderTest = ModelInputs = None\n"
C_EXIT = "import ctypes; ctypes.CDLL(None).exit(0)"
RUBBISH = """
import os
for descriptor in {int(name) for name in os.listdir("/proc/self/fd")} - {0, 1, 2}:
    try:
        os.write(descriptor, b"\\xffthis is no answer")
    except OSError:
        pass
"""
FORK = "import os\nprint('the copy' if not os.fork() else 'the process itself', flush=True)"

ENDS = {
    "os._exit": ("import os; print('last words'); os._exit(0)", "ended with status 0"),
    "exit of C": (C_EXIT, "ended with status 0"),
    "a signal": ("import os; os.kill(os.getpid(), 11)", "was ended by signal 11 (SIGSEGV)"),
    "memory": ("import os; os.kill(os.getpid(), 9)", "was ended by signal 9 (SIGKILL)"),
    "rubbish": (RUBBISH, "wrote something that is no answer"),
}


@pytest.fixture(autouse=True)
def _double(double: Callable[..., None], own_home: Path) -> None:
    double()


def failure(source: ModelSource) -> HarnessError:
    (result,) = export([ExportRequest(source)])
    assert result.error is not None
    return result.error


@pytest.mark.parametrize("how", ENDS)
def test_only_the_model_that_ends_the_process_fails(user_model: Write, how: str) -> None:
    code, message = ENDS[how]
    bad = user_model(f"{code}\n{NAMES}", "bad.py")
    requests = [ExportRequest(m) for m in (find_model("add"), bad, find_model("mul"))]
    first, middle, last = export(requests)
    assert isinstance(middle.error, ExportProcessFailed)
    assert message in middle.error.message
    assert middle.error.message.startswith("the export of bad: the export process ")
    assert middle.error.verdict is Verdict.EXPORT_ERROR
    assert (first.error, last.error) == (None, None)


def test_a_copy_that_the_file_makes_of_its_process_does_not_export(user_model: Write) -> None:
    """Both would write the program."""
    (result,) = export([ExportRequest(user_model(f"{FORK}\n{NAMES}"))])
    assert result.error is None
    assert "the process itself" in (result.unwrap().directory / "export.log").read_text()


def test_torch_is_imported_once_and_changed_for_one_model_alone(user_model: Write) -> None:
    """Each model is exported by a fork of one process, whose socket the fork does not have: three
    streams, its own socket, and the listing itself."""
    code = (
        "import os, sys\n"
        "print(os.getppid(), len(os.listdir('/proc/self/fd')), 'torch' in sys.modules)\n"
    )
    changes = code + "sys.modules['torch'] = None; os.open('/dev/null', os.O_RDONLY)\n" + NAMES
    files = [user_model(changes, f"{name}.py") for name in ("one", "two")]
    programs = [result.unwrap() for result in export([ExportRequest(f) for f in files])]
    first, second = ((p.directory / "export.log").read_text() for p in programs)
    assert first == second
    assert first.endswith(" 5 False\n")


def test_a_file_that_ends_the_process_it_is_a_copy_of(user_model: Write) -> None:
    """The next model has another."""
    bad = user_model(
        f"import os, time; os.kill(os.getppid(), 9); time.sleep(60)\n{NAMES}", "bad.py"
    )
    models = (find_model("add"), bad, find_model("mul"))
    errors = [result.error for result in export([ExportRequest(m) for m in models])]
    assert isinstance(errors[1], ExportProcessFailed)
    assert "was ended by signal 9 (SIGKILL)" in errors[1].message
    assert errors[0] is errors[2] is None


def test_the_facts_of_a_failure(user_model: Write) -> None:
    error = failure(user_model(f"{ENDS['os._exit'][0]}\n{NAMES}"))
    assert isinstance(error, ExportProcessFailed)
    assert (error.status, error.signal) == (0, None)
    assert error.log == "last words"
    killed = failure(user_model(f"{ENDS['memory'][0]}\n{NAMES}", "killed.py"))
    assert isinstance(killed, ExportProcessFailed)
    assert (killed.status, killed.signal) == (None, signal.SIGKILL)
    assert "want of memory" in str(killed.hint)


def test_a_process_that_hangs_is_ended(user_model: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "REQUEST_SECONDS", 1.0)
    error = failure(user_model(f"import time; time.sleep(600)\n{NAMES}"))
    assert "did not finish within 1 s and was ended" in error.message


def test_a_file_that_stops_the_process_it_is_a_copy_of(
    user_model: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "REQUEST_SECONDS", 1.0)
    monkeypatch.setattr(process, "_END_SECONDS", 0.2)
    error = failure(user_model(f"import os; os.kill(os.getppid(), 19)\n{NAMES}"))
    assert "did not finish within 1 s and was ended" in error.message


def test_a_flood_without_a_line_is_not_a_message(user_model: Write) -> None:
    """An error's text ends with the last line of the process, which may be half a megabyte."""
    code = "import os\nos.write(1, b'x' * (1 << 20) + b'the end')\nos._exit(0)\n"
    (result,) = export([ExportRequest(user_model(code + NAMES))])
    assert result.error is not None
    assert "x" * 300 + "the end" in str(result.error)
    assert len(str(result.error)) < 1000


def test_a_flood_of_output_is_bounded(user_model: Write) -> None:
    """A gigabyte fills neither memory nor disk; the beginning and the end are kept."""
    code = (
        "import os\nos.write(1, b'the beginning\\n')\n"
        "for _ in range(200): os.write(2, bytes(1 << 20))\n"
        "os.write(1, b'\\nthe end\\n')\n"
    )
    (result,) = export([ExportRequest(user_model(code + NAMES))])
    log = (result.unwrap().directory / "export.log").read_text()
    assert log.startswith("the beginning\n")
    assert log.endswith("the end\n")
    assert "bytes left out" in log
    assert len(log) < 3 << 20


def test_each_model_has_its_own_output(user_model: Write) -> None:
    files = [user_model(f"print('I am {n}')\n{NAMES}", f"{n}.py") for n in ("one", "two")]
    programs = [result.unwrap() for result in export([ExportRequest(f) for f in files])]
    logs = [(p.directory / "export.log").read_text() for p in programs]
    assert logs == ["I am one\n", "I am two\n"]


def test_progress_comes_while_the_process_works(user_model: Write) -> None:
    times: dict[str, float] = {}

    def report(text: str) -> None:
        times[text] = time.monotonic()

    export([ExportRequest(user_model(f"import time; time.sleep(1)\n{NAMES}"))], report)
    assert (
        times["mine for cortex-m55: exporting, serialise"]
        - times["mine for cortex-m55: exporting, load"]
        > 0.9
    )


@pytest.mark.parametrize(
    "full",
    [
        "OSError(28, 'No space left on device', 'program.pte')",
        "OSError(28, 'No space left on device')",  # of write(2), which has no name
        "RuntimeError('flatc: writing a: No space left on device')",  # of a tool
    ],
)
def test_a_full_disk_is_not_a_fault_of_the_model(user_model: Write, full: str) -> None:
    error = failure(user_model(f"raise {full}\n{NAMES}"))
    assert isinstance(error, DiskError)
    assert ": No space left on device" in error.message
    assert "None" not in error.message
    assert (error.verdict, error.kind) == (Verdict.INFRA, "disk_full")


def test_an_exporter_that_cannot_be_imported(double: Callable[..., None]) -> None:
    """No model is to blame, and no second process is started."""
    double(whole="import sys; sys.modules['harness.export.child.worker'] = None")
    first, second = export([ExportRequest(find_model(name)) for name in ("add", "mul")])
    assert isinstance(first.error, InfraError)
    assert "installed but cannot be imported" in first.error.message
    assert second.error is first.error


def test_a_process_that_dies_before_it_is_ready(double: Callable[..., None]) -> None:
    double(whole="import os, sys\nif sys.argv[0] == '-c': os._exit(5)")
    (result,) = export([ExportRequest(find_model("add"))])
    assert result.error is not None
    assert result.error.verdict is Verdict.INFRA
    assert "ended with status 5" in result.error.message


def test_nothing_is_left_when_the_caller_is_interrupted(user_model: Write, tmp_path: Path) -> None:
    """Neither the process nor one that the model's file started."""
    pids = tmp_path / "pids"
    code = (
        "import os, subprocess, time\n"
        "other = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{other.pid}}')\n"
    )

    def interrupt(text: str) -> None:
        if text.endswith("exporting, serialise"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export([ExportRequest(user_model(code + NAMES))], interrupt)
    for pid in map(int, pids.read_text().split()):
        assert ends(pid)


def test_the_process_ends_with_a_killed_harness(tmp_path: Path, user_model: Write) -> None:
    pid = tmp_path / "pid"
    source = user_model(
        f"import os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\n"
        f"time.sleep(600)\n{NAMES}"
    )
    code = (
        "import sys\nfrom harness.config.models import find_model\n"
        "from harness.export.batch import export\n"
        "from harness.export.request import ExportRequest\n"
        "export([ExportRequest(find_model(sys.argv[1]))])\n"
    )
    harness = subprocess.Popen([sys.executable, "-c", code, str(source.file)])
    _until(lambda: pid.is_file() and bool(pid.read_text()))
    os.kill(harness.pid, signal.SIGKILL)
    harness.wait()
    assert ends(int(pid.read_text()))


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_environment_and_streams_of_the_harness_stay(user_model: Write) -> None:
    before = sys.stdout, sys.stderr, os.fstat(1).st_ino, os.fstat(2).st_ino, dict(os.environ)
    failure(user_model(f"import os, sys; os.environ['A'] = 'b'; sys.exit(3)\n{NAMES}"))
    after = sys.stdout, sys.stderr, os.fstat(1).st_ino, os.fstat(2).st_ino, dict(os.environ)
    assert after == before


def test_closing_twice_is_harmless() -> None:
    with ExportProcess() as running:
        running.close()
