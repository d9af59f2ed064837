"""Protects `hil run` on a Zephyr target: it builds with west in the workspace of ZEPHYR_BASE and
runs what comes out, says how to get a workspace, and keeps and explains a build that fails."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.main import main
from harness.config.loading import load_target
from harness.core.errors import BuildError, TargetError, ToolMissing, UsageError
from harness.core.simulator_name import SimulatorName
from harness.firmware.source import BuildRequest
from harness.firmware.sources.bundled import SOURCE, build
from harness.firmware.step import take
from harness.firmware.zephyr import workspace
from harness.firmware.zephyr.west import PRODUCTS
from harness.firmware.zephyr.workspace import Compiler, find_workspace
from harness.link.diagnose.explain import explain
from tests.cli.conftest import Hil, Result
from tests.cli.conftest import hil as hil
from tests.link.recorded_programs import PROGRAMS
from tests.link.test_own_builds import LISTS, forgetful_kernels
from tests.link.test_runner_hook import HOOK
from tests.link.workspace import copy_workspace, enter, needs_real_zephyr
from tools.clone import project_root

OF_ADD = (  # its operators, and what these need
    *("op_quantize_per_tensor", "op_quantized_add", "op_dequantize_per_tensor"),
    *("checks", "elements", "layout"),
)


def _quiet(_message: str) -> None:
    pass


def _hil_run(hil: Hil, *target_and_models: str, **environment: str) -> Result:
    return hil("run", *target_and_models, "--simulator", "qemu", "--json", **environment)


@pytest.fixture
def home(tmp_path: Path, shared_hil_home: str) -> Path:
    """A state directory with the session's programs and a cache of firmware of its own."""
    programs = Path(shared_hil_home) / "cache" / "programs"
    programs.mkdir(parents=True, exist_ok=True)
    (tmp_path / "hil" / "cache").mkdir(parents=True)
    (tmp_path / "hil" / "cache" / "programs").symlink_to(programs)
    return tmp_path / "hil"


