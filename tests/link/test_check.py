"""Protects `hil link check`: a hook passes only when an override would really be called."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import NotThere, UsageError
from harness.formats.elf_overlap import SectionsOverlap
from harness.link.check import Checked, check, require_no_overlap
from tests.formats.test_elf_overlap import linked
from tests.link.plants import _FILES, Plant, Project

HOOK = "arm_ethos_io_memcpy"
_DEFAULT = _FILES["io_default.c"]


def _assert_overridable(elf_or_build: Path, symbol: str) -> Checked:
    checked = check(elf_or_build, [symbol], lambda _m: None)
    assert checked.holds, checked.text()
    return checked


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where one project after another is built."""
    return tmp_path_factory.mktemp("hooks")


def _build(folder: Path, **changes: object) -> Path:
    plant = Plant("hook", "", "", "", (), (), "", **changes)  # type: ignore[arg-type]
    project = Project(plant, folder / "source", folder / "build")
    done = project.configure_and_build(fixed=False)
    assert done.returncode == 0, done.stdout
    return project.build


def _failed(build: Path) -> set[str]:
    return {f.check for f in check(build, [HOOK], lambda _m: None).findings if not f.ok}


def test_a_weak_default_alone_in_its_file_is_a_hook(folder: Path) -> None:
    build = _build(folder)
    checked = _assert_overridable(build, HOOK)
    assert len(checked.findings) == 5
    assert _assert_overridable(build / "runner.elf", HOOK) == checked


def test_a_strong_override_in_the_application_is_seen(folder: Path) -> None:
    override = f"void {HOOK}(void *to, const void *from, unsigned size) {{ }}\n"
    build = _build(folder, wrong={"log.c": _FILES["log.c"] + override})
    text = _assert_overridable(build, HOOK).text()
    assert "log.c.obj replaced libbackend.a(io_default.c.obj)" in text


def test_a_strong_default_is_not_a_hook(folder: Path) -> None:
    strong = _DEFAULT.replace("__attribute__((weak)) ", "")
    assert _failed(_build(folder, wrong={"io_default.c": strong})) == {"default_is_weak"}


def test_a_default_next_to_its_caller_is_not_a_hook(folder: Path) -> None:
    both = _FILES["ethos.c"] + _DEFAULT
    build = _build(folder, wrong={"ethos.c": both}, settings={"BACKEND": "ethos.c"})
    assert {"default_is_alone", "called_across_files"} <= _failed(build)


def test_a_static_copy_is_found(folder: Path) -> None:
    copy = f"static __attribute__((noinline)) int {HOOK}(int a) {{ return a + 5; }}\n"
    used = copy + _FILES["log.c"].replace("a + level", f"{HOOK}(a) + level")
    assert "not_inlined" in _failed(_build(folder, wrong={"log.c": used}))


def test_an_unused_hook_is_not_proven(folder: Path) -> None:
    silent = _FILES["ethos.c"].replace(f"{HOOK}(to, from, 16);", "")
    build = _build(folder, wrong={"ethos.c": silent})
    assert "called_across_files" in _failed(build)


def test_without_a_build_directory_nothing_is_proven(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "x.elf").write_bytes(b"")
    with pytest.raises(UsageError, match="no build directory above"):
        check(tmp_path / "x.elf", [HOOK], lambda _m: None)
    with pytest.raises(UsageError, match="no file or directory"):
        check(tmp_path / "none", [HOOK], lambda _m: None)
    checked = check(_build(folder), ["core_allocate"], lambda _m: None)
    assert not checked.holds
    assert "not proven overridable" in checked.text()


def test_a_program_that_overwrites_itself_is_named(tmp_path: Path) -> None:
    with pytest.raises(SectionsOverlap, match=r"\.data .* lies over \.text"):
        require_no_overlap(linked(tmp_path, ram="0x31000000"))


def test_a_whole_build_is_looked_at(folder: Path) -> None:
    programs = require_no_overlap(_build(folder))
    assert [Path(program).name for program in programs] == ["runner.elf"]


def test_what_is_not_there_is_not_fine(tmp_path: Path) -> None:
    with pytest.raises(NotThere):
        require_no_overlap(tmp_path / "gone.elf")
