"""Protects explain and reduce on a large link: the one symbol that is missing is found among all.

CI links 500 objects of 100 symbols; ``HIL_LINK_OBJECTS`` asks for another number (2000 is the full
run, 40 s). The time is printed, never asserted.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from harness.formats.archive import write_archive
from harness.link.diagnose.explain import explain
from harness.link.reduce import reduce_build
from tests.link.arm_object import NewSymbol, write_object

OBJECTS, SYMBOLS = int(os.environ.get("HIL_LINK_OBJECTS", "500")), 100
_NINJA = """\
rule link
  command = arm-none-eabi-gcc -nostdlib -Wl,-e,0 {line} -o $out
  rspfile = $out.rsp
  rspfile_content = {objects}
build big.elf: link {objects} libwhole.a libcore.a
"""


def _write_link(root: Path, line: str) -> None:
    rng = random.Random(1)
    loose, archived = [], []
    (root / "o").mkdir(parents=True)
    for number in range(OBJECTS):
        symbols = [
            NewSymbol(f"module_{number}_function_number_{k}", "def", True)
            for k in range(SYMBOLS - 10)
        ]
        calls = {f"module_{rng.randrange(OBJECTS)}_function_number_{k}" for k in range(10)}
        symbols += [NewSymbol(name, "undef") for name in sorted(calls) if f"_{number}_" not in name]
        if number == OBJECTS - 1:
            symbols.append(NewSymbol("the_missing_one", "undef"))
        content = write_object(symbols)
        if number < OBJECTS // 2:
            (root / "o" / f"m{number}.o").write_bytes(content)
            loose.append(f"o/m{number}.o")
        else:
            defined = [s.name for s in symbols if s.state == "def"]
            archived.append((f"m{number}.o", content, defined))
    write_archive(root / "libwhole.a", archived)
    core = write_object([NewSymbol("the_missing_one", "def", True)])
    write_archive(root / "libcore.a", [("core.o", core, ["the_missing_one"])])
    (root / "build.ninja").write_text(_NINJA.format(line=line, objects=" ".join(loose)))


@pytest.mark.thorough
def test_the_archive_order_is_found_in_a_large_link(tmp_path: Path) -> None:
    root = tmp_path / "build"
    _write_link(root, "@$out.rsp libcore.a -Wl,--whole-archive libwhole.a -Wl,--no-whole-archive")
    start = time.monotonic()
    (failure,) = explain(root, lambda _m: None).failures
    explained = time.monotonic()
    reduced = reduce_build(root, tmp_path / "out", lambda _m: None)
    print(
        f"explain {explained - start:.1f} s, reduce {time.monotonic() - explained:.1f} s, "
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    assert (failure.symbol, failure.cause_kind) == ("the_missing_one", "archive_order")
    assert failure.definitions[0].object == "libcore.a(core.o)"
    assert set(reduced.objects) == {"libcore.a", "libwhole.a"}
    assert reduced.inputs_before == OBJECTS // 2 + 2
