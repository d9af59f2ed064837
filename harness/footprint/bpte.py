"""The anatomy of a ``.bpte``: a program bundled with test cases.

Layout: ``devtools/bundled_program/schema/bundled_program_schema.fbs`` of ExecuTorch 1.5.1.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.footprint import gaps
from harness.footprint.anatomy import Anatomy, Tally
from harness.footprint.claims import Claims
from harness.formats.damage import DamagedFile
from harness.formats.flatbuffer import FlatBuffer, Table
from harness.formats.schema import Schema

_GENERAL = ("bundle",)
ProgramAnatomy = Callable[[memoryview], Anatomy]


def anatomy(view: memoryview, schema: Schema, of_program: ProgramAnatomy) -> Anatomy:
    """Raises DamagedFile for a file that does not keep to the format."""
    buffer = FlatBuffer(view, schema, len(view))
    root, tally = buffer.root(), Tally()
    claims = Claims(buffer, _GENERAL)
    claims.bytes(0, 8, (*_GENERAL, "root offset and identifier"))
    program = root.get("program")
    if program is None or not claims.reserve(program, (*_GENERAL, "program length")):
        raise DamagedFile("there is no program in this bundle", root.pos)
    for suite in root.items("method_test_suites"):
        _claim_suite(suite, claims)
    claims.table(root, (*_GENERAL, "root"))
    for gap in claims.account(tally):
        foreign = buffer.has_unknown_fields
        gaps.classify(view, gap.start, gap.end, _GENERAL, tally, foreign=foreign)
    try:
        inner = of_program(program.raw())
    except DamagedFile as error:
        raise error.within("the bundled program", program.data) from None
    tally.extend(inner.parts)
    return Anatomy("bpte", len(view), tally.parts(), inner.memory)


def _claim_suite(suite: Table, claims: Claims) -> None:
    method = suite.get("method_name") or "(no name)"
    for number, case in enumerate(suite.items("test_cases")):
        for name in ("inputs", "expected_outputs"):
            path = (*_GENERAL, method, f"test case {number}", name.replace("_", " "))
            for index, value in enumerate(case.items(name)):
                claims.table(value, (*path, str(index)))
            claims.field(case, name, path)
        claims.table(case, (*_GENERAL, method, "tables"))
    claims.table(suite, (*_GENERAL, method, "tables"))
