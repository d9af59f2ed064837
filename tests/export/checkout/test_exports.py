"""The export process with a checkout: its programs, progress and errors arrive, its death takes one
model with it, and nothing of it is left.

The process is real, and so are its cache, locks and Python path; only what lowers a model is a
double (``worker`` in conftest.py), which needs no torch.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness.config.models import NamesMissing, find_model
from harness.core.errors import InfraError
from harness.export import cache
from harness.export.batch import ExportOptions, ExportResult, export
from harness.export.checkout import find_exporter
from harness.export.exporter import ExporterFacts
from harness.export.failures import ExporterUnusable, ImportFailed, StageFailed
from harness.export.process import ExportProcessFailed
from harness.export.request import ExportRequest, content_key, exporter_versions
from harness.system.progress import Progress, silent
from tools.clone import project_root

from .conftest import Tree

Worker = Callable[..., None]


def requests(*models: str) -> list[ExportRequest]:
    return [ExportRequest(find_model(name)) for name in models]


def run(tree: Tree, *models: str, progress: Progress = silent) -> Sequence[ExportResult]:
    return export(requests(*models), progress, ExportOptions(find_exporter(tree.root)))


def test_programs_come_from_the_checkout(tree: Tree, worker: Worker) -> None:
    said: list[str] = []
    add, qadd = run(tree, "add", "qadd", progress=said.append)
    assert [text for text in said if text.endswith("exporting")] == [
        "add for cortex-m55: exporting",
        "qadd for cortex-m55: exporting",
    ]
    program = add.unwrap()
    assert program.pte_path.read_bytes() == b"the checkout"
    assert program.versions["executorch"].startswith("9.8.0, sources ")
    assert program.exporter == find_exporter(tree.root).facts
    assert (program.directory / "export.log").read_text() == "working on add\n"
    assert not add.cached
    assert qadd.unwrap().model == "qadd"


def test_what_is_cached_starts_no_child(tree: Tree, worker: Worker) -> None:
    run(tree, "add")
    worker(whole="raise SystemExit('not needed')")
    said: list[str] = []
    (again,) = run(tree, "add", progress=said.append)
    assert said == []
    assert again.cached


def test_neither_exporter_gets_the_others_programs(tree: Tree, worker: Worker) -> None:
    program = run(tree, "add")[0].unwrap()
    wheel = content_key(requests("add")[0], exporter_versions())
    assert program.directory.name != wheel
    tree.write("exir/__init__.py", "WHOSE = 'edited'\n")
    assert run(tree, "add")[0].unwrap().pte_path.read_bytes() == b"edited"


def test_at_another_commit_of_equal_python_the_record_has_that_commit(
    tree: Tree, worker: Worker
) -> None:
    before = run(tree, "add")[0].unwrap().exporter
    tree.write("backends/cortex_m/ops/op_add.cpp", "int other;\n")
    tree.commit()
    again = run(tree, "add")[0]
    assert again.cached
    after = again.unwrap().exporter
    assert isinstance(before, ExporterFacts)
    assert isinstance(after, ExporterFacts)
    assert (before.commit != after.commit, after.commit) == (True, tree.git("rev-parse", "HEAD"))


def test_an_error_comes_back_as_what_it_was(tree: Tree, worker: Worker) -> None:
    """With the log, and the next model is exported all the same."""
    linear, add = run(tree, "linear", "add")
    assert isinstance(linear.error, StageFailed)
    assert linear.error.facts["stage"] == "lower"
    assert linear.error.detail == "no\nway"
    assert linear.error.log == "working on linear"
    assert add.unwrap().model == "add"


def test_a_users_mistake_comes_back(tree: Tree, worker: Worker) -> None:
    worker("raise NamesMissing(__import__('pathlib').Path('m.py'), ['ModelInputs'])")
    (result,) = run(tree, "add")
    assert isinstance(result.error, NamesMissing)
    assert result.error.missing == ("ModelInputs",)


def test_a_killed_child_takes_one_model_with_it(tree: Tree, worker: Worker) -> None:
    """What was done before is kept, and another child does the rest."""
    add, mul, qadd = run(tree, "add", "mul", "qadd")
    assert isinstance(mul.error, ExportProcessFailed)
    assert mul.error.facts["signal"] == signal.SIGKILL
    assert "was ended by signal 9 (SIGKILL)" in mul.error.message
    assert mul.error.verdict.value == "EXPORT_ERROR"
    assert (add.error, qadd.error) == (None, None)
    assert not list(cache.entry_dir("x").parent.glob(".*.tmp-*"))


def test_a_child_that_ends_by_itself(tree: Tree, worker: Worker) -> None:
    (result,) = run(tree, "softmax")
    assert isinstance(result.error, ExportProcessFailed)
    assert (result.error.status, result.error.signal) == (9, None)
    assert "ended with status 9" in result.error.message


def test_two_requests_for_one_program(tree: Tree, worker: Worker) -> None:
    first, second = run(tree, "add", "add")
    assert first.unwrap() == second.unwrap()


def test_a_checkout_that_cannot_be_imported(tree: Tree, worker: Worker) -> None:
    """All versions are named, and where it happened; no model is blamed."""
    tree.write("exir/__init__.py", "def broken(:\n")
    worker(
        whole="import sys, types\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'harness.export.child.worker':\n"
        "            import executorch.exir\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    add, mul = run(tree, "add", "mul")
    error = add.error
    assert isinstance(error, ExporterUnusable)
    assert mul.error is error
    assert error.cause == "SyntaxError"
    assert error.place.endswith("exir/__init__.py:1")
    for said in ("version 9.8.0, pinned to torch 2.13.0", f"torch {error.torch}", error.compiled):
        assert said in error.message
    assert "Traceback" in error.log
    assert "--exporter wheel" in str(error.hint)


def test_a_revision_that_the_harness_does_not_know(tree: Tree) -> None:
    """Its own import fails, not one inside the checkout: other versions would not help."""
    ours = project_root() / "harness/export/child/lower.py"
    theirs = project_root() / ".hil/cache/executorch-python/key/executorch/exir/lowering.py"

    def failed(file: Path, code: str) -> ImportFailed:
        with pytest.raises(ImportError) as caught:
            exec(compile(code, str(file), "exec"), {})
        return ImportFailed(caught.value)

    known = find_exporter(tree.root)
    other = ExporterUnusable(known, failed(ours, "import executorch.nothing"), "")
    assert other.missing == "executorch.nothing"
    assert "pull request 21826" in str(other.hint)
    for file, code in ((theirs, "import executorch.nothing"), (ours, "import nothing_at_all")):
        error = ExporterUnusable(known, failed(file, code), "")
        assert error.missing == ""
        assert "install the torch and the wheel of that time" in str(error.hint)


def test_a_package_from_elsewhere(tree: Tree, worker: Worker, tmp_path: Path) -> None:
    """A .pth file or a sitecustomize of the user's may put another one in front."""
    (tmp_path / "other" / "executorch").mkdir(parents=True)
    (tmp_path / "other" / "executorch" / "__init__.py").touch()
    worker(whole=f"import sys; sys.path.insert(0, {str(tmp_path / 'other')!r}); import executorch")
    (result,) = run(tree, "add")
    assert isinstance(result.error, InfraError)
    assert result.error.facts["packages"] == (str(tmp_path / "other" / "executorch"),)
    assert "sitecustomize.py" in str(result.error.hint)


