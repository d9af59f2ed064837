"""The names of a run's files: what stored runs are called, and what the C++ runner makes of it."""

from __future__ import annotations

import os
import re
import tracemalloc
from pathlib import Path

from harness.sim.run_files import (
    input_name,
    output_base,
    output_name,
    program_name,
    read_output,
    written_outputs,
)
from tools.clone import project_root


def test_the_names_of_stored_runs() -> None:
    """``hil judge`` reads run directories of before: a name that changes loses them."""
    assert program_name(Path("x/ds_cnn.bpte")) == "program.bpte"
    assert program_name(Path("x/anything")) == "program.pte"
    assert input_name(1, 2) == "s1i2.bin"
    assert output_name(output_base(1), 2) == "s1-2.bin"


def test_the_runner_names_its_outputs_alike() -> None:
    """The format of the C++ runner, the other owner of the part behind the base."""
    source = (project_root() / "targets" / "runner" / "runner.cpp").read_text()
    (said,) = re.findall(r'"(%s[^"]*\.bin)"', source)
    assert said.replace("%zu", "%d") % ("base", 3) == output_name("base", 3)


def test_no_two_files_of_a_run_share_a_name() -> None:
    names = [program_name(Path("a.pte"))]
    for k in range(12):
        names += [input_name(k, n) for n in range(12)]
        names += [output_name(output_base(k), n) for n in range(12)]
    assert len(set(names)) == len(names)


def test_outputs_of_one_set_in_order_up_to_a_gap(tmp_path: Path) -> None:
    """The eleventh comes after the tenth; a link and what lies behind a gap are not taken."""
    for index in [*range(11), 12]:
        (tmp_path / output_name("s0", index)).write_text("x")
    (tmp_path / output_name("s1", 0)).symlink_to("/etc/passwd")
    found = [file.name for file in written_outputs(tmp_path, 0)]
    assert found == [output_name("s0", index) for index in range(11)]
    assert list(written_outputs(tmp_path, 1)) == []


def test_an_output_is_not_read_beyond_its_expected_size(tmp_path: Path) -> None:
    """Two gigabytes of nothing are a wrong size, and neither memory nor time."""
    with (tmp_path / "big").open("wb") as file:
        file.write(b"abcd")
        file.truncate(2 << 30)
    tracemalloc.start()
    assert read_output(tmp_path / "big", 16) == (b"abcd" + bytes(12), 2 << 30)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_what_is_not_a_file_is_not_an_output(tmp_path: Path) -> None:
    """A FIFO would be waited for, a link leads anywhere."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").mkdir()
    for name in ("fifo", "link", "folder", "absent"):
        assert read_output(tmp_path / name, 16) is None
