"""Protects the one reader of ELF: it says what binutils says, and damage is one error, soon."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.errors import MalformedFile
from harness.formats.elf import (
    EM_AARCH64,
    EM_ARM,
    MAGIC,
    SHF_ALLOC,
    SHT_ARM_ATTRIBUTES,
    ElfFile,
    read_elf,
    relocation_name,
)
from tests.link.arm_object import NewSymbol, write_object
from tests.size.mutations import mutations

COUNT = int(os.environ.get("HIL_FUZZ_MUTATIONS", "1500"))
SEED = int(os.environ.get("HIL_FUZZ_SEED", "20260901"))
LONGEST_SECONDS = 5.0  # for a file that is read in a millisecond: a hang, not slowness
SOURCE = """
int shared; __attribute__((weak)) int soft(int a) { return a; }
__attribute__((visibility("hidden"))) int kept(void) { return 1; }
static int own(int a) { return a + 1; }
int elsewhere(int); int entry(int a) { return elsewhere(own(a)) + shared; }
"""
PROGRAM = """
const char constant[1000] = {1}; char initialised[300] = {1}; char zeroed[5000];
int _start(void) { return constant[1] + initialised[1] + zeroed[1]; }
"""
ARM = ("arm-none-eabi-gcc", "-mcpu=cortex-m55", "-fcommon", "-O0", "-ffunction-sections")
KINDS = {  # little and big, 32 and 64 bit
    "arm": ARM,
    "arm big": (*ARM, "-mbig-endian"),
    "host": ("gcc", "-fcommon", "-O0", "-ffunction-sections"),
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    folder = tmp_path_factory.mktemp("files")
    (folder / "a.c").write_text(SOURCE)
    (folder / "program.c").write_text(PROGRAM)

    def compiled(kind: str, *words: str) -> Path:
        product = folder / f"{kind} {' '.join(words).replace('/', '_')}.o"
        if not product.exists():
            argv = [*KINDS[kind], *(words or ("-c", "a.c")), "-o", str(product)]
            subprocess.run(argv, cwd=folder, check=True)
        return product

    return compiled


@pytest.fixture(scope="module")
def program(compiled: Callable[..., Path]) -> Path:
    words = ("-nostdlib", "-Wl,--build-id=0x0123abcd", "-Wl,-Ttext=0x1000", "-Wl,-Tdata=0x20000000")
    return compiled("arm", *words, "program.c")


def printed(*argv: object) -> str:
    return subprocess.run(list(map(str, argv)), capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("kind", KINDS)
def test_symbols_are_those_of_nm(compiled: Callable[..., Path], kind: str) -> None:
    file = compiled(kind)
    nm = "nm" if kind == "host" else "arm-none-eabi-nm"
    expected = sorted(line.split()[-1] for line in printed(nm, "-g", file).splitlines())
    elf = read_elf(file)
    assert sorted(s.name for s in elf.globals) == expected
    binding = {s.name: s.binding for s in elf.symbols if s.defined}
    assert [binding[n] for n in ("soft", "kept", "own", "entry", "shared")] == [
        "weak",
        "hidden",
        "static",
        "strong",
        "common",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_relocation_has_its_function_and_section(
    compiled: Callable[..., Path], kind: str
) -> None:
    elf = read_elf(compiled(kind))
    (use,) = [r for r in elf.relocations() if elf.symbols[r.symbol].name == "elsewhere"]
    assert elf.sections[use.section].name == ".text.entry"
    assert elf.function_at(use.section, use.offset) == "entry"
    assert elf.function_at(use.section, 1 << 20) is None


def test_the_names_of_relocations_are_those_of_the_abi(compiled: Callable[..., Path]) -> None:
    elf = read_elf(compiled("arm"))
    kinds = {relocation_name(elf.machine_number, r.type) for r in elf.relocations()}
    said = printed("arm-none-eabi-readelf", "-rW", compiled("arm"))
    assert "R_ARM_THM_CALL" in kinds
    assert all(kind in said for kind in kinds)
    assert relocation_name(EM_AARCH64, 283) == "R_AARCH64_CALL26"
    assert relocation_name(62, 4) == "type 4"


@pytest.mark.parametrize("kind", KINDS)
def test_header_and_sections_are_those_of_readelf(compiled: Callable[..., Path], kind: str) -> None:
    elf = read_elf(compiled(kind))
    readelf = "readelf" if kind == "host" else "arm-none-eabi-readelf"
    said = printed(readelf, "-hSW", compiled(kind))
    assert f"ELF{elf.bits}" in said
    assert f"{elf.byte_order} endian" in said
    assert {"arm": "Arm (32 bit)", "arm big": "Arm (32 bit)"}.get(kind, elf.machine) == elf.machine
    names = [s.name for s in elf.sections]
    assert len(names) == int(said.split("Number of section headers:")[1].split()[0])
    assert all(name in said for name in names)
    text = next(s for s in elf.sections if s.name == ".text.entry")
    assert (text.kind, text.allocated, len(elf.content(text))) == ("code", True, text.size)


def test_a_program_has_segments_addresses_and_a_build_id(program: Path) -> None:
    elf = read_elf(program)
    assert elf.build_id == "0123abcd"
    size = {s.name: s.size for s in elf.symbols}
    assert (size["constant"], size["initialised"], size["zeroed"]) == (1000, 300, 5000)
    start = next(s for s in elf.symbols if s.name == "_start")
    assert (start.value & 1, elf.address(start)) == (1, start.value - 1)
    loaded = [s for s in elf.segments if s.size]
    assert any(s.run <= elf.address(start) < s.run + s.file_size for s in loaded)
    reserved = next(s for s in elf.sections if s.kind == "reserved")
    assert (reserved.name, elf.content(reserved)) == (".bss", b"")


def test_the_float_abi_is_in_the_build_attributes(compiled: Callable[..., Path]) -> None:
    """Tag_ABI_VFP_args is 28: 1 for the hard ABI, absent for the soft one."""
    hard, soft = (
        read_elf(compiled("arm", f"-mfloat-abi={n}", "-c", "a.c")) for n in ("hard", "soft")
    )
    assert (hard.attributes.get(28), soft.attributes.get(28)) == (1, None)
    assert hard.attributes[5] == "cortex-m55"
    assert hard.attributes[7] == ord("M")
    assert read_elf(compiled("arm big")).attributes[7] == ord("M")
    assert read_elf(compiled("host")).attributes == {}


def attributes(pairs: bytes, order: str = "<") -> bytes:
    file = b"\x01" + struct.pack(order + "I", 5 + len(pairs)) + pairs
    vendor = b"aeabi\0" + file
    return b"A" + struct.pack(order + "I", 4 + len(vendor)) + vendor


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (
            attributes(b"\x06\x15\x05cpu\0\x20\x01gnu\0\x43v\0\x07\x4d"),
            {6: 21, 5: "cpu", 67: "v", 7: 77},
        ),
        (attributes(b"\x46\x80\x01"), {70: 128}),
        (b"B" + attributes(b"\x06\x15")[1:], {}),
        (attributes(b"\x06\x15").replace(b"aeabi", b"other"), {}),
        (attributes(b"\x06\x80"), "is truncated"),
        (attributes(b"\x05cpu"), "is truncated"),
        (attributes(b"\x06" + b"\xff" * 64 + b"\x01"), "is truncated"),
        (attributes(b"\x06\x15")[:-1], "is truncated"),
        (b"A\0\0\0\0\0", "is truncated"),
    ],
)
def test_build_attributes(content: bytes, found: dict[int, int | str] | str) -> None:
    elf = ElfFile(one_section(content, SHT_ARM_ATTRIBUTES))
    if isinstance(found, dict):
        assert elf.attributes == found
        return
    with pytest.raises(MalformedFile, match=found):
        _ = elf.attributes


def one_section(content: bytes, kind: int, *, flags: int = 0) -> bytes:
    """A 32-bit Arm file of one section, without names."""
    header = (
        MAGIC
        + b"\x01\x01\x01"
        + bytes(9)
        + struct.pack("<HHIIIIIHHHHHH", 1, EM_ARM, 1, 0, 0, 52, 0, 52, 32, 0, 40, 2, 0)
    )
    row = struct.pack("<10I", 0, kind, flags, 0, 52 + 80, len(content), 0, 0, 4, 0)
    return header + bytes(40) + row + content


def note(name: bytes, content: bytes, kind: int) -> bytes:
    return struct.pack("<III", len(name), len(content), kind) + name + content


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (note(b"GNU\0", b"\x12" * 20, 3), "12" * 20),
        (note(b"ARM\0", b"\x12" * 20, 3) + note(b"GNU\0", b"\xab" * 4, 3), "abababab"),
        (note(b"GNU\0", bytes(4), 1), None),
        (b"", None),
        (b"12345678", None),
    ],
)
def test_the_build_id_among_the_notes(content: bytes, found: str | None) -> None:
    assert ElfFile(one_section(content, 7)).build_id == found


def test_what_a_program_is_linked_with(tmp_path: Path) -> None:
    """In the linker's order, with the dynamic linker; a static program has neither."""
    (tmp_path / "p.c").write_text(
        "double sin(double); int main(int n, char **v) { return sin(n); }\n"
    )
    for name, words in (("shared", ["-Wl,--no-as-needed", "-lm"]), ("static", ["-static", "-lm"])):
        argv = ["gcc", "-fno-builtin", "p.c", "-o", name, *words]
        subprocess.run(argv, cwd=tmp_path, check=True)
    shared, static = read_elf(tmp_path / "shared"), read_elf(tmp_path / "static")
    assert [name for name in shared.needed if name.startswith(("libm.", "libc."))] == [
        "libm.so.6",
        "libc.so.6",
    ]
    assert shared.interpreter is not None
    assert Path(shared.interpreter).is_absolute()
    assert (static.needed, static.interpreter) == ((), None)


