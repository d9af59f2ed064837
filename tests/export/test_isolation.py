"""A model file that is not trusted: what it cannot do, and that its program is the same."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.config.models import ModelSource, NamesMissing
from harness.core.errors import HarnessError
from harness.export import batch
from harness.export.batch import ExportOptions, ExportResult, export
from harness.export.process import ExportProcessFailed
from harness.export.program import Program
from harness.export.request import ExportRequest
from harness.system.confine import NotConfined, what_lacks

Write = Callable[..., ModelSource]
Get = Callable[[str | ModelSource], Program]
needs_walls = pytest.mark.skipif(what_lacks() is not None, reason=str(what_lacks()))

GOOD = """
import torch
ModelUnderTest = torch.nn.Linear(4, 3)
ModelInputs = (torch.tensor([[-1.0, 0.5, 2.0, -2.0]]),)
"""


def export_isolated(requests: list[ExportRequest]) -> list[ExportResult]:
    return export(requests, options=ExportOptions(isolate=True))


def failure(source: ModelSource) -> HarnessError:
    (result,) = export_isolated([ExportRequest(source)])
    assert result.error is not None
    return result.error


def names(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


@needs_walls
def test_a_hostile_model(
    user_model: Write, exported: Get, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It reads no file of the user's, writes nothing elsewhere and no large file, and reaches
    nobody; and what comes of it is byte for byte what an ordinary export makes."""
    tmp_path = tmp_path_factory.mktemp("elsewhere")
    (tmp_path / "secret").write_text("hunter2")
    attempts = f"""
import os, socket
def tried(what):
    try:
        return what() and "did"
    except OSError as error:
        return "refused"
def large():
    with open("large", "wb") as file:
        os.unlink("large")
        return file.truncate(3 << 30)
print("attempts", [tried(what) for what in (
    lambda: open("/etc/passwd").read(),
    lambda: open({str(tmp_path / "secret")!r}).read(),
    lambda: open({str(tmp_path / "planted")!r}, "w"),
    lambda: open("/tmp/planted", "w"),
    lambda: open(__file__, "a"),
    large,
    lambda: socket.create_connection(("127.0.0.1", 22), 1),
    lambda: socket.socket(socket.AF_NETLINK),
)], sorted(os.environ))
"""
    source = user_model(GOOD + attempts)
    (result,) = export_isolated([ExportRequest(source)])
    program = result.unwrap()
    assert not result.cached
    assert export_isolated([ExportRequest(source)])[0].cached
    log = (program.directory / "export.log").read_text()
    said = next(line for line in log.splitlines() if line.startswith("attempts"))
    assert said.count("refused") == 8, said
    assert "HIL_HOME" not in said
    assert not (tmp_path / "planted").exists()
    kept = {n: (program.directory / n).read_bytes() for n in names(program.directory)}
    shutil.rmtree(program.directory)
    again = exported(source)
    assert names(again.directory) == sorted(kept)
    for name, content in kept.items():
        if name not in ("export.log", "entry.json"):
            assert (again.directory / name).read_bytes() == content, name


@pytest.mark.parametrize("claimed", ["/etc/passwd", "../secret", "a/../../secret"])
def test_a_file_that_an_isolated_model_cannot_have_read_is_not_an_input(claimed: str) -> None:
    assert batch._inside_model_folder({claimed: "0", "weights.bin": "1"}) == {"weights.bin": "1"}
    assert batch._inside_model_folder([claimed]) == {}


@needs_walls
@pytest.mark.thorough
@needs_walls
def test_a_blank_in_the_path_of_the_state_directory(
    user_model: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vela ended with status 2: ExecuTorch splits its command line at blanks."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "my files"))
    (result,) = export_isolated([ExportRequest(user_model(GOOD), "ethos-u55-128")])
    assert result.error is None, result.error


def test_errors_are_those_of_an_ordinary_export(user_model: Write) -> None:
    error = failure(user_model("ModelInputs = ()\n"))
    assert isinstance(error, NamesMissing)


@needs_walls
def test_a_process_that_writes_too_many_files(user_model: Write) -> None:
    code = "import time\nfor n in range(30000): open(f'f{n}', 'w').close()\ntime.sleep(900)"
    error = failure(user_model(f"{code}\n{GOOD}"))
    assert isinstance(error, ExportProcessFailed)
    assert "wrote too much (files)" in error.message
    assert "--isolate-export" in str(error.hint)


@needs_walls
@pytest.mark.thorough
def test_a_file_that_is_too_large_and_a_process_that_ends(user_model: Write) -> None:
    code = (
        "import os\ntry: open('big', 'wb').truncate(3 << 30)\n"
        "except OSError as error: print(error)\nos._exit(7)"
    )
    error = failure(user_model(f"{code}\n{GOOD}"))
    assert isinstance(error, ExportProcessFailed)
    assert error.message.endswith(
        "ended with status 7 and gave no result: [Errno 27] File too large"
    )


@pytest.mark.parametrize("how", ["whole", "link", "fifo", "name", "absent", "json"])
def test_what_is_not_one_plain_program_is_not_believed(
    exported: Get, tmp_path: Path, how: str
) -> None:
    """A link in the place of an output would be followed by whoever copies it, and a name that
    leads elsewhere, too."""
    place = tmp_path / "made"
    shutil.copytree(exported("add").directory, place)
    output = place / exported("add").sets[0].expected[0]
    description = place / "program.json"
    if how == "link":
        output.unlink()
        output.symlink_to("/etc/passwd")
    elif how == "fifo":
        os.mkfifo(place / "more")
    elif how == "name":
        description.write_text(description.read_text().replace('"program.pte"', '"/etc/passwd"'))
    elif how == "absent":
        output.unlink()
    elif how == "json":
        description.write_text("[1]")
    assert (batch._load_if_complete(place) is not None) == (how == "whole")


def test_without_walls_there_is_no_isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "what_lacks", lambda: "planted")
    with pytest.raises(NotConfined, match="planted"):
        export_isolated([])