@pytest.mark.thorough
def test_every_kernel_is_built_with_west_and_passes(
    small_zephyr: Path, home: Path, hil: Hil, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(small_zephyr, monkeypatch)
    done = _hil_run(hil, "zephyr-corstone-300", "add", HIL_HOME=str(home))
    assert done.code == 0, done
    assert done.json["verdict"] == "PASS"


@pytest.fixture
def application(tmp_path: Path, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That of `hil init --zephyr`, in a repository of its own, where the test is."""
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    folder = tmp_path / "mine"
    done = CliRunner().invoke(main, ["init", "--zephyr", str(folder)])
    assert done.exit_code == 0, done.output
    monkeypatch.chdir(folder)
    return folder / "app"


def _kernels_of_add(folder: Path) -> Path:
    folder.mkdir()
    for file in (project_root() / "targets" / "runner" / "kernels").iterdir():
        if file.suffix != ".cpp" or file.stem in OF_ADD:
            (folder / file.name).symlink_to(file)
    return folder


def test_an_application_of_ones_own_is_built_and_run(
    small_zephyr: Path,
    application: Path,
    home: Path,
    hil: Hil,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the kernels of one program, whose folder the target names, and with the NPU's backend,
    whose copy it defines itself. Another firmware than the sample's, and a new one after an edit,
    whose failed build is kept and explained."""
    enter(small_zephyr, monkeypatch)
    with (application / "prj.conf").open("a") as file:
        file.write("CONFIG_HIL_ETHOSU=y\nCONFIG_HIL_ETHOSU_DOORBELL=y\n")
    with (application / "main.c").open("a") as file:
        file.write(
            f"void {HOOK}(char *to, const char *from, unsigned size) {{\n"
            "  while (size-- > 0) *to++ = (char)(*from++ ^ 1);\n}\n"
        )
    with (application.parent / "boards" / "my-zephyr.yaml").open("a") as file:
        file.write(f"cmake: {{HIL_KERNELS_DIR: {_kernels_of_add(tmp_path / 'kernels')}}}\n")
    done = _hil_run(hil, "my-zephyr", "add", HIL_HOME=str(home))
    assert done.code == 0, done
    assert done.json["verdict"] == "PASS"
    firmware = next((home / "cache" / "firmware").glob("*/firmware.json"))
    assert json.loads(firmware.read_text())["build_id"]
    assert "libhil_port.a" in (firmware.parent / "executor_runner.map").read_text()
    npu = PROGRAMS["u55"]
    of_npu = npu.run(firmware.parent / "executor_runner", tmp_path / "npu")
    assert of_npu.status == 0, of_npu.console
    assert of_npu.outputs[0] != npu.expected()  # its copy spoils what it copies
    request = BuildRequest(load_target("my-zephyr"), SimulatorName.QEMU)
    key = SOURCE.key(request)
    assert key != SOURCE.key(replace(request, target=load_target("zephyr-corstone-300")))
    (application / "forgotten.c").write_text("void forgotten(void) {}\n")
    main_c = application / "main.c"
    start = "int main(void) {\n"
    main_c.write_text(
        main_c.read_text().replace(start, f"void forgotten(void);\n{start}  forgotten();\n")
    )
    assert SOURCE.key(request) != key
    done = _hil_run(hil, "my-zephyr", "add", HIL_HOME=str(home))
    assert done.code == 1
    assert done.json["verdict"] == "LINK_ERROR"
    facts = done.json["cause"]["facts"]
    assert facts["failures"][0]["cause_kind"] == "source_not_compiled"
    explanation = explain(Path(facts["log"]).parent / "build", _quiet)
    assert explanation.command is not None
    assert explanation.command.output.endswith("zephyr_pre0.elf")
    assert "Add forgotten.c to the sources of target app" in explanation.failures[0].fix


def test_an_application_that_is_not_there(
    small_zephyr: Path, application: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(small_zephyr, monkeypatch)
    (application / "CMakeLists.txt").unlink()
    with pytest.raises(UsageError, match=r"zephyr\.application is .*app, which has no CMakeLists"):
        SOURCE.key(BuildRequest(load_target("my-zephyr"), SimulatorName.QEMU))


@needs_real_zephyr
def test_the_networks_pass_in_the_real_workspace(hil: Hil) -> None:
    """At 0 LSB, the CPU's and those of the NPU's stand-in; the console begins with Zephyr's own
    banner, so that it is not somebody else's program."""
    for target in ("zephyr-corstone-300", "zephyr-corstone-300-u55-128"):
        done = _hil_run(hil, target, "ds_cnn", "resnet8", "mobilenet_v1_025", "deep_autoencoder")
        assert done.code == 0, done
        cases = done.json["cases"]
        assert [(case["verdict"], case["worst_lsb"]) for case in cases] == [("PASS", 0.0)] * 4
        for case in cases:
            console = (Path(case["run_dir"]) / "console.log").read_bytes()
            assert console.startswith(b"*** Booting Zephyr OS build ")


@pytest.mark.thorough
def test_the_other_board_builds_too(
    small_zephyr: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a compiler that knows its CPU; Debian 12's does not, and is made to look as if."""
    monkeypatch.setattr(Compiler, "require", lambda _compiler, _cpu: None)
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    enter(small_zephyr, monkeypatch)
    kernels = forgetful_kernels(
        tmp_path, LISTS.replace("registry.cpp", "registry.cpp op_forgotten.cpp")
    )
    options = {"HIL_KERNELS_DIR": str(kernels)}
    firmware = build(load_target("zephyr-corstone-320"), options=options)
    assert firmware.build_id
    assert "Board: mps4/corstone320/fvp" in (firmware.directory / "build.log").read_text()
    first = BuildRequest(load_target("zephyr-corstone-300"), SimulatorName.QEMU, options=options)
    assert SOURCE.key(first) != firmware.key


@pytest.mark.parametrize(
    ("base", "message"),
    [({}, "ZEPHYR_BASE is not set"), ({"ZEPHYR_BASE": "/nowhere"}, "which is not Zephyr")],
)
def test_without_a_workspace_it_says_how_to_get_one(base: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        find_workspace("b", base)
    assert caught.value.hint is not None
    assert "zephyr init" in caught.value.hint
    assert "ZEPHYR_BASE" in caught.value.hint


def test_a_run_without_a_workspace_ends_before_any_work(
    hil: Hil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    done = _hil_run(hil, "zephyr-corstone-300", "add", HIL_HOME=str(tmp_path / "hil"))
    assert done.code == 2, done
    assert "ZEPHYR_BASE is not set" in done.json["cause"]["text"]
    assert "zephyr init" in done.json["hint"]
    assert not list((tmp_path / "hil").rglob("*.pte"))  # nothing was exported


def test_without_west(small_zephyr: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ToolMissing, match="west is not installed"):
        find_workspace("b", {"ZEPHYR_BASE": str(small_zephyr), "PATH": "/nowhere"})


@pytest.fixture
def _listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """West, which takes as long as all else together, lists the same projects each time."""
    monkeypatch.setattr(workspace, "projects", cache(workspace.projects))


@pytest.mark.usefixtures("_listed_once")
def test_another_zephyr_is_another_build(small_zephyr: Path, tmp_path: Path) -> None:
    zephyr = copy_workspace(small_zephyr, tmp_path)
    environ = {**os.environ, "ZEPHYR_BASE": str(zephyr)}
    before = find_workspace("b", environ)
    assert find_workspace("b", environ).key() == before.key()
    assert find_workspace("c", environ).key() != before.key()
    source = zephyr / "kernel" / "thread.c"
    text = source.read_text()
    source.write_text(text + "/* edited */\n")
    edited = find_workspace("b", environ).key()
    assert edited != before.key()
    commit = [
        "git",
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.invalid",
        "commit",
        "-qam",
        "more",
    ]
    subprocess.run(commit, cwd=zephyr, check=True)
    assert find_workspace("b", environ).key() not in (before.key(), edited)


# What is edited, and whether it counts: all that a build might read.
EDITS = {
    "kernel/thread.c": True,
    "kernel/new.c": True,
    "VERSION": True,
    "boards/arm/mps3/mps3.dts": True,
    "boards/common/openocd.board.cmake": True,
    "boards/Kconfig": True,
    "tests/kernel/main.c": True,
    "scripts/__pycache__/build.pyc": False,  # what Python leaves
    ".cache": False,
}


@pytest.mark.usefixtures("_listed_once")
def test_an_edit_in_a_release_that_is_not_a_repository(small_zephyr: Path, tmp_path: Path) -> None:
    """No git says what changed: files that Python and editors leave do not count, others do."""
    release = copy_workspace(small_zephyr, tmp_path)
    shutil.rmtree(release / ".git")
    for folder in ("boards/arm/mps3", "boards/common", "tests/kernel"):
        (release / folder).mkdir(parents=True, exist_ok=True)
    environ = {**os.environ, "ZEPHYR_BASE": str(release)}
    before = find_workspace("mps3/corstone300/an547", environ).key()
    for name, counts in EDITS.items():
        (release / name).parent.mkdir(exist_ok=True)
        with (release / name).open("a") as file:
            file.write("/* edited */\n")
        after = find_workspace("mps3/corstone300/an547", environ).key()
        assert (after != before) == counts, name
        before = after


@pytest.mark.usefixtures("_listed_once")
def test_an_edit_in_a_linked_checkout_is_another_build(small_zephyr: Path, tmp_path: Path) -> None:
    """Linked: the workspace's folder of the project is a link to somebody's own checkout."""
    zephyr = copy_workspace(small_zephyr, tmp_path)
    checkout = tmp_path / "checkout"
    (zephyr.parent / "manifest").rename(checkout)
    (zephyr.parent / "manifest").symlink_to(checkout)
    environ = {**os.environ, "ZEPHYR_BASE": str(zephyr)}
    keys = [find_workspace("b", environ).key()]
    for content in ("int a;\n", "int b;\n"):
        (checkout / "new.c").write_text(content)
        keys.append(find_workspace("b", environ).key())
    assert all(key not in keys[:number] for number, key in enumerate(keys))


def test_a_zephyr_outside_a_workspace(small_zephyr: Path, tmp_path: Path) -> None:
    alone = tmp_path / "zephyr"
    shutil.copytree(small_zephyr, alone)
    with pytest.raises(UsageError, match="west does not know the workspace"):
        find_workspace("b", {**os.environ, "ZEPHYR_BASE": str(alone)})


def test_a_workspace_whose_west_cannot_build(
    small_zephyr: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its manifest names Zephyr without Zephyr's commands."""
    zephyr = copy_workspace(small_zephyr, tmp_path)
    manifest = zephyr.parent / "manifest" / "west.yml"
    lines = manifest.read_text().splitlines()
    manifest.write_text("\n".join(x for x in lines if "west-commands" not in x) + "\n")
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    enter(zephyr, monkeypatch)
    with pytest.raises(UsageError, match="no command `build`") as caught:
        build(load_target("zephyr-corstone-300"))
    assert "scripts/west-commands.yml" in str(caught.value.hint)


def test_a_west_that_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"left no zephyr/zephyr\.elf"):
        take(tmp_path, PRODUCTS, tmp_path)


@pytest.mark.parametrize(
    "wrong", ["port: zephyr", "port: host\nzephyr: {board: mps3/corstone300/fvp}"]
)
def test_a_zephyr_target_has_a_board_and_no_other_has(tmp_path: Path, wrong: str) -> None:
    host = (project_root() / "targets" / "host.yaml").read_text()
    (tmp_path / "t.yaml").write_text(host.replace("port: host", wrong))
    with pytest.raises(TargetError, match="`port: zephyr` and the section `zephyr` go together"):
        load_target("t", (tmp_path,))


def test_both_boards_of_zephyr_are_targets() -> None:
    boards = {name: load_target(f"zephyr-corstone-{name}").zephyr for name in ("300", "320")}
    assert boards["300"] is not None
    assert boards["300"].board == "mps3/corstone300/fvp"
    assert boards["320"] is not None
    assert boards["320"].board == "mps4/corstone320/fvp"