def test_more_sections_than_the_header_can_say() -> None:
    """A count of 0, and the index 0xffff, stand in the first section header then."""
    whole = write_object([NewSymbol("f", "def", True)])
    header = bytearray(whole)
    (start,) = struct.unpack_from("<I", whole, 32)
    count, names = struct.unpack_from("<HH", whole, 48)
    struct.pack_into("<HH", header, 48, 0, 0xFFFF)
    struct.pack_into("<II", header, start + 20, count, names)
    assert ElfFile(bytes(header)).sections[1:] == ElfFile(whole).sections[1:]


def changed(at: int, code: str, *values: int) -> bytes:
    """An object whose header has other values at an offset."""
    data = bytearray(write_object([NewSymbol("f", "def", True), NewSymbol("g", "undef")]))
    struct.pack_into("<" + code, data, at, *values)
    return bytes(data)


def section_changed(number: int, field: int, value: int) -> bytes:
    (start,) = struct.unpack_from("<I", changed(0, ""), 32)
    return changed(start + number * 40 + field * 4, "I", value)


SYMTAB, STRTAB, RELOCATIONS = 4, 5, 3  # indices of the sections that write_object writes


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "0 bytes do not start with an ELF header"),
        (b"no ELF" * 20, "120 bytes do not start"),
        (changed(4, "B", 3), "no known class"),
        (changed(5, "B", 0), "no known class"),
        (changed(4, "B", 2)[:60], "the ELF header ends 4 bytes past"),
        (changed(46, "H", 39), "section headers of 39 bytes"),
        (changed(32, "I", 1 << 31), "the table of section headers ends"),
        (changed(48, "H", 0xFFFF), "the table of section headers ends"),
        (changed(50, "H", 99), "the names are in section 99 of 7"),
        (changed(42, "HH", 31, 1), "program headers of 31 bytes"),
        (changed(42, "HH", 32, 0xFFFF), "the table of program headers ends"),
        (section_changed(1, 5, 1 << 31), "section 1 ends"),
        (section_changed(1, 0, 1 << 20), "a name does not end inside its table"),
        (section_changed(SYMTAB, 6, 99), "the symbols' names are in section 99"),
        (section_changed(SYMTAB, 6, 0), "a name does not end inside its table"),
        (section_changed(SYMTAB, 5, 17), r"\.symtab ends inside an entry"),
        (section_changed(RELOCATIONS, 5, 7), r"\.rel\.data ends inside an entry"),
        (section_changed(STRTAB, 1, 8), "the symbols' names are in section 5"),
        (one_section(note(b"GNU\0", b"abcd", 3)[:-1], 7), "a note leaves"),
    ],
)
def test_each_damage_is_named_with_its_offset(data: bytes, says: str) -> None:
    with pytest.raises(MalformedFile, match=rf"^x\.o: .*{says}.* \(at offset \d+ = 0x") as caught:
        everything(ElfFile(data, "x.o"))
    assert caught.value.facts["offset"] == caught.value.offset


