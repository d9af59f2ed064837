"""What a model's file opens while it is exported is part of what its program is cached by."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.config.models import ModelSource
from harness.core.errors import HarnessError
from harness.export import cache
from harness.export.batch import ExportOptions, export
from harness.export.failures import FileRaised
from harness.export.process import ExportProcess
from harness.export.program import Program
from harness.export.request import ExportRequest
from tools.clone import project_root

Write = Callable[..., ModelSource]
Get = Callable[[str | ModelSource], Program]
Failure = Callable[[ModelSource], HarnessError]

SCALED = """
import glob, os, pathlib, tempfile
import torch
HERE = pathlib.Path(__file__).parent
{}
class Scaled(torch.nn.Module):
    def forward(self, x):
        return x * value
ModelUnderTest = Scaled().eval()
ModelInputs = (torch.tensor([[-1.0, 0.5, 2.0, -2.0]]),)
"""
CUSTOM = """
value = 1.0
try:
    value = float(open(HERE / "custom.txt").read())
except FileNotFoundError:
    pass
"""


def first_output(program: Program) -> bytes:
    return (program.directory / program.sets[0].expected[0]).read_bytes()


def is_cached(source: ModelSource, process: ExportProcess | None = None) -> bool:
    return export([ExportRequest(source)], process=process)[0].cached


def never_seen() -> str:
    """A number that no run of the tests before had: the programs of those are cached."""
    return f"3.{time.time_ns()}"


def put(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("reads", "before", "after"),
    [
        ('value = float((HERE / "scale.txt").read_text())', {"scale.txt": "2"}, {"scale.txt": "3"}),
        (
            'value = sum(float(open(f).read()) for f in glob.glob(str(HERE / "parts/*.txt")))',
            {"parts/a.txt": "1"},
            {"parts/b.txt": "4"},
        ),
        (CUSTOM, {}, {"custom.txt": "5"}),
    ],
    ids=["replaced", "new in a listed folder", "absent before"],
)
def test_a_file_that_was_opened_and_changed_gives_another_program(
    user_model: Write,
    exported: Get,
    tmp_path: Path,
    reads: str,
    before: dict[str, str],
    after: dict[str, str],
) -> None:
    """It would be PASS, of the old program."""
    for name, text in before.items():
        put(tmp_path / name, text)
    source = user_model(SCALED.format(reads))
    old = first_output(exported(source))
    assert is_cached(source)
    for name, text in after.items():
        put(tmp_path / name, text)
    assert first_output(exported(source)) != old
    assert is_cached(source)


def test_a_file_that_is_opened_in_forward_counts(
    user_model: Write, exported: Get, tmp_path: Path
) -> None:
    put(tmp_path / "late.txt", "2")
    text = SCALED.format("").replace("* value", '* float((HERE / "late.txt").read_text())')
    source = user_model(text)
    exported(source)
    assert is_cached(source)
    put(tmp_path / "late.txt", never_seen())
    assert not is_cached(source)


def test_temporary_files_and_files_of_its_own_do_not_spoil_the_cache(
    user_model: Write, exported: Get, tmp_path: Path
) -> None:
    """It is no "changed while the model was exported", and none is looked for the next time. What
    it wrote and kept is an input: another may take its place."""
    kept = tmp_path / "kept.txt"
    source = user_model(
        SCALED.format("""
with tempfile.TemporaryDirectory() as folder:
    temporary = pathlib.Path(folder, "t.txt")
    temporary.write_text("1")
    temporary.read_text()
gone = HERE / "gone.txt"
gone.write_text("1")
gone.read_text()
gone.unlink()
kept = HERE / "kept.txt"
if not kept.exists():
    kept.write_text("2")
value = float(kept.read_text())
""")
    )
    exported(source)
    assert is_cached(source)
    kept.write_text(never_seen())
    assert not is_cached(source)


def test_a_relative_name_is_one_of_the_current_directory(
    user_model: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From another directory the same model is another one."""
    source = user_model(SCALED.format('value = float(open("value.txt").read())'))
    outputs = []
    for name, text in (("first", "2"), ("second", "3")):
        put(tmp_path / name / "value.txt", text)
        monkeypatch.chdir(tmp_path / name)
        with ExportProcess() as process:
            (result,) = export([ExportRequest(source)], process=process)
            assert not result.cached
            outputs.append(first_output(result.unwrap()))
            assert is_cached(source, process)
    assert outputs[0] != outputs[1]


