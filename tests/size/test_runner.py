"""The runner's own ELF: its totals are those of the toolchain, and growth in it has a name."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.config.budgets import Budgets
from harness.config.case import RUNNER, Case
from harness.config.loading import load_target
from harness.config.target import Region
from harness.firmware.sources.bundled import build
from harness.formats.linker_map import read_map
from harness.judge.reference import Acceptance, propose
from harness.run.gate import Gate, Measured, hold
from harness.size.anatomy import Anatomy, Part, difference, sentences
from harness.size.elf_anatomy import LOAD_IMAGE, section_parts
from harness.size.measure import figures_of_firmware, measure_file
from harness.system import paths
from tests.size.test_elf_anatomy import REGIONS, SOURCE, linked
from tools.clone import project_root

TARGET = "corstone-300-m55"


@dataclass(frozen=True)
class Runner:
    elf: Path
    map: Path


@pytest.fixture(scope="module")
def runner() -> Runner:
    firmware = build(load_target(TARGET))
    return Runner(firmware.elf, firmware.map)


def regions() -> list[Region]:
    return load_target(TARGET).memory


@pytest.fixture(scope="module")
def anatomy(runner: Runner) -> Anatomy:
    return measure_file(runner.elf, regions(), runner.map)


def test_nearly_everything_is_attributed(anatomy: Anatomy) -> None:
    loaded = sum(p.bytes for p in anatomy.parts if p.path[1] != "reserved")
    missing = anatomy.unknown
    print(f"{loaded} loaded bytes, {missing} of them without a name")
    assert missing <= 0.005 * loaded


def test_totals_agree_with_size_and_map(runner: Runner, anatomy: Anatomy) -> None:
    """Section by section with `arm-none-eabi-size -A` and the map; by region with the sections."""
    run = ["arm-none-eabi-size", "-A", runner.elf]
    listing = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"^(\.\S+)\s+(\d+)\s+(\d+)$", listing, re.M)
    sizes = {name: int(size) for name, size, address in rows if address != "0"}
    ours: dict[str, int] = {}
    by_region: dict[str, int] = {}
    for part in anatomy.parts:
        if part.path[1] != LOAD_IMAGE:
            ours[part.path[2]] = ours.get(part.path[2], 0) + part.bytes
            by_region[part.path[0]] = by_region.get(part.path[0], 0) + part.bytes
    assert ours == {name: size for name, size in sizes.items() if size}
    outputs = {s.name: s.size for s in read_map(runner.map).sections}
    assert ours == {name: outputs[name] for name in ours}
    sections = section_parts(runner.elf, regions())
    assert group(anatomy.parts) == group(sections)
    assert by_region == group(p for p in sections if p.path[1] != LOAD_IMAGE)


def group(parts: Iterable[Part]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for part in parts:
        sizes[part.path[0]] = sizes.get(part.path[0], 0) + part.bytes
    return sizes


# What newlib wants from an operating system as soon as somebody calls printf.
STUBS = """extern "C" { void *__dso_handle = nullptr;
int _close(int) { return -1; } int _fstat(int, void *) { return -1; }
int _isatty(int) { return 0; } int _lseek(int, int, int) { return -1; }
int _read(int, void *, int) { return 0; } int _write(int, const void *, int n) { return n; }
void *_sbrk(int) { return nullptr; } }"""
ENTRY = "int run(int argc, const char* const* argv) {"
CHANGED = "targets/runner/runner.cpp"


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In one place for all changes: what is not changed is then compiled once."""
    sources = tmp_path_factory.mktemp("sources")
    for folder in ("targets", "cmake"):
        shutil.copytree(project_root() / folder, sources / folder)
    return sources


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("before", "within", "says"),
    [
        ("static volatile char forgotten[300];", "forgotten[argc] = 1;", "300 B: added forgotten"),
        (
            "}\n#include <cstdio>\n" + STUBS + "\nnamespace hil {",
            'std::printf("%d", argc);',
            r"\d,?\d\d\d B: .*libc",
        ),
    ],
    ids=["buffer", "printf"],
)
def test_planted_growth(
    anatomy: Anatomy,
    copied: Path,
    before: str,
    within: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same build with a line more in one function."""
    text = (project_root() / CHANGED).read_text()
    assert text.count(ENTRY) == 1
    (copied / CHANGED).write_text(text.replace(ENTRY, f"{before}\n{ENTRY}\n  {within}"))
    monkeypatch.setattr(paths, "data_root", lambda: copied)
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    firmware = build(load_target(TARGET))
    assert_growth_is_named(anatomy, measure_file(firmware.elf, regions(), firmware.map), says)


def test_growth_of_a_small_program(tmp_path: Path) -> None:
    """The same of a program of one file."""
    anatomies = []
    planted = "static volatile char forgotten[300]; forgotten[1] = 1;"
    grown = SOURCE.replace("main() {", f"main() {{ {planted}")
    for name, source in (("before", SOURCE), ("after", grown)):
        (tmp_path / name).mkdir()
        program = linked(tmp_path / name, source)
        anatomies.append(measure_file(program.elf, REGIONS, program.map))
    assert_growth_is_named(*anatomies, "300 B: added forgotten")


def assert_growth_is_named(before: Anatomy, after: Anatomy, says: str) -> None:
    said = sentences([c for c in difference(before, after).parts if c.delta > 0])
    print("\n".join(said[:8]))
    assert re.search(says, "\n".join(said[:3]))
    gate = gated(before, after)
    assert gate.failed
    assert re.search(says, gate.message())


def gated(accepted: Anatomy, now: Anatomy) -> Gate:
    before = measured(accepted)
    stages, anatomies = (before.stage,), {"gcc": accepted}
    reference = propose(None, Acceptance("gcc", "-", "-", stages, before.figures, anatomies))
    return hold(measured(now), reference, Budgets())


def measured(anatomy: Anatomy) -> Measured:
    names = sorted({part.path[0] for part in anatomy.parts})
    figures = figures_of_firmware(anatomy.parts, names)
    return Measured(Case(TARGET, RUNNER), "firmware", "gcc", anatomy, figures)


def test_the_accepted_runner_passes(anatomy: Anatomy) -> None:
    assert not gated(anatomy, anatomy).failed
