"""ExecuTorch's error codes stand in C++ and in Python; this ties the two."""

from __future__ import annotations

import re
from pathlib import Path

from harness.observe.failures import ERROR_NAMES, named_code

CORE = Path(__file__).parents[2] / "targets" / "runner" / "core"


def test_the_runner_and_the_reader_have_the_same_error_codes() -> None:
    """Name by name and number by number; the runner prints what the reader looks up."""
    header = (CORE / "error.h").read_text()
    found = re.search(r"enum class (?:\[\[\w+\]\] )?Error\b[^{]*\{(.*?)\};", header, re.S)
    assert found is not None
    body = found[1]
    codes = {int(n, 16): name for name, n in re.findall(r"(\w+) = (0x[0-9a-fA-F]+)", body)}
    assert len(codes) == body.count("="), "a code of the header was not read"
    assert codes == ERROR_NAMES


def test_the_runner_names_every_code_as_the_reader_does() -> None:
    source = (CORE / "error.cpp").read_text()
    cases = re.findall(r'case Error::(\w+):\s*return "(\w+)";', source)
    assert [name for name, _ in cases] == list(ERROR_NAMES.values())
    assert all(name == said for name, said in cases)


def test_every_code_is_read_in_both_notations_and_by_name() -> None:
    for code, name in ERROR_NAMES.items():
        for said in (f"failed with status 0x{code:x}", f"error code {code}", f"answered {name}"):
            assert named_code(said.encode()) == (code, name), said
