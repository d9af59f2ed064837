"""Protects the causes of failures that are not about an undefined symbol: the ABI that differs,
what fills a region, and that the facts behind a sentence are there as data."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness.formats.elf import read_elf
from harness.formats.linker_map import Contributor, Orphan, parse_map
from harness.link.failure import Failure, FailureKind, LinkCause
from harness.link.why.causes import attributes, difference, explain_overflow, without_objects

MAP = """\
Memory Configuration

Name             Origin             Length             Attributes
FLASH            0x0000000000000000 0x0000000000001000 xr
RAM              0x0000000020000000 0x0000000000000100 rw
*default*        0x0000000000000000 0xffffffffffffffff

Linker script and memory map

.text           0x0000000000000000       0x40
 .text          0x0000000000000000       0x40 a.o

model_sec       0x0000000020000000      0x200 load address 0x0000000000000040
 model_sec      0x0000000020000000      0x200 model.o
"""


def test_the_float_abi_differs(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int entry(int a) { return a; }\n")
    for name in ("hard", "soft"):
        subprocess.run(
            ["arm-none-eabi-gcc", "-mcpu=cortex-m55", f"-mfloat-abi={name}", "-c", "a.c", "-o",
             f"{name}.o"], cwd=tmp_path, check=True,
        )  # fmt: skip
    hard, soft = (attributes(read_elf(tmp_path / f"{n}.o")) for n in ("hard", "soft"))
    assert difference(hard, soft) == (
        "how float arguments are passed", "hard (VFP registers)", "soft (core registers)"
    )  # fmt: skip
    assert difference(hard, hard) is None


@pytest.mark.parametrize("kind", FailureKind)
def test_every_kind_has_cause_and_fix(kind: FailureKind) -> None:
    explained = without_objects(Failure(kind, "gnu", 1, "ld: it failed"))
    assert explained.cause_kind in LinkCause
    assert explained.cause
    assert explained.fix


def test_what_fills_a_region_is_there_as_data() -> None:
    failure = Failure(FailureKind.REGION_OVERFLOW, "gnu", 1, "", region="RAM", bytes=256)
    explained = explain_overflow(failure, parse_map(MAP), ["SECTIONS { .text : { *(.text) } }"])
    assert explained.contributors == (Contributor("model_sec", "model.o", 0x200, "model_sec"),)
    assert explained.orphans == (Orphan("model_sec", 0x200, "RAM", "FLASH", ("model.o",)),)
    assert explained.cause_kind is LinkCause.ORPHAN_SECTION
    assert "model_sec (512 bytes from model.o)" in explained.cause
    summary = json.loads(json.dumps(explained.summary()))
    assert summary["orphans"] == [
        {"section": "model_sec", "bytes": 512, "region": "RAM", "load_region": "FLASH",
         "files": ["model.o"]},
    ]  # fmt: skip
    assert summary["contributors"] == [
        {"section": "model_sec", "file": "model.o", "bytes": 512, "output_section": "model_sec"},
    ]
