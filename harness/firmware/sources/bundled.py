"""The runner of the harness itself, built by CMake, or by west in a Zephyr workspace.

``BuildPlan`` is everything that decides how it is built, and the key that stands for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from harness.config.npu import DIRECT
from harness.config.target import Target
from harness.core.errors import UsageError
from harness.core.simulator_name import SimulatorName
from harness.firmware.build_tree import SourcesChanged
from harness.firmware.cache import described, obtain
from harness.firmware.memory import has_room, memory_needs, pool_options
from harness.firmware.names import BUNDLED
from harness.firmware.source import REGION, BuildRequest, Firmware, FirmwareSource
from harness.firmware.step import build_with_cmake, launchers, toolchain_file
from harness.firmware.zephyr.west import WestJob, build_with_west
from harness.firmware.zephyr.workspace import Workspace, find_workspace, require_workspace
from harness.system import artifact_cache, paths, toolchain
from harness.system.files import content_digest
from harness.system.git import files_below
from harness.system.paths import executorch_package
from harness.system.progress import Progress, silent

_OF_PORT = {"host": {"BUILD_TESTING": "OFF"}, "zephyr": {"BUILD_TESTING": "OFF"}}
_OPERATOR = re.compile(r'^HIL_OPERATOR\(\s*"([^"]+)"', re.MULTILINE)  # as in kernels/operator.h
# The first lines of a kernel's file: its operator with the names of the arguments. Those of aten do
# not change.
_ARGUMENTS = re.compile(r"^// (cortex_m::[\w.]+)\(([^()]*)\)", re.MULTILINE)
_LAYOUT = 3  # raise it when what a directory of the cache holds changes
_ETHOSU = "HIL_ETHOSU"
_REGISTERS = "registers"


def in_kconfig(options: Mapping[str, str]) -> dict[str, str]:
    """The runner's CMake options for Zephyr, where Kconfig has the Ethos-U backend
    (targets/runner/ports/zephyr/module/Kconfig). Kconfig also chooses the NPU's driver and its
    registers' address, by what the workspace has."""
    kept = {name: value for name, value in options.items() if not name.startswith(_ETHOSU)}
    if options.get(_ETHOSU) != "ON":
        return kept
    kept[f"CONFIG_{_ETHOSU}"] = "y"
    scratch = f"{_ETHOSU}_FAST_SCRATCH_BYTES"
    kept[f"CONFIG_{scratch}"] = options.get(scratch, "0")
    driver = options.get(f"{_ETHOSU}_DRIVER", _REGISTERS)
    if driver != _REGISTERS:
        kept[f"CONFIG_{_ETHOSU}_{driver.upper()}"] = "y"
    return kept


@dataclass(frozen=True)
class BuildPlan:
    """``zephyr``: where to build when the port is Zephyr's. ``application``: a user's own."""

    sources: Path
    toolchain_file: Path | None
    toolchain_id: str
    flatc: str
    schemas: Path
    options: dict[str, str]
    zephyr: Workspace | None = None
    application: Path | None = None

    def key(self) -> str:
        zephyr = None if self.zephyr is None else self.zephyr.key()
        cross = self.toolchain_file is not None
        facts = [self.toolchain_id, self.flatc, cross, self.options, zephyr]
        return artifact_cache.key_of([_LAYOUT, facts, self.content()])

    def content(self) -> str:
        """Digest of the files that are read, without options and tools."""
        schemas = sorted(_schema_files(self.schemas))
        own = content_digest(self._own_files(), paths.data_root())
        digests = [own, content_digest(schemas, self.schemas)]
        if self.application is not None:
            digests.append(content_digest(files_below(self.application), self.application))
        return artifact_cache.key_of(digests)

    def inputs(self) -> list[Path]:
        """Every file of the harness, of ExecuTorch's schemas and of a user's application that the
        build may read."""
        theirs = files_below(self.application) if self.application is not None else []
        return [*self._own_files(), *sorted(_schema_files(self.schemas)), *theirs]

    def _own_files(self) -> list[Path]:
        root = paths.data_root()
        files = [*files_below(self.sources), *files_below(root / "cmake")]
        if self.options.get("HIL_ETHOSU") == "ON" and self.options.get("HIL_PORT") in DIRECT:
            driver = root / "targets" / "linux" / "ethosu"
            files += [*files_below(driver / "driver_library"), *files_below(driver / "kernel")]
            files.append(driver / "uapi.h")
        return files


