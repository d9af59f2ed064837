"""Damaged files end in one clear error or in an anatomy that adds up: no traceback, no hang.

The seed is printed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from harness.core.errors import HarnessError
from harness.size.measure import measure_file
from tests.size.mutations import mutations
from tests.thorough import amount

COUNT = amount(300, 10_000)
SEED = 20260822
LONGEST_SECONDS = 20.0  # for a file that takes milliseconds when it is whole: a hang, not slowness

SOURCE = """
namespace app { struct Thing { int weigh(int a) const { return a * factor; } int factor = 3; };
static const char *const words[] = {"one", "two", "three"};
int table[64]; const char *word(int i) { return words[i % 3]; } }
extern "C" int main(int n, char **) {
  app::table[n & 63] = app::Thing{}.weigh(n); return app::word(n)[0] + app::table[1];
}
"""


def check(file: Path, what: str, whole: bytes, linker_map: Path | None = None) -> None:
    print(f"seed {SEED}, {COUNT} mutations of {what}")
    refused = 0
    for number, (kind, damaged) in enumerate(mutations(whole, COUNT, SEED)):
        print(f"mutation {number}: {kind}")
        file.write_bytes(damaged)
        started = time.monotonic()
        error = measured_or_refused(file, linker_map)
        if error is not None:
            refused += 1
            assert error.exit_code == 2, error
            assert "offset" in error.facts or linker_map is not None, error
        assert time.monotonic() - started < LONGEST_SECONDS
    assert 0 < refused < COUNT, f"{refused} refused: the damage does not reach what it should"


def measured_or_refused(file: Path, linker_map: Path | None) -> HarnessError | None:
    try:
        anatomy = measure_file(file, (), linker_map)
    except HarnessError as error:
        return error
    assert anatomy.total == sum(p.bytes for p in anatomy.parts)
    return None


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache must neither help nor be filled."""
    schemas = Path(os.environ.get("HIL_HOME", ".hil")).absolute() / "cache" / "schemas"
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    if schemas.is_dir():
        shutil.copytree(schemas, tmp_path / "home" / "cache" / "schemas")


@pytest.mark.parametrize("compile_target", ["cortex-m55", "ethos-u55-128"])
def test_programs(compile_target: str, programs: dict[str, Path], tmp_path: Path) -> None:
    whole = programs[f"{compile_target}/add"].read_bytes()
    check(tmp_path / "x.pte", f"{compile_target}/add", whole)


@pytest.mark.parametrize("with_map", [False, True])
def test_elf(with_map: bool, tmp_path: Path) -> None:
    source, elf = tmp_path / "main.cpp", tmp_path / "whole"
    linker_map = tmp_path / "whole.map"
    source.write_text(SOURCE)
    run = [
        "arm-none-eabi-g++",
        "-g",
        "-mcpu=cortex-m55",
        "-ffunction-sections",
        "--specs=nosys.specs",
        "--specs=nano.specs",
        "-nostartfiles",
        f"-Wl,-Map={linker_map}",
        "-Wl,--gc-sections,-emain",
        "-o",
        str(elf),
        str(source),
    ]
    subprocess.run(run, check=True, capture_output=True, timeout=60)
    check(tmp_path / "x", "an ELF", elf.read_bytes(), linker_map if with_map else None)