def test_damage_inside_another_file_is_reported_from_there() -> None:
    inner = MalformedFile("it is short", 4)
    assert str(inner.within("a.pte", 16)) == "a.pte: it is short (at offset 20 = 0x14)"


def test_a_stripped_file_has_no_sections_and_no_symbols() -> None:
    elf = ElfFile(changed(32, "I", 0))
    assert (elf.sections, elf.symbols, elf.build_id, elf.attributes) == ((), (), None, {})


def everything(elf: ElfFile) -> None:
    """All that the reader can be asked."""
    for section in elf.sections:
        _ = elf.content(section), section.kind, section.allocated and section.flags & SHF_ALLOC
    for symbol in elf.symbols:
        _ = elf.address(symbol), symbol.binding, symbol.in_section
    for relocation in elf.relocations():
        relocation_name(elf.machine_number, relocation.type)
    _ = elf.segments, elf.globals, elf.build_id, elf.attributes, elf.machine
    elf.function_at(1, 0)


def read_or_refused(data: bytes) -> bool:
    """False when the file is refused; any other exception, or a long time, fails the test."""
    started = time.monotonic()
    try:
        everything(ElfFile(data))
        read = True
    except MalformedFile:
        read = False
    assert time.monotonic() - started < LONGEST_SECONDS
    return read