def make_plan(target: Target, extra: Mapping[str, str]) -> BuildPlan:
    for name, value in extra.items():
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name) or not re.fullmatch(r"[^\x00-\x1f;]*", value):
            raise UsageError(f"not a build option: {name}={value}")
    root = paths.data_root()
    schemas = executorch_package()
    workspace, identity = None, ""
    if target.zephyr is not None:
        require_workspace(target.zephyr.board, target.cpu)
        workspace = find_workspace(target.zephyr.board)
    else:
        # Figures are accepted by it, and those of a board are its own.
        board = " serial" if target.cmake.get("HIL_HOST_LINK") == "serial" else ""
        identity = toolchain.toolchain_id(target.toolchain) + board
    regions = {f"{REGION}{r.name}": f"0x{r.origin:08x}:0x{r.size:x}" for r in target.memory}
    options = {
        "HIL_PORT": target.port,
        **(_OF_PORT.get(target.port) or {"HIL_CPU": target.cpu}),
        **target.cmake,
        **pool_options(target),
        **extra,
    }
    return BuildPlan(
        sources=root / "targets" / "runner",
        toolchain_file=toolchain_file(target.port),
        toolchain_id=identity if workspace is None else workspace.toolchain_id,
        flatc=str(toolchain.require("flatc")),
        schemas=schemas,
        zephyr=workspace,
        application=_application(target),
        options={**regions, **options} if workspace is None else in_kconfig(options),
    )


def _application(target: Target) -> Path | None:
    """A user's own application for Zephyr. Raises UsageError where there is none."""
    if target.zephyr is None or target.zephyr.application is None:
        return None
    folder = (target.file.parent / target.zephyr.application).resolve()
    if not (folder / "CMakeLists.txt").is_file():
        raise UsageError(
            f"{target.file}: zephyr.application is {folder}, which has no CMakeLists.txt",
            hint="name the folder of an application of Zephyr, from that of the target's file; "
            "`hil init --zephyr` writes one",
            path=target.file,
        )
    return folder


def _schema_files(package: Path) -> Iterator[Path]:
    for folder in ("schema", "devtools/bundled_program/schema"):
        yield from (package / folder).glob("*.fbs")


