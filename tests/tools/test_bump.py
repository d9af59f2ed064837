"""Protects ``python -m tools.bump``: the pins that it changes, and that no difference between two
releases is left out of its list."""

from __future__ import annotations

import ast
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.system.paths import executorch_package
from tools.bump import FOLLOWED, PINS, Wheel, differences, fetch, installed, pinned, write_pins
from tools.clone import project_root

SCHEMA = "schema/program.fbs"
OPERATORS = "backends/cortex_m/ops/operators.yaml"
DEFINITIONS = "backends/cortex_m/ops/operators.py"
TEST = "backends/cortex_m/test/ops/test_add.py"
METADATA = """\
Metadata-Version: 2.1
Name: executorch
Version: {}
Provides-Extra: ethos-u
Requires-Dist: ethos-u-vela=={}; extra == 'ethos-u'
"""
WHEEL = "Wheel-Version: 1.0\nTag: py3-none-any\n"
ADD = "- func: cortex_m::add.out({}, Tensor(a!) out) -> Tensor(a!)\n"


def make_release(folder: Path, *, arguments: str = "Tensor a") -> Path:
    """A package with a file of each kind that is compared."""
    package = folder / "executorch"
    for name, text in (
        (OPERATORS, ADD.format(arguments)),
        (DEFINITIONS, "def add(a):\n    return a\n"),
        (TEST, "def test_one():\n    pass\n"),
    ):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    for name in (SCHEMA, "schema/scalar_type.fbs"):
        (package / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(executorch_package() / name, package / name)
    return package


def compared(tmp_path: Path, new: Path, vela: str = "5.1.0") -> list[str]:
    old = Wheel("1.0", make_release(tmp_path / "old"), {"ethos-u-vela": "==5.1.0"})
    return list(differences(old, Wheel("2.0", new, {"ethos-u-vela": f"=={vela}"})))


def test_equal_releases_have_no_differences(tmp_path: Path) -> None:
    assert compared(tmp_path, make_release(tmp_path / "new")) == []


def test_an_operator_with_another_argument(tmp_path: Path) -> None:
    new = make_release(tmp_path / "new", arguments="Tensor a, int zero")
    (line,) = compared(tmp_path, new)
    assert line == "operator cortex_m::add.out: (Tensor, Tensor) -> (Tensor, int, Tensor)"


def test_an_operator_that_is_gone_and_a_new_one(tmp_path: Path) -> None:
    new = make_release(tmp_path / "new")
    (new / OPERATORS).write_text(ADD.format("Tensor a").replace("add", "sum"))
    assert compared(tmp_path, new) == [
        "operator cortex_m::add.out is gone",
        "operator cortex_m::sum.out is new: (Tensor, Tensor)",
    ]


def test_a_field_of_the_program_that_changed_its_type(tmp_path: Path) -> None:
    new = make_release(tmp_path / "new")
    text = (new / SCHEMA).read_text()
    changed = text.replace("int_val: long;", "int_val: int;")
    assert changed != text
    (new / SCHEMA).write_text(changed)
    (line,) = compared(tmp_path, new)
    assert (
        line == f"{SCHEMA}: Int.int_val is 'field 0, int_val: int32', was 'field 0, int_val: int64'"
    )


def test_code_that_is_followed_and_not_its_comments(tmp_path: Path) -> None:
    new = make_release(tmp_path / "new")
    (new / DEFINITIONS).write_text("# said otherwise\ndef add(a):\n    return a\n")
    assert compared(tmp_path, new) == []
    shutil.rmtree(tmp_path / "old")
    (new / DEFINITIONS).write_text("def add(a):\n    return a + 1\n")
    (line,) = compared(tmp_path, new)
    assert line.startswith(f"{DEFINITIONS} changed; it is followed by")


def test_a_suite_with_a_new_test_and_another_vela(tmp_path: Path) -> None:
    new = make_release(tmp_path / "new")
    (new / TEST).write_text("def test_two():\n    pass\n")
    assert compared(tmp_path, new, vela="5.2.0") == [
        f"suite {TEST}: new: test_two; gone: test_one",
        "ethos-u-vela ==5.1.0 -> ==5.2.0: known defects: targets/npu/defects.yaml; its"
        " tables: export/estimates.py",
    ]


def test_what_is_followed_is_there() -> None:
    wheel = installed()
    assert wheel.version == pinned(project_root(), "executorch")
    assert [name for name in FOLLOWED if not (wheel.package / name).is_file()] == []
    assert list(differences(wheel, wheel)) == []


def test_every_pin_is_changed(tmp_path: Path) -> None:
    for file in {file for file, _, _ in PINS}:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        shutil.copyfile(project_root() / file, tmp_path / file)
    write_pins(tmp_path, {"executorch": "9.8.7", "torch": "6.5.4"})
    assert (pinned(tmp_path, "executorch"), pinned(tmp_path, "torch")) == ("9.8.7", "6.5.4")
    assert "torch_version=6.5.4\n" in (tmp_path / "scripts/bootstrap.sh").read_text()
    pins = (tmp_path / "pyproject.toml").read_text()
    assert '"torch==6.5.4"' in pins
    assert '"executorch[ethos-u]==9.8.7"' in pins


def test_a_wheel_of_the_package_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = make_release(tmp_path / "made")
    with zipfile.ZipFile(tmp_path / "executorch-9.8.7-py3-none-any.whl", "w") as archive:
        for file in filter(Path.is_file, package.rglob("*")):
            archive.write(file, file.relative_to(package.parent))
        archive.writestr("executorch-9.8.7.dist-info/METADATA", METADATA.format("9.8.7", "5.1.0"))
        archive.writestr("executorch-9.8.7.dist-info/WHEEL", WHEEL)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    wheel = fetch("9.8.7", tmp_path / "fetched")
    assert (wheel.version, wheel.requires) == ("9.8.7", {"ethos-u-vela": "==5.1.0"})
    assert compared(tmp_path, wheel.package) == []
    with pytest.raises(UsageError, match=r"no executorch 9\.9\.9 for this Python"):
        fetch("9.9.9", tmp_path / "none")


def test_no_code_names_the_release() -> None:
    """A docstring says of which release a fact is; code that depends on it has to ask."""
    version = pinned(project_root(), "executorch")
    files = (
        file for name in ("harness", "tools") for file in (project_root() / name).rglob("*.py")
    )
    found = [
        f"{file.relative_to(project_root())}: {text}"
        for file in files
        for text in _strings(ast.parse(file.read_text()))
        if version in text
    ]
    assert found == []


def _strings(tree: ast.AST) -> Iterator[str]:
    """Without docstrings, which are expressions by themselves."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value
