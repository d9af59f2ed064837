"""Every derived file is sealed: what was changed on the disk is made again, or named.

The kinds of the cache are listed here, so that a new one has to say what protects it. A run fills
a cache; each file of it that has no seal fails.
"""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.formats.schema import BPTE, PTE, load_schema
from harness.run.pipeline import RunOptions, run_cases
from harness.system import artifact_cache
from harness.system.paths import import_root
from tests.thorough import amount

SEED = 20261127
FLIPS = amount(20, 300)
SEALED = {
    "executorch-python",
    "firmware",
    "fvp",
    "guest",
    "npu-kernel",
    "programs",
    "schemas",
    "suite-exports",
    "wheels",
}
# Trees that a build tool goes on with: its inputs decide, and what it makes is sealed elsewhere.
NOT_SEALED = {
    "ccache": "ccache checks each entry itself",
    "executorch": "a build tree, see build_tree.py; the ELF is below firmware",
    "executorch-ci": "copies of a checkout with its own builds; its files are compared each time",
    "zephyr": "a build tree, see build_tree.py; the ELF is below firmware",
    "scratch": "removed at the end of the run that made it",
}


def unsealed(cache: Path) -> list[str]:
    """Files that no valid entry has, by their names below the cache."""
    entries = [file.parent for file in cache.rglob(artifact_cache.ENTRY)]
    found = [path for path in cache.rglob("*") if path.is_file() or path.is_symlink()]
    names = []
    for path in found:
        kind = path.relative_to(cache).parts[0]
        within = [place for place in entries if place in path.parents]
        whole = any(artifact_cache.check(place) is not None for place in within)
        if kind not in NOT_SEALED and not whole and path.suffix != ".lock":
            names.append(str(path.relative_to(cache)))
    return sorted(names)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of a run on an NPU: program, firmware, the NPU model's library, schemas."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIL_HOME", str(home))
        (record,) = run_cases([Case("corstone-300-u55-128", "add")], RunOptions(strict=False))
    assert record.verdict.passed, record.cause
    return home / "cache"


def test_every_kind_of_the_cache_says_what_protects_it() -> None:
    call = re.compile(r"cache_dir\(\s*\"([^\"]+)\"")
    sources = (import_root() / "harness").rglob("*.py")
    kinds = {kind for file in sources for kind in call.findall(file.read_text())}
    assert kinds == SEALED | set(NOT_SEALED)


def test_all_that_a_run_leaves_in_the_cache_is_sealed(filled: Path) -> None:
    assert {"programs", "firmware", "npu-kernel", "schemas"} <= {p.name for p in filled.iterdir()}
    assert unsealed(filled) == []


def test_a_file_without_a_seal_is_found(filled: Path, tmp_path: Path) -> None:
    shutil.copytree(filled / "schemas", tmp_path / "cache" / "schemas")
    (tmp_path / "cache" / "schemas" / "program-1.bfbs").write_bytes(b"who made this?")
    assert unsealed(tmp_path / "cache") == ["schemas/program-1.bfbs"]


def test_a_flipped_byte_of_any_derived_file_is_noticed(filled: Path, tmp_path: Path) -> None:
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    for entry in sorted(filled.rglob(artifact_cache.ENTRY)):
        place = tmp_path / "place"
        shutil.copytree(entry.parent, place, symlinks=True)
        whole = artifact_cache.check(place)
        assert whole is not None
        for name in [*whole.files, artifact_cache.ENTRY]:
            content = (place / name).read_bytes()
            for at in chance.choices(range(len(content)), k=FLIPS if content else 0):
                flip = 1 << chance.randrange(8)
                damaged = bytes([*content[:at], content[at] ^ flip, *content[at + 1 :]])
                (place / name).write_bytes(damaged)
                try:
                    found = artifact_cache.check(place)
                except artifact_cache.NotAsStored:
                    continue
                assert found == whole, f"{entry.parent}/{name}, byte {at} ^ {flip}"
            (place / name).write_bytes(content)
        shutil.rmtree(place)


@pytest.mark.parametrize("file", [PTE, BPTE])
def test_a_damaged_schema_is_compiled_again(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was only asked whether it existed: a flipped byte ended every later run as a defect of
    the harness, and one gave other sizes."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path))
    print(f"seed {SEED}")
    chance, whole = random.Random(SEED), load_schema(file)
    (stored,) = tmp_path.rglob("*.bfbs")
    content = stored.read_bytes()
    for _ in range(20):
        at = chance.randrange(len(content))
        stored.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert load_schema(file) == whole
        assert stored.read_bytes() == content
        stored.write_bytes(content[:at])
        assert load_schema(file) == whole
