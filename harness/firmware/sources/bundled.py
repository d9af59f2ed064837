"""The runner of the harness itself, built by CMake, or by west in a Zephyr workspace."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.config.loading import Target
from harness.core.errors import BuildError, InfraError
from harness.firmware import step
from harness.firmware.firmware import REGION, RUNNER, STRIPPED, Firmware, build_id, obtain
from harness.firmware.plan import BuildPlan, make_plan
from harness.firmware.source import BUNDLED, BuildRequest, FirmwareSource
from harness.firmware.step import run_step
from harness.firmware.zephyr.tree import Job, build_in_tree, take_products, unsettle
from harness.link import fileapi
from harness.system import artifact_cache, paths, toolchain
from harness.system.files import sha256_of
from harness.system.progress import Progress, silent


class UnusedOptions(BuildError):
    """CMake was given options that nothing in the runner asks for."""

    def __init__(self, unused: Sequence[str], log: Path) -> None:
        self.unused = tuple(unused)
        super().__init__(
            f"the runner's CMake has no option {', '.join(unused)}", hint=f"see {log}", path=log
        )


class SourcesChanged(InfraError):
    """They were edited while they were built, so that nobody knows what the ELF holds."""

    def __init__(self) -> None:
        super().__init__("the runner's sources changed while it was built", hint="run it again")


class Bundled(FirmwareSource):
    """The runner in ``targets/runner``, with CMake or, for Zephyr, with west."""

    name = BUNDLED
    runner = "the runner"
    kernel_hint = (
        "add the kernel to targets/runner/kernels (a file op_*.cpp with its HIL_OPERATOR line), "
        "link the library that registers it, or lower the model differently; for a target with "
        "Linux ExecuTorch's own kernels are there: --firmware wheel"
    )
    backend_hint = (
        "run it on a target that has the backend, or name the backend's folder in the target's "
        "`cmake: {HIL_BACKENDS: ...}`"
    )
    schema_hint = (
        "export with the wheel, whose schema the bundled runner is built from (--exporter wheel), "
        "or run the checkout's (--firmware executorch)"
    )
    prints_build_id = True
    prints_all_figures = True
    sizes_are_accepted = True
    linked_for_simulator = True
    follows_definitions = True

    def key(self, request: BuildRequest) -> str:
        return _plan(request).key()

    def tree(self, request: BuildRequest) -> Path:
        plan = _plan(request)
        job = west_job(plan)
        return paths.cache_dir("firmware") / plan.key() / "build" if job is None else job.tree

    def build(self, request: BuildRequest, progress: Progress = silent) -> Firmware:
        return build(
            request.target,
            variant=request.variant,
            options=request.options,
            progress=progress,
        )


SOURCE = Bundled()


def _plan(request: BuildRequest) -> BuildPlan:
    variant = request.variant or request.target.default_variant
    return make_plan(request.target, variant, request.options)


def build(
    target: Target,
    *,
    variant: str | None = None,
    options: Mapping[str, str] | None = None,
    progress: Progress = silent,
) -> Firmware:
    """The runner for a target as it is on the simulator that will run it (``Chosen.target``).

    ``options`` are CMake options that replace the target's and the variant's. Raises BuildError,
    LinkError, ToolMissing, InfraError (disk full), UsageError (no such variant or option).
    """
    name = variant or target.default_variant
    plan = make_plan(target, name, options or {})

    def build_in(directory: Path) -> Firmware:
        job = west_job(plan)
        if job is None:
            _with_cmake(plan, directory, target.name, progress)
        else:
            _with_west(plan, job, directory, target.name, progress)
        return _described(plan, directory, target.name)

    return obtain(plan.key(), target, build_in, progress, name)


def _with_cmake(plan: BuildPlan, directory: Path, target: str, progress: Progress) -> None:
    tree = directory / "build"
    tree.mkdir()
    fileapi.ask(tree)  # so that a failed link can be explained by the names of targets
    progress(f"{target}: configuring the runner")
    environment = step.environment(tree)
    run_step("configure", _configure(plan, tree), directory, target, progress, environment)
    said = (directory / "configure.log").read_text("utf-8", "replace")
    # a port need not use every region of its target
    unused = [n for n in step.unused_options(said) if not n.startswith(REGION)]
    if unused:
        raise UnusedOptions(unused, directory / "configure.log")
    ninja = str(toolchain.locate("ninja"))
    jobs = str(len(os.sched_getaffinity(0)))
    argv = (ninja, "-C", str(tree), "-j", jobs, RUNNER)
    run_step("build", argv, directory, target, progress, environment)
    if plan.key() != directory.name:
        raise SourcesChanged
    _take(tree, directory)
    shutil.rmtree(tree)


def west_job(plan: BuildPlan) -> Job | None:
    """How the runner is built in a Zephyr workspace; None where it is not."""
    if plan.zephyr is None:
        return None
    options = {"HIL_SCHEMA_DIR": str(plan.schemas / "schema"), **plan.options}
    sample = plan.sources / "ports" / "zephyr" / "sample"
    return Job(plan.zephyr, sample, options, plan.inputs())


def _with_west(plan: BuildPlan, job: Job, directory: Path, target: str, progress: Progress) -> None:
    """In the tree that stays; one process builds there."""
    job.place.mkdir(parents=True, exist_ok=True)
    with artifact_cache.locked(job.place, on_wait=lambda: progress(f"{target}: waiting")):
        build_in_tree(job, target, progress)
        if plan.key() != directory.name:
            unsettle(job)
            raise SourcesChanged
        take_products(job.tree, RUNNER)
        shutil.copyfile(job.place / "build.log", directory / "build.log")
        _take(job.tree, directory)


def _configure(plan: BuildPlan, tree: Path) -> tuple[str, ...]:
    toolchain.require("ninja")
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_RUNTIME_OUTPUT_DIRECTORY": str(tree),
        "HIL_SCHEMA_DIR": str(plan.schemas / "schema"),
        **step.launchers("CXX"),
        **plan.options,
    }
    if plan.toolchain_file is not None:
        options["CMAKE_TOOLCHAIN_FILE"] = str(plan.toolchain_file)
    else:
        options["CMAKE_CXX_COMPILER"] = str(toolchain.locate("g++"))
    return (
        str(toolchain.locate("cmake")),
        *("-S", str(plan.sources)),
        *("-B", str(tree)),
        *("-G", "Ninja"),
        *(f"-D{name}={value}" for name, value in options.items()),
    )


def _take(tree: Path, directory: Path) -> None:
    """Move the products to their place."""
    for name in (RUNNER, f"{RUNNER}.map"):
        if not (tree / name).is_file():
            raise BuildError(f"the build ended well but left no {name}", path=tree)
        (tree / name).replace(directory / name)
    if (tree / STRIPPED).is_file():
        (tree / STRIPPED).replace(directory / STRIPPED)


def _described(plan: BuildPlan, directory: Path, target: str) -> Firmware:
    return Firmware(
        directory=directory,
        target=target,
        variant="",
        key=directory.name,
        toolchain_id=plan.toolchain_id,
        build_id=build_id(directory / RUNNER),
        elf_sha256=sha256_of(directory / RUNNER),
        seconds=0.0,
        options=plan.options,
        sources=plan.content(),
    )
