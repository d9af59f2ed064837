"""A work tree with the shape of an ExecuTorch checkout, and an export that needs no torch."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.system.paths import executorch_package
from tools.clone import project_root

FILES = {
    "CMakeLists.txt": "",
    "version.txt": "9.8.0\n",
    "torch_pin.py": 'TORCH_VERSION = "2.13.0"\n# NIGHTLY_VERSION = "dev"\n',
    ".gitignore": "*.so\n/version.py\n",
    "runtime/executor/program.cpp": "int program;\n",
    "exir/__init__.py": "WHOSE = 'the checkout'\n",
    "exir/lowering.py": "STEP = 1\n",
    "exir/_serialize/__init__.py": "",
    "backends/cortex_m/ops/op_add.cpp": "int add;\n",
    "backends/cortex_m/ops/operators.yaml": "- func: cortex_m::add.out\n",
    "extension/data.json": "{}",
}
_SCHEMAS = ("schema", "devtools/bundled_program/schema")


class Tree:
    """A checkout to edit and to commit to."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def git(self, *arguments: str) -> str:
        name = ("-c", "user.name=t", "-c", "user.email=t@t")
        done = subprocess.run(
            ["git", "-C", str(self.root), *name, *arguments],
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def write(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", "a change")

    def listing(self) -> dict[str, int]:
        """Everything in it but git's own, with the time of its last change."""
        found = (p for p in self.root.rglob("*") if ".git" not in p.relative_to(self.root).parts)
        return {str(p): p.stat().st_mtime_ns for p in found}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Its schemas are the wheel's."""
    made = Tree(tmp_path / "src" / "executorch")
    for name, text in FILES.items():
        made.write(name, text)
    for folder in _SCHEMAS:
        source = executorch_package() / folder
        (made.root / folder).mkdir(parents=True)
        for file in source.glob("*.fbs"):
            shutil.copyfile(file, made.root / folder / file.name)
    made.git("init", "-q", "-b", "main")
    made.commit()
    return made


# In place of harness.export.child.worker, which needs torch: a child's Python runs this file first.
# What it "exports" is what the checkout's package says.
_WORKER = """
import os, signal, sys, types
sys.path.append({root!r})

def export(on_stage, request, versions, directory):
    from pathlib import Path
    from executorch import exir
    from harness.config.models import NamesMissing
    from harness.export.failures import StageFailed
    from tests.export.checkout.made import Made
    print("working on", request.model.name, flush=True)
    name = request.model.name
    if name == "mul":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "linear":
        raise StageFailed(request, "lower", ValueError("no\\nway"))
    if name == "softmax":
        os.write(2, b"torch says: assertion\\n")
        os._exit(9)
    {extra}
    Made(request, versions, exir.WHOSE).write(Path(directory)).save()
    return {{}}

worker = types.ModuleType("harness.export.child.worker")
worker.export = export
sys.modules[worker.__name__] = worker
"""


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put the double in place; the text is run at each export."""

    def put(extra: str = "pass", *, whole: str | None = None) -> None:
        folder = tmp_path / "site"
        folder.mkdir(exist_ok=True)
        text = _WORKER.format(root=str(project_root()), extra=extra) if whole is None else whole
        (folder / "sitecustomize.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", str(folder))

    put()
    return put


@pytest.fixture(autouse=True)
def own_cache(own_home: Path) -> Path:
    return own_home
