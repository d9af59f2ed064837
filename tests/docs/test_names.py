"""Protects readers from names that lead nowhere: files, modules and functions in backticks.

It reads README, CONTRIBUTING, the pages of ``docs`` and the docstrings of ``harness``. Other
projects' files are listed here, because nothing in this project can resolve them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest

from tools.clone import project_root

from .blocks import pages

# Of ExecuTorch, Vela (regor), binutils, and files that users have.
FOREIGN_FOLDERS = (
    *("backends/", "exir/", "schema/", "ethosu/vela/", "ld/", "executorch/", "examples/arm/"),
    *(
        "examples/xnnpack/",
        "tools/cmake/",
        "models/mine",
        "models/tinynet",
        "models/test_",
        "build/",
    ),
    *("harness/data", "kas/", "models/tiny", "models/my_model", "models/scores"),
)
FOREIGN_FILES = {
    *("node_data_builder.py", "show.py", "x.py", "x.yaml"),
    *("aot_arm_compiler.py", "architecture_features.py", "arm_vela.py", "build_test_runner.sh"),
    *("decoder.py", "EthosUBackend_Cortex_A.cpp", "graphir_optimiser.cpp", "mlw_encode_fwd.cpp"),
    *(
        "pull.yml",
        "trunk.yml",
        "repro.sh",
        "run.sh",
        "run_fvp.sh",
        "setup.py",
        "setup.sh",
        "stats_writer.py",
    ),
    *("test_arm_backend.sh", "torch_pin.py", "version.py", "ethos_u85.cpp"),
    *("ethos_u55_register_cs_generator.cpp", "ethos_u85_register_cs_generator.cpp"),
    *("ethos_u55_weight_encoder.cpp", "ethos_u85_weight_encoder.cpp"),
}
_KINDS = "c|cmake|cpp|h|html|lock|md|py|sh|toml|yaml|yml"
_PLACEHOLDER = re.compile(r"(?<![A-Za-z])[A-Z]{3,}(?![a-z]|\.md)|[<>{}$~…]|\.\.\.|^-|://|/models/")


class Name(NamedTuple):
    """Words in backticks, and where they stand."""

    where: str
    words: str


@cache
def files() -> frozenset[str]:
    """The files and folders of the project, as paths with ``/``."""
    root = project_root()
    tops = [p for p in root.iterdir() if p.name not in (".git", ".venv", ".hil") and p.is_dir()]
    within = (p for top in tops if not top.name.startswith(".venv") for p in top.rglob("*"))
    below = {p.relative_to(root).as_posix() for p in (*within, *root.iterdir())}
    return frozenset(below | {top.name for top in tops})


@cache
def base_names() -> frozenset[str]:
    return frozenset(name.rpartition("/")[2] for name in files())


@cache
def defined() -> frozenset[str]:
    """The names that the Python files of the project define."""
    found: set[str] = set()
    for folder in ("harness", "tests", "tools", "executorch_hil"):
        for path in (project_root() / folder).rglob("*.py"):
            found.add(path.stem)
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    found.add(node.name)
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    found.add(node.id)
    return frozenset(found)


def in_pages() -> Iterator[Name]:
    for page in pages():
        if page.name != "findings.md":  # other projects' files, as they were
            content = page.read_text("utf-8")
            text = re.sub(
                r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), content, flags=re.M | re.S
            )
            for found in re.finditer(r"`([^`\n]+)`", text):
                line = text.count("\n", 0, found.start()) + 1
                yield Name(f"{page.relative_to(project_root())}:{line}", found[1])


def in_docstrings() -> Iterator[Name]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path in (project_root() / "harness").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, kinds) and (text := ast.get_docstring(node)):
                where = f"{path.relative_to(project_root())}:{node.body[0].lineno}"
                for found in re.finditer(r"``(\S+?)``|`([^`\s]+)`", text):
                    yield Name(where, found[1] or found[2])


def dead(words: str) -> bool:
    """Whether ``words`` name a file, a module or a member that is not there."""
    if re.search(r"\s", words) or _PLACEHOLDER.search(words):
        return False
    path = words.partition("::")[0].rstrip("/")
    if "/" in words:
        if path.startswith(FOREIGN_FOLDERS):
            return False
        top = path.partition("/")[0]
        if top not in (
            "harness",
            "tests",
            "tools",
            "targets",
            "docs",
            "examples",
            "cmake",
            "docker",
        ):
            ends = f"/{path}"
            return bool(re.search(rf"\.(?:{_KINDS})$", path)) and not _somewhere(ends)
        if "*" in path:
            return not any(project_root().glob(path))
        return path not in files() and f"{path}.py" not in files()
    if re.fullmatch(rf"[\w-]+\.(?:{_KINDS})", words):
        return words not in base_names() | FOREIGN_FILES and words.lower() == words
    if re.fullmatch(r"harness(\.\w+)+|(\w+)(\.\w+)+", words):
        first, *rest = words.removeprefix("harness.").split(".")
        return f"harness/{first}" in files() and bool(rest) and rest[-1] not in defined()
    return False


def _somewhere(ends: str) -> bool:
    return any(f"/{name}".endswith(ends) for name in files())


def public_classes() -> dict[str, list[str]]:
    """The modules that define each public class of ``harness`` and ``executorch_hil``."""
    found: dict[str, list[str]] = {}
    for folder in ("harness", "executorch_hil"):
        for path in sorted((project_root() / folder).rglob("*.py")):
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    where = path.relative_to(project_root()).as_posix()
                    found.setdefault(node.name, []).append(where)
    return found


def test_a_public_class_name_stands_for_one_thing() -> None:
    """A reader who searches for a name finds one class."""
    assert {name: where for name, where in public_classes().items() if len(where) > 1} == {}


def test_names_in_pages_lead_somewhere() -> None:
    assert [name for name in in_pages() if dead(name.words)] == []


def test_names_in_docstrings_lead_somewhere() -> None:
    assert [name for name in in_docstrings() if dead(name.words)] == []


def test_architecture_names_modules_of_the_package_that_it_describes() -> None:
    """Each lower-case word in backticks of a paragraph ``**package** ...`` is a module there."""
    page = (project_root() / "docs" / "architecture.md").read_text("utf-8")
    gone = []
    for paragraph in (
        page.partition("## The packages")[2].partition("## Three walks")[0].split("\n\n")
    ):
        packages = re.findall(r"\*\*(\w+)\*\*", paragraph)
        for word in re.findall(r"`([a-z_]+/?)`", paragraph) if packages else ():
            module = word.rstrip("/")
            places = (f"harness/{package}/{module}" for package in packages)
            known = (module, f"harness/{module}")  # a folder of the project, another package
            if not {*places, *known} & (files() | {n.removesuffix(".py") for n in files()}):
                gone.append((packages, word))
    assert gone == []


@pytest.mark.parametrize(
    "words",
    [
        *(
            "harness/log/no_such.py",
            "tests/no_such/test_it.py",
            "no_such_module.py",
            "judge.no_such",
        ),
        *("harness.log.no_such", "targets/no_such.yaml", "tests/no_*_such", "log/no_such.yaml"),
    ],
)
def test_a_dead_name_is_noticed(words: str) -> None:
    assert dead(words)


@pytest.mark.parametrize(
    "words",
    [
        *(
            "harness/log/parser.py",
            "harness/log",
            "parser.py",
            "judge.ending",
            "run_fvp.sh",
            "x.shape",
        ),
        *("targets/NAME.yaml", "tests/kernels/kernel_cases_*.py", "log/patterns.yaml", "hil run"),
    ],
)
def test_a_live_or_foreign_name_passes(words: str) -> None:
    assert not dead(words)
