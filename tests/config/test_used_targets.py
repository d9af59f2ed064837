"""What a target's file says is run as it is given, or refused at its line: the fuzz goes on to
where the fields are used, and any exception but the harness's own fails."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.config.loading import load_target, target_files
from harness.config.models import find_model
from harness.config.target import Target
from harness.core.errors import HarnessError, TargetError, ToolMissing
from harness.firmware.source import BuildRequest, source_named
from harness.run.subjects import request_of
from harness.sim import fvp, qemu, qemu_command
from harness.sim.simulator import GuestJob, pick
from harness.system import toolchain
from tests.thorough import amount

SEED = 20261127
COUNT = amount(400, 10_000)
ODD: tuple[Any, ...] = (
    *(
        "",
        "x",
        "true",
        "../x",
        "/usr/bin/qemu-system-arm",
        "a b",
        "a,b",
        "{file}",
        "{0}",
        "{",
        "%s",
    ),
    *("-1", "0x", "1e9", "2X", "M", "ethos-u99", "cortex-m99", "ü", "a" * 300, "$(id)", "*", "\n"),
    *(0, -1, 1, 1 << 40, 1.5, True, None, [], ["x"], {}, {"x": "y"}),
)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every value of a document, sections and lists among them."""
    if path:
        yield path
    if isinstance(data, dict | list):
        for key in data if isinstance(data, dict) else range(len(data)):
            yield from places(data[key], (*path, key))


def changed(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    pairs = dict(data) if isinstance(data, dict) else list(data)
    pairs[path[0]] = changed(data[path[0]], path[1:], value)
    return pairs


def use(target: Target) -> None:
    """All that a run makes of a target's file before it exports, builds and launches."""
    work, elf = Path("/tmp/work"), Path("/tmp/elf")
    request_of(find_model("add").name, target)
    for name in target.simulators.names:
        chosen = pick(target, str(name))
        source_named("bundled").key(BuildRequest(chosen.target, name))
        simulators = chosen.target.simulators
        if simulators.qemu is not None:
            qemu_command.memory_limit(simulators.qemu)
            qemu_command.argv("qemu", simulators.qemu, elf, ["-m", "x"])
            qemu.heap_info(chosen.target)
        if simulators.fvp is not None and simulators.fvp.semihosting is not None:
            job = GuestJob(elf, ("-m", "x"), work, chosen.target.limits)
            fvp.argv("fvp", simulators.fvp, job)
        chosen.require()


def test_a_field_of_a_target_is_refused_or_usable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"seed {SEED}")
    monkeypatch.setattr(toolchain, "install", lambda *_: False)
    chance = random.Random(SEED)
    files = [path for path in target_files().values() if "zephyr" not in path.name]
    used = 0
    for number in range(COUNT):
        data = yaml.safe_load(chance.choice(files).read_text())
        path = chance.choice(list(places(data)))
        value = chance.choice(ODD)
        print(f"{number}: {'.'.join(map(str, path))} = {value!r}")
        file = tmp_path / "board.yaml"
        file.write_text(yaml.safe_dump(changed(data, path, value)))
        try:
            use(load_target(str(file)))
            used += 1
        except HarnessError:
            continue
    assert 0 < used < COUNT


BOARD = {"extends": "corstone-300-m55", "description": "a board", "marker": "board"}


def board(tmp_path: Path, **qemu_settings: Any) -> Target:
    file = tmp_path / "board.yaml"
    file.write_text(yaml.safe_dump({**BOARD, "simulators": {"qemu": qemu_settings}}))
    return load_target(str(file))


@pytest.mark.parametrize("executable", ["true", "/usr/bin/qemu-system-arm", "my-qemu"])
def test_the_named_program_is_run(
    executable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A simulator of somebody's own: with the version that it prints, or an unknown one."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    own = tmp_path / "my-qemu"
    own.write_text("#!/bin/sh\necho built by me\n")
    own.chmod(0o755)
    chosen = pick(board(tmp_path, executable=executable), "qemu")
    tool = chosen.require()
    assert tool.path.name == Path(executable).name
    assert tool.path.is_absolute()
    known = {"my-qemu": "unknown"}.get(executable)
    assert tool.version == known if known else tool.version[0].isdigit()


def test_a_program_that_is_nowhere_is_named(tmp_path: Path) -> None:
    chosen = pick(board(tmp_path, executable="qemu-of-nobody"), "qemu")
    with pytest.raises(ToolMissing, match="qemu-of-nobody is not installed") as caught:
        chosen.require()
    assert "name another program there" in str(caught.value.hint)


@pytest.mark.parametrize("memory", ["2X", "M", "0", "-1", "1.5G", "two"])
def test_a_memory_that_is_not_a_size_is_refused(memory: str, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"board\.yaml:\d+: .*memory"):
        board(tmp_path, memory=memory)
