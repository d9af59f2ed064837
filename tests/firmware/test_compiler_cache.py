"""Equal compilations are made once, and what is built is the same with and without that."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.config.loading import load_target
from harness.firmware import step
from harness.firmware.source import Firmware
from harness.firmware.sources.bundled import build
from harness.system import toolchain
from tests.firmware.test_firmware import project, source

__all__ = ["project"]  # the fixture: a runner of one file

SOURCE = "const char* text = __FILE__;\nint main() { return KNOWN + (text == nullptr); }\n"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if toolchain.find("ccache") is None:
        pytest.skip("there is no ccache")
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def counted(kept: Path, what: str) -> int:
    said = subprocess.run(
        ["ccache", "--print-stats"],
        env={"CCACHE_DIR": str(kept), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return int(dict(line.split("\t") for line in said.splitlines())[what])


def built(**options: str) -> Firmware:
    return build(load_target("t"), options=options)


def test_another_tree_compiles_nothing_anew(
    project: Path, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another state directory is another tree; a definition that differs is compiled."""
    source(project, SOURCE)
    first = built()
    misses = counted(kept, "cache_miss")
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "another"))
    second = built()
    assert first.directory != second.directory
    assert counted(kept, "cache_miss") == misses
    assert second.elf_sha256 == first.elf_sha256
    built(HIL_KNOWN="7")
    assert counted(kept, "cache_miss") > misses
    source(project, SOURCE.replace("nullptr", "0"))
    before = counted(kept, "cache_miss")
    built()
    assert counted(kept, "cache_miss") > before, "an edited source is compiled"


def test_the_code_is_the_same_without(
    project: Path, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source(project, SOURCE)
    first = built()
    find = toolchain.find
    monkeypatch.setattr(toolchain, "find", lambda name: None if name == "ccache" else find(name))
    assert step.launchers("C", "CXX") == {}
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "another"))
    misses = counted(kept, "cache_miss")
    second = built()
    assert counted(kept, "cache_miss") == misses, "it was not asked"
    assert second.key == first.key
    assert code(second, tmp_path) == code(first, tmp_path)


def code(firmware: Firmware, folder: Path) -> bytes:
    subprocess.run(
        ["objcopy", "-O", "binary", "-j", ".text", firmware.elf, folder / "code"], check=True
    )
    return (folder / "code").read_bytes()


def test_where_it_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the state; another place that the user names wins."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    monkeypatch.delenv("CCACHE_DIR")
    own = step.ccache(tmp_path / "tree")
    assert own["CCACHE_DIR"] == str(tmp_path / "hil" / "cache" / "ccache")
    assert own["CCACHE_BASEDIR"] == str(tmp_path / "tree")
    monkeypatch.setenv("CCACHE_DIR", "/elsewhere")
    assert step.ccache(tmp_path)["CCACHE_DIR"] == "/elsewhere"
