"""ExecuTorch's wheel for AArch64: fetched by the real pip, kept, and why there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import InfraError
from harness.firmware.sources.wheel import LIBRARIES, runtime_wheel
from harness.system.files import sha256_of
from tests.firmware.wheel.wheels import VERSION, WHOLE, plant
from tests.thorough import cases

_LIBRARY = f"executorch/lib/{LIBRARIES[-1]}"


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where pip looks, and nowhere else; nothing is kept yet."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_it_is_fetched_once_and_what_is_needed_is_kept(shelf: Path) -> None:
    """Afterwards pip is not asked, so there may be no network."""
    planted = plant(shelf)
    wheel = runtime_wheel()
    assert (wheel.version, wheel.file, wheel.sha256) == (VERSION, planted.name, sha256_of(planted))
    assert wheel.sha256[:12] in wheel.note
    for name in LIBRARIES:
        assert (wheel.root / "lib" / name).read_text() == f"executorch/lib/{name}"
    kept = {path.name for path in wheel.root.parent.rglob("*") if path.is_file()}
    assert "large.py" not in kept
    assert planted.name not in kept, "it takes room that nobody needs"
    planted.unlink()
    assert runtime_wheel() == wheel


def test_without_a_wheel_the_next_step_is_reported(shelf: Path) -> None:
    """pip's own last words, the version, and what to do without a network."""
    with pytest.raises(InfraError, match=f"^pip has no ExecuTorch {VERSION}, ") as e:
        runtime_wheel()
    assert "No matching distribution found" in e.value.message
    assert "PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER" in str(e.value.hint)
    assert (e.value.kind, e.value.version) == ("no_wheel", VERSION)
    plant(shelf)
    assert runtime_wheel().version == VERSION, "the failure is not kept"


def test_another_version_is_not_taken(shelf: Path) -> None:
    """It could misread what the exporter writes."""
    plant(shelf, version="1.0.0")
    with pytest.raises(InfraError, match="No matching distribution"):
        runtime_wheel()


@pytest.mark.parametrize("left_out", cases(WHOLE[0], thorough=[WHOLE[1], _LIBRARY]))
def test_a_wheel_without_its_runtime_is_refused(shelf: Path, left_out: str) -> None:
    """As older ones are, before a linker says so in its own words."""
    plant(shelf, [name for name in WHOLE if name != left_out])
    with pytest.raises(InfraError) as e:
        runtime_wheel()
    assert left_out.startswith(e.value.missing)
    assert "executorch[ethos-u]==" in str(e.value.hint)


def test_one_that_was_not_unpacked_to_its_end_is_fetched_again(shelf: Path) -> None:
    plant(shelf)
    wheel = runtime_wheel()
    (wheel.root / "lib" / LIBRARIES[0]).write_text("half")
    assert (runtime_wheel().root / "lib" / LIBRARIES[0]).read_text() != "half"