def test_every_truncation_of_an_object_is_refused() -> None:
    whole = write_object([NewSymbol("f", "def", True), NewSymbol("g", "undef")])
    assert read_or_refused(whole)
    assert not any(read_or_refused(whole[:size]) for size in range(len(whole)))


@pytest.mark.parametrize("kind", [*KINDS, "program"])
def test_random_damage(compiled: Callable[..., Path], program: Path, kind: str) -> None:
    whole = (program if kind == "program" else compiled(kind)).read_bytes()
    print(f"seed {SEED}, {COUNT} mutations of {kind}")
    refused = 0
    for number, (what, damaged) in enumerate(mutations(whole, COUNT, SEED)):
        print(f"mutation {number}: {what}")
        refused += not read_or_refused(damaged)
    assert COUNT // 20 < refused < COUNT, f"{refused} refused: the damage does not reach its aim"


def test_random_headers() -> None:
    """Every field of the header and of the section headers, with values that lead astray."""
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    whole = write_object([NewSymbol(f"s{n}", "def", n % 2 == 0) for n in range(40)])
    (start,) = struct.unpack_from("<I", whole, 32)
    places = [*range(16, 52, 2), *range(start, len(whole), 4)]
    for _ in range(COUNT):
        data = bytearray(whole)
        for at in rng.sample(places, rng.choice((1, 1, 2, 4))):
            value = rng.choice(
                (0, 1, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, len(whole), rng.getrandbits(9))
            )
            data[at : at + 4] = struct.pack("<I", value)
        read_or_refused(bytes(data[: len(whole)]))


def test_names_that_never_end_are_refused_at_once() -> None:
    """Each of 3,000 symbols would have a name of up to 300,000 bytes."""
    whole = bytearray(write_object([NewSymbol("x" * 100, "def")] * 3000))
    names = ElfFile(bytes(whole)).sections[STRTAB]
    whole[names.offset + 1 : names.offset + names.size - 1] = b"x" * (names.size - 2)
    assert not read_or_refused(bytes(whole))
    assert read_or_refused(write_object([NewSymbol("x" * 60_000, "def")]))  # a long one of C++
