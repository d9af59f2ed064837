"""Protects what is told of a header that a compiler did not find: the one place where it is, and
nothing where that is not certain."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.link.build_failure import build_failure
from harness.link.missing_header import fix_for

_ERROR = "{source}:2:10: fatal error: {header}: No such file or directory\n"


@pytest.fixture
def application(tmp_path: Path) -> Path:
    """With the folder of Zephyr's headers beside it."""
    for name in (
        "app/CMakeLists.txt",
        "app/src/main.c",
        "app/src/util.h",
        "app/inc/proto.h",
        "app/lib/codec.h",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "zephyr" / "include" / "zephyr" / "drivers").mkdir(parents=True)
    (tmp_path / "zephyr" / "include" / "zephyr" / "drivers" / "gpio.h").write_text("")
    return tmp_path / "app"


def _fix(application: Path, header: str) -> str | None:
    source = str(application / "src" / "main.c")
    calls = [f"cc -I{application.parent}/zephyr/include -I{application}/lib -c {source}"]
    return fix_for(header, f"{source}:2", source, calls)


def test_a_header_of_zephyr_that_has_moved(application: Path) -> None:
    assert _fix(application, "drivers/gpio.h") == (
        f"Write #include <zephyr/drivers/gpio.h> in {application}/src/main.c:2, in place of "
        "drivers/gpio.h."
    )


def test_a_name_that_is_spelt_almost_right(application: Path) -> None:
    assert "Correct utils.h" in (_fix(application, "utils.h") or "")
    assert f"there is util.h in {application}/src" in (_fix(application, "utils.h") or "")
    assert f"there is codec.h in {application}/lib" in (_fix(application, "codecs.h") or "")


def test_a_folder_of_the_application_that_is_no_include_folder(application: Path) -> None:
    assert "target_include_directories(TARGET PRIVATE inc)" in (_fix(application, "proto.h") or "")
    (application / "other").mkdir()
    (application / "other" / "proto.h").write_text("")
    assert _fix(application, "proto.h") is None  # which of the two is not known


def test_a_header_that_is_nowhere(application: Path) -> None:
    assert _fix(application, "vendor/sdk.h") is None


def test_a_log_with_the_compilers_call_says_so(application: Path) -> None:
    """And a directory, whose calls are known though its compiler does not print them."""
    source = application / "src" / "main.c"
    call = f"FAILED: main.o\ncc -I{application.parent}/zephyr/include -o main.o -c {source}\n"
    error = _ERROR.format(source=source, header="drivers/gpio.h")
    for failure in (build_failure(call + error), build_failure(error, [call])):
        assert failure is not None
        assert failure.fix.startswith("Write #include <zephyr/drivers/gpio.h>")
    alone = build_failure(error)
    assert alone is not None
    assert alone.fix.startswith("Add the folder that has drivers/gpio.h")
