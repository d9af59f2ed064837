"""Protects the package that is made of a checkout and a wheel: whose each part is, that it is
whole or absent, and that the checkout is left as it was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import InfraError
from harness.export import checkout
from harness.export.checkout import (
    ExporterIncomplete,
    compiled_parts,
    lay_environment,
    read_sources,
)
from harness.firmware.sources import bundled as plan
from harness.system import artifact_cache
from harness.system.paths import executorch_package

from .conftest import Tree


def lay(tree: Tree) -> Path:
    return lay_environment(tree.root, read_sources(tree.root), compiled_parts())


def python(place: Path, code: str) -> str:
    """As the exporter's process is started."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd=place.parent,
        env={**os.environ, "PYTHONPATH": str(place)},
    )
    return done.stdout.strip()


def test_python_takes_all_of_the_package_from_it(tree: Tree) -> None:
    """Not a part from here and the rest from the installed wheel."""
    place = lay(tree)
    assert python(place, "import executorch.exir as e; print(e.WHOSE)") == "the checkout"
    assert python(place, "import executorch; print(*executorch.__path__)") == str(
        place / "executorch"
    )
    assert python(place, "import executorch.version as v; print(v.__version__)") == "9.8.0"
    missing = "import importlib.util as u; print(u.find_spec('executorch.exir.emit'))"
    assert (executorch_package() / "exir" / "emit").is_dir()
    assert python(place, missing) == "None"


def test_nothing_is_written_into_the_checkout(tree: Tree) -> None:
    before = tree.listing()
    place = lay(tree)
    python(place, "import executorch.exir.lowering, executorch.exir._serialize")
    assert tree.listing() == before
    assert not list(place.rglob("*.pyc")), "the environment is sealed"


@pytest.mark.parametrize("damage", ["another link", "a file for a link", "bytecode", "no version"])
def test_a_damaged_environment_is_made_again(tree: Tree, damage: str) -> None:
    package = lay(tree) / "executorch"
    file = package / "exir/lowering.py"
    if damage == "bytecode":
        (file.parent / "__pycache__").mkdir()
        (file.parent / "__pycache__" / "lowering.pyc").write_bytes(b"another program")
    elif damage == "no version":
        (package / "version.py").write_text("")
    else:
        file.unlink()
        if damage == "another link":
            file.symlink_to(executorch_package() / "exir/lowering.py")
        else:
            file.write_text("STEP = 'nobody knows'\n")
    again = lay(tree) / "executorch"
    assert (again / "exir/lowering.py").readlink() == tree.root / "exir/lowering.py"
    assert not list(again.rglob("*.pyc"))
    assert "9.8.0" in (again / "version.py").read_text()


def test_schemas_are_the_checkouts(tree: Tree) -> None:
    """Where a wheel has copies of them, and a checkout has none."""
    tree.write("schema/program.fbs", "// the checkout's\n")
    package = lay(tree) / "executorch"
    assert (package / "exir/_serialize/program.fbs").read_text() == "// the checkout's\n"
    for name in ("bundled_program_schema.fbs", "scalar_type.fbs"):
        copy = package / "devtools/bundled_program/serialize" / name
        assert copy.resolve() == tree.root / "devtools/bundled_program/schema" / name


def test_what_is_compiled_is_the_wheels(tree: Tree) -> None:
    """Also where the checkout has something of its own from another build."""
    wheel = executorch_package()
    parts = [p.relative_to(wheel) for p in wheel.rglob("*.so")]
    assert parts
    tree.write(str(parts[0]), "not of this Python")
    package = lay(tree) / "executorch"
    for part in (*parts, Path("data/bin/flatc")):
        assert (package / part).readlink() == wheel / part


def test_older_checkouts_import_cmsis_nn_by_its_own_name(tree: Tree) -> None:
    """Until ExecuTorch's pull request 20531 it was a distribution beside ExecuTorch."""
    place = lay(tree)
    code = "import cmsis_nn; print(cmsis_nn.__file__, cmsis_nn.Backend.MVE.name)"
    file, name = python(place, code).split()
    assert name == "MVE"
    assert Path(file).parent == place
    assert executorch_package().resolve() in Path(file).resolve().parents


def test_an_edit_needs_no_other_environment(tree: Tree) -> None:
    """The links show it."""
    place = lay(tree)
    tree.write("exir/lowering.py", "STEP = 'edited'\n")
    assert lay(tree) == place
    assert python(place, "import executorch.exir.lowering as l; print(l.STEP)") == "edited"


def test_other_files_are_another_environment(tree: Tree) -> None:
    place = lay(tree)
    (tree.root / "exir/lowering.py").unlink()
    assert not (lay(tree) / "executorch/exir/lowering.py").is_symlink()
    assert (place / "executorch/exir/lowering.py").is_symlink(), "another process may be using it"


def test_a_killed_attempt_is_never_used(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    link = checkout._link

    def killed(*given: Any) -> None:
        link(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(checkout, "_link", killed)
        with pytest.raises(KeyboardInterrupt):
            lay(tree)
    (place,) = (p for p in (own_cache / "cache/executorch-python").iterdir() if p.is_dir())
    assert artifact_cache.check(place) is None
    assert (lay(tree) / "executorch/version.py").is_file()


def test_a_cache_that_cannot_be_written(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIL_HOME", "/proc/nowhere")
    with pytest.raises(InfraError, match="preparing the checkout's exporter"):
        lay(tree)


def test_a_wheel_without_flatc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "executorch" / "lib").mkdir(parents=True)
    (tmp_path / "executorch" / "lib" / "x.so").touch()
    monkeypatch.setattr(checkout, "executorch_package", lambda: tmp_path / "executorch")
    with pytest.raises(ExporterIncomplete, match="wheel of ExecuTorch has no data/bin/flatc") as e:
        compiled_parts()
    assert "reinstall the wheel" in str(e.value.hint)
    assert plan.executorch_package() != tmp_path