class Bundled(FirmwareSource):
    """The runner in ``targets/runner``, with CMake or, for Zephyr, with west."""

    name = BUNDLED
    runner = "the runner"
    kernel_hint = (
        "docs/reference/operators.md lists its operators; in a clone of the harness a kernel is a "
        "file op_*.cpp with a HIL_OPERATOR line in targets/runner/kernels"
    )
    backend_hint = (
        "run it on a target that has the backend, or name the backend's folder in the target's "
        "`cmake: {HIL_BACKENDS: ...}`"
    )
    schema_hint = (
        "export with the wheel that the bundled runner is written for (--exporter wheel; in a "
        "clone ./hil without +RELEASE), or run the checkout's (--firmware executorch)"
    )
    prints_build_id = True
    prints_all_figures = True
    sizes_are_accepted = True
    linked_for_simulator = True
    follows_definitions = True

    def key(self, request: BuildRequest) -> str:
        return make_plan(request.target, request.options).key()

    def require_tools(self, request: BuildRequest) -> None:
        make_plan(request.target, request.options)

    def check(self, request: BuildRequest) -> None:
        target, qemu = request.target, request.target.simulators.qemu
        on_qemu = request.simulator is SimulatorName.QEMU
        if target.zephyr is not None and on_qemu and qemu is not None and qemu.board is None:
            raise UsageError(
                f"the bundled runner is not built for QEMU on {target.name}: Zephyr has no board "
                "with the memory that QEMU has there",
                hint="--executorch DIR builds ExecuTorch's sample for it; or --simulator fvp",
                target=target.name,
            )

    def options_for(self, operators: Sequence[str]) -> Mapping[str, str]:
        """They take text, so that a runner has those alone which its program calls."""
        if not operators:
            return {}
        wanted = (_kernels("portable") - _kernels(".")).intersection(operators)
        return {"HIL_PORTABLE_KERNELS": ",".join(sorted(wanted))} if wanted else {}

    def without_kernel(self, operators: Sequence[str], target: Target) -> tuple[str, ...]:
        if "HIL_KERNELS_DIR" in target.cmake:  # other kernels
            return ()
        known = _kernels(".") | _kernels("portable")
        return tuple(name for name in operators if name not in known)

    def arguments(self) -> Mapping[str, tuple[str, ...]]:
        folder = paths.data_root() / "targets/runner/kernels"
        texts = (file.read_text("utf-8") for file in folder.glob("op_*.cpp"))
        found = chain.from_iterable(map(_ARGUMENTS.findall, texts))
        return {name: tuple(names.split(",")) for name, names in found}

    def larger_pools(
        self, options: Mapping[str, str], target: Target, pte: Path
    ) -> Mapping[str, str]:
        needs = memory_needs(pte, target)
        wanted = pool_options(target, needs)
        return {} if has_room(options, needs) else wanted

    def tree(self, request: BuildRequest) -> Path:
        plan = make_plan(request.target, request.options)
        job = west_job(plan)
        return paths.cache_dir("firmware") / plan.key() / "build" if job is None else job.tree

    def build(self, request: BuildRequest, progress: Progress = silent) -> Firmware:
        return build(request.target, options=request.options, progress=progress)


SOURCE = Bundled()


def _kernels(folder: str) -> set[str]:
    files = (paths.data_root() / "targets/runner/kernels" / folder).glob("*.cpp")
    return set(chain.from_iterable(_OPERATOR.findall(file.read_text("utf-8")) for file in files))


def build(
    target: Target,
    *,
    options: Mapping[str, str] | None = None,
    progress: Progress = silent,
) -> Firmware:
    """The runner for a target as it is on the simulator that will run it (``Chosen.target``).

    ``options`` are CMake options that replace the target's. Raises BuildError, LinkError,
    ToolMissing, InfraError (disk full), UsageError (no such option).
    """
    plan = make_plan(target, options or {})

    def build_in(directory: Path) -> Firmware:
        job = west_job(plan)
        if job is None:
            build_with_cmake(plan.sources, directory, _cmake_options(plan), target.name, progress)
        else:
            build_with_west(job, directory, target.name, progress)
        if plan.key() != directory.name:
            raise SourcesChanged("the harness")
        return described(
            directory, target.name, plan.toolchain_id, plan.options, sources=plan.content()
        )

    return obtain(plan.key(), target, build_in, progress)


def west_job(plan: BuildPlan) -> WestJob | None:
    """How the runner is built in a Zephyr workspace; None where it is not."""
    if plan.zephyr is None:
        return None
    options = {"HIL_SCHEMA_DIR": str(plan.schemas / "schema"), **plan.options}
    port = plan.sources / "ports" / "zephyr"
    if plan.application is not None:
        options["EXTRA_ZEPHYR_MODULES"] = str(port / "module")
    return WestJob(plan.zephyr, plan.application or port / "sample", options, plan.inputs())


def _cmake_options(plan: BuildPlan) -> dict[str, str]:
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "HIL_SCHEMA_DIR": str(plan.schemas / "schema"),
        **launchers("CXX"),
        **plan.options,
    }
    if plan.toolchain_file is not None:
        return {**options, "CMAKE_TOOLCHAIN_FILE": str(plan.toolchain_file)}
    return {"CMAKE_CXX_COMPILER": str(toolchain.locate("g++")), **options}
