"""Lists the tests of a module: ``python -m tools.tests_of harness/judge/ending.py``.

The first of these that finds a file counts: test files, or a folder of them, of the module's name
in the package's folder of ``tests``; test files that import the module or name it; the tests of the
modules that import it. A verb, the plugin's fixtures and the export process are loaded by name, and
are tested through the command, pytest and an export.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tools.clone import project_root

_NAME = re.compile(r"\bharness(?:[./]\w+)+")
_IMPORT = re.compile(r"^ *from (harness[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)
# Modules that are loaded by name, and the folder of the tests that go through them.
LOADED_BY_NAME: Mapping[str, str] = {
    "harness.__main__": "tests/scripts",
    "harness.cli.reproduce": "tests/cli",
    "harness.export.child.localise": "tests/export",
    "harness.export.child.main": "tests/export",
    "harness.plugin.fixtures": "tests/plugin",
}


@cache
def modules() -> Mapping[str, Path]:
    """The modules of ``harness`` by name, with their files, without empty packages."""
    root = project_root()
    files = (f.relative_to(root) for f in (root / "harness").rglob("*.py"))
    return {
        ".".join(f.with_suffix("").parts): f
        for f in sorted(files)
        if f.name != "__init__.py" and "migrations" not in f.parts
    }


@cache
def _mentions(folder: str) -> Mapping[Path, frozenset[str]]:
    """The modules that each Python file of a folder imports, or names in a string."""
    root = project_root()
    found = {f.relative_to(root): frozenset(_named(f)) for f in (root / folder).rglob("*.py")}
    return dict(sorted(found.items()))


def _named(file: Path) -> Iterator[str]:
    text = file.read_text("utf-8")
    for word in _NAME.findall(text):  # monkeypatch names a member of the module
        name = word.removesuffix(".py").replace("/", ".")
        yield from (name, name.rpartition(".")[0])
    for package, names in _IMPORT.findall(text):
        yield from (f"{package}.{name}" for name in re.findall(r"\w+", names))


def direct_tests(module: str) -> list[Path]:
    """The tests that have the module's name, or else those that import it."""
    package, stem = module.split(".")[1], module.rpartition(".")[2]
    files = _mentions("tests")
    own = [
        file
        for file in files
        if file.parts[1] == package
        and file.name.startswith("test_")
        and (stem in file.parts[2:-1] or f"{file.stem}_".startswith(f"test_{stem}_"))
    ]
    users = (file for file, named in files.items() if module in named)
    return own or [file for file in users if file.parts[1] not in ("docs", "tools")]


def find_tests(module: str) -> list[Path]:
    """The tests of a module, as paths from the root of the clone; none if it has no test."""
    if module in LOADED_BY_NAME:
        return [Path(LOADED_BY_NAME[module])]
    if found := direct_tests(module):
        return found
    names = {file: name for name, file in modules().items()}
    users = [f for f, named in _mentions("harness").items() if module in named and f in names]
    return sorted({file for user in users for file in direct_tests(names[user])})


def main(arguments: list[str]) -> int:
    """Prints the tests of each file; 1 when one has none."""
    found = {file: find_tests(".".join(Path(file).with_suffix("").parts)) for file in arguments}
    for file, tests in found.items():
        print("\n".join(map(str, tests)) or f"{file} has no test")
    return 0 if all(found.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