READERS = """
import ctypes, json, os, pathlib, sqlite3, sys, zipfile
sys.path.insert(0, {root!r})
os.chdir({folder!r})
import numpy as np, torch
torch.save({{"a": torch.ones(4)}}, "w.pt")
np.save("w.npy", np.ones(4)); np.savez("w.npz", a=np.ones(4)); np.ones(4).tofile("w.bin")
pathlib.Path("w.json").write_text("1")
with zipfile.ZipFile("w.zip", "w") as archive:
    archive.writestr("a", "b")
with sqlite3.connect("w.db") as database:
    database.execute("create table t (a)")
torch.jit.script(torch.nn.Linear(2, 2)).save("w.jit")
made = pathlib.Path("made")
made.mkdir()
READERS = {{
    "torch.load": ("w.pt", torch.load),
    "torch.load, mmap": ("w.pt", lambda name: torch.load(name, mmap=True)),
    "numpy.load": ("w.npy", np.load),
    "numpy.load, npz": ("w.npz", np.load),
    "numpy.load, mmap": ("w.npy", lambda name: np.load(name, mmap_mode="r")),
    "numpy.memmap": ("w.bin", np.memmap),
    "numpy.fromfile": ("w.bin", np.fromfile),
    "numpy.loadtxt": ("w.json", np.loadtxt),
    "open": ("w.json", open),
    "os.open": ("w.json", lambda name: os.open(name, os.O_RDONLY)),
    "Path.read_text": ("w.json", lambda name: pathlib.Path(name).read_text()),
    "json.load": ("w.json", lambda name: json.load(open(name))),
    "zipfile": ("w.zip", zipfile.ZipFile),
    "sqlite3": ("w.db", sqlite3.connect),
    "torch.jit.load": ("w.jit", torch.jit.load),
    "torch.from_file": ("w.bin", lambda name: torch.from_file(name, size=4)),
    "os.path.exists": ("w.json", os.path.exists),
}}
from harness.export.child.source import OpenedFiles
seen = {{}}
for reader, (name, read) in READERS.items():
    opened = OpenedFiles()
    read(name)
    seen[reader] = [str(path) for path, _ in opened.inputs(made, made)]
print(json.dumps(seen))
"""
NOT_SEEN = {"torch.jit.load", "torch.from_file", "os.path.exists"}  # docs/how-to/own-model.md


def test_which_readers_are_seen(tmp_path: Path) -> None:
    """In a process of its own: a hook cannot be removed."""
    text = READERS.format(root=str(project_root()), folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, check=True)
    seen: dict[str, list[str]] = json.loads(done.stdout)
    assert {reader for reader, files in seen.items() if not files} == NOT_SEEN
    assert all(len(files) <= 1 for files in seen.values())


def test_a_file_that_is_not_a_file_any_more_is_not_read(
    user_model: Write, exported: Get, tmp_path: Path
) -> None:
    """To look at a FIFO would wait for ever."""
    put(tmp_path / "scale.txt", "2")
    source = user_model(SCALED.format('value = float((HERE / "scale.txt").read_text())'))
    exported(source)
    (tmp_path / "scale.txt").unlink()
    os.mkfifo(tmp_path / "scale.txt")
    key = ExportOptions().key(ExportRequest(source))
    assert cache.load(key, str(tmp_path)) is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("'elsewhere.txt'", "nor is it {folder}/elsewhere.txt: start paths at the file"),
        ("'beside.txt'", "the folder of the model's file has it: start paths at the file, as Path"),
        ("HERE / 'absolute.txt'", "with --isolate-export a model reads only {folder}"),
    ],
)
def test_a_missing_file_says_where_it_was_looked_for(
    user_model: Write, failure: Failure, tmp_path: Path, name: str, said: str
) -> None:
    put(tmp_path / "beside.txt", "1")
    error = failure(user_model(SCALED.format(f"value = float(open({name}).read())")))
    assert isinstance(error, FileRaised)
    assert error.hint is not None
    assert f"the current directory of the export is {Path.cwd()}" in error.hint
    assert said.format(folder=tmp_path) in error.hint