def test_the_current_directory_is_not_in_front(
    tree: Tree, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a checkout that is named `executorch`."""
    exporter = find_exporter(tree.root)
    monkeypatch.chdir(tree.root.parent)
    (result,) = export(requests("add"), options=ExportOptions(exporter))
    assert result.error is None


def test_a_checkout_that_is_edited_meanwhile(tree: Tree, worker: Worker) -> None:
    """Nobody knows what made the program: it is not kept."""
    new = tree.root / "exir" / "new.py"
    worker(f"open({str(new)!r}, 'w').close()")
    (result,) = run(tree, "add")
    assert result.error is not None
    assert result.error.message == "the checkout changed while it exported"
    new.unlink()
    worker()
    assert not run(tree, "add")[0].cached


def test_a_process_that_writes_half_an_answer(tree: Tree, worker: Worker) -> None:
    """As a process that is killed leaves it."""
    worker(
        "import glob\n"
        "    for fd in range(3, 20):\n"
        '        try: os.write(fd, b\'{"event": "do\')\n'
        "        except OSError: pass\n"
        "    os._exit(0)"
    )
    (result,) = run(tree, "add")
    assert isinstance(result.error, ExportProcessFailed)


def test_no_process_is_left(tree: Tree, worker: Worker, tmp_path: Path) -> None:
    """When the caller is interrupted while the child works."""
    pid = tmp_path / "pid"
    worker(f"open({str(pid)!r}, 'w').write(str(os.getpid()))")

    def interrupted(text: str) -> None:
        if text == "qadd for cortex-m55: exporting":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tree, "add", "qadd", progress=interrupted)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
