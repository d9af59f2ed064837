"""Builds a checkout's own runner, incrementally, and caches it by content.

Each checkout and configuration has a build tree that is kept, ``.hil/cache/executorch/<tree>``
(``build_tree``). The products go to ``.hil/cache/firmware/<key>``; commit, uncommitted changes,
parts, options and toolchain decide the key.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from harness.config.target import Target
from harness.firmware.build_tree import BuildTree, SourcesChanged
from harness.firmware.cache import described, obtain
from harness.firmware.checkout import Checkout, find_checkout, part_files, source_files
from harness.firmware.executorch.overlay import Overlay, lay
from harness.firmware.executorch.plan import CheckoutPlan, configure, make_plan
from harness.firmware.executorch.zephyr import SamplePlan, make_sample_plan
from harness.firmware.source import BuildRequest, CheckoutFacts, Firmware, FirmwareSource
from harness.firmware.step import ccache, launchers, ninja, products, run_step, take
from harness.firmware.zephyr.west import build_with_west
from harness.formats.linker_map import read_map
from harness.system import artifact_cache, paths, toolchain
from harness.system.git import shown
from harness.system.locks import in_use
from harness.system.progress import Progress, silent

_WARNING = re.compile(r"^\w+ has two values: .+$", re.MULTILINE)
_UNITS = (".c", ".cc", ".cpp", ".s", ".S")
_MOST_EDITS = 4  # named in a note
# Files that compilers report to ninja as read.
_COMPILED = (".c", ".cc", ".cpp", ".h", ".hpp", ".inc", ".s", ".S")
# The build ignores texts, the exporter's Python next to the C++, and in backends for other machines
# everything that no compiler includes.
_TEXTS = (".md", ".rst", ".ipynb")
_EXPORTERS = ("backends", "devtools", "examples", "exir", "extension")
_BACKENDS = ("arm", "cortex_m")
_RUNNER = "executor_runner"  # but not its scripts


class CheckoutRunner(FirmwareSource):
    """The runner that a user's checkout of ExecuTorch builds."""

    name = "executorch"
    kernel_hint = (
        "the checkout's list of operators, or the kernel libraries that its runner links, lack it: "
        "add it there, or lower the model differently"
    )
    backend_hint = (
        "the checkout's runner is built without the backend: run it on a target that has it"
    )
    needs_checkout = True
    one_set_per_process = True
    one_memory_mode = True

    def key(self, request: BuildRequest) -> str:
        return _plan(request).key()

    def check(self, request: BuildRequest) -> None:
        _plan(request)

    def embeds_program(self, target: Target) -> bool:
        return target.zephyr is not None

    def tree(self, request: BuildRequest) -> Path:
        plan = _plan(request)
        return plan.tree_folder if isinstance(plan, SamplePlan) else _tree(plan).folder

    def build(self, request: BuildRequest, progress: Progress = silent) -> Firmware:
        plan, target = _plan(request), request.target

        def fill(folder: Path) -> Firmware:
            if isinstance(plan, SamplePlan):
                return _build_sample(plan, folder, target, progress)
            return _build(plan, folder, target, progress)

        firmware = obtain(plan.key(), target, fill, progress)
        # Equal content may have been built in another checkout.
        notes = () if firmware.checkout is None else firmware.checkout.notes
        warnings = tuple(note for note in notes if _WARNING.search(note))
        checkout = _facts(plan, (*_edits(plan.checkout, firmware), *warnings))
        return replace(firmware, checkout=checkout)

    def schema_root(self, checkout: Path | None) -> Path:
        assert checkout is not None, "its firmware is built from a checkout"
        return checkout

    def takes_flags(self, port: str | None) -> bool:
        return port == "linux"

    def has_linker_script(self, port: str | None) -> bool:
        return port != "linux"


SOURCE = CheckoutRunner()


def _plan(request: BuildRequest) -> CheckoutPlan | SamplePlan:
    assert request.checkout is not None, "whoever chooses this source names the checkout"
    if request.target.zephyr is not None:
        return make_sample_plan(request)
    return make_plan(request.target, request.simulator, request.checkout)


def _tree(plan: CheckoutPlan) -> BuildTree:
    place = paths.cache_dir("executorch") / plan.tree()
    # The SDK's platform may read other files than the parts.
    facts = plan.key() if plan.platform is None else list(_configure(plan, place))
    checkout = plan.checkout
    return BuildTree(place, facts, lambda: _sources(checkout), lambda p: p.suffix in _COMPILED)


def _facts(plan: CheckoutPlan | SamplePlan, warnings: tuple[str, ...]) -> CheckoutFacts:
    """The checkout's facts for a record; ``warnings``: those of its configuration."""
    there = plan.checkout
    return CheckoutFacts(
        path=str(there.root),
        commit=there.revision.commit,
        branch=there.revision.branch,
        dirty=there.revision.dirty,
        diff_sha256=there.revision.changes,
        platform=plan.platform_name,
        notes=(*plan.notes, *warnings),
        parts=there.differences,
        edited=there.edited,
    )


def _edits(checkout: Checkout, firmware: Firmware) -> tuple[str, ...]:
    """A note that names the edited files, and those of them that the program has nothing of."""
    if not checkout.edited:
        return ()
    objects = {piece.file.rstrip(")").rpartition("/")[2] for piece in read_map(firmware.map).pieces}
    members = {name.rpartition("(")[2] for name in objects}
    compiled = [name for name in checkout.edited if name.endswith(_UNITS)]
    # The names that CMake gives the object of a source.
    made = {name: {f"{name.rpartition('/')[2]}.{end}" for end in ("obj", "o")} for name in compiled}
    unused = [name for name in compiled if not made[name] & members]
    shown = ", ".join(checkout.edited[:_MOST_EDITS])
    more = len(checkout.edited) - _MOST_EDITS
    text = f"edited: {shown}" + (f" and {more} more" if more > 0 else "")
    return (text + (f"; not in this ELF: {', '.join(unused[:_MOST_EDITS])}" if unused else ""),)


def _build(plan: CheckoutPlan, directory: Path, target: Target, progress: Progress) -> Firmware:
    if not plan.is_linux:
        toolchain.require_libstdcxx()
    tree, checkout = _tree(plan), plan.checkout
    in_use(tree.place)
    tree.place.mkdir(parents=True, exist_ok=True)
    changed = SourcesChanged("the checkout", checkout.root)
    with artifact_cache.locked(tree.place, on_wait=lambda: progress(f"{target.name}: waiting")):
        with tree.building(changed) as usable:
            name = f"{target.name} (ExecuTorch {shown(checkout.revision.commit, edited=False)})"
            _steps(plan, tree, name, usable, progress)
        _require_unchanged(checkout)
        take(tree.folder, products(plan.runner, stripped=plan.is_linux), directory)
        log = (tree.place / "configure.log").read_text("utf-8", "replace")
    # Warnings of the platform's CMake about the checkout's (targets/executorch/platform).
    warnings = tuple(dict.fromkeys(_WARNING.findall(log)))
    return described(
        directory,
        target.name,
        plan.toolchain_id,
        plan.options,
        build_id="",
        source=SOURCE,
        checkout=_facts(plan, warnings),
    )


def _build_sample(
    plan: SamplePlan, directory: Path, target: Target, progress: Progress
) -> Firmware:
    checkout, place = plan.checkout, plan.place()
    in_use(place)
    place.mkdir(parents=True, exist_ok=True)
    with artifact_cache.locked(place, on_wait=lambda: progress(f"{target.name}: waiting")):
        overlay = lay(checkout, place, None)
        places = _places(checkout, overlay, plan.tree_folder)
        job = plan.job([*_sources(checkout)], places)
        build_with_west(job, directory, target.name, progress, "the checkout")
        _require_unchanged(checkout)
    options = {"HIL_PORT": "zephyr", **plan.options, **plan.pools}
    return described(
        directory,
        target.name,
        plan.workspace.toolchain_id,
        options,
        build_id="",
        source=SOURCE,
        checkout=_facts(plan, ()),
        program=plan.program_sha256,
    )


def _require_unchanged(checkout: Checkout) -> None:
    """Raises SourcesChanged for a checkout that was edited since it was found."""
    given = {name: part.folder for name, part in checkout.parts.items()}
    if find_checkout(checkout.root, given).identity() != checkout.identity():
        raise SourcesChanged("the checkout", checkout.root)


def _configure(plan: CheckoutPlan, place: Path) -> tuple[str, ...]:
    return configure(plan, Overlay(place), place / "build", Path(sys.executable))


def _steps(
    plan: CheckoutPlan, tree: BuildTree, name: str, configured: bool, progress: Progress
) -> None:
    overlay = lay(plan.checkout, tree.place, plan.platform)
    places = _places(plan.checkout, overlay, tree.folder)
    environment = {
        "PYTHONDONTWRITEBYTECODE": "1",  # nothing next to the checkout's generators
        **ccache(tree.place),
        **launchers("C", "CXX"),  # also for flatc's own build, which gets none of our options
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    }
    if not configured:  # later ninja asks CMake itself when one of its files has changed
        progress(f"{name}: configuring the runner")
        run_step(
            "configure",
            _configure(plan, tree.place),
            tree.place,
            name,
            progress,
            environment,
            places,
        )
    argv = ninja(tree.folder, plan.runner)
    run_step("build", argv, tree.place, name, progress, environment, places)


def _places(checkout: Checkout, overlay: Overlay, build: Path) -> dict[str, str]:
    """The user's folders by their names in the build, which are the overlay's links: absolute, and
    relative to the build (ccache's form)."""
    parts = [part for part in checkout.parts.values() if part.name != "core_platform"]
    links = {overlay.place(part.name): part.folder for part in parts}
    links[overlay.checkout] = checkout.root
    return {
        named: str(shown)
        for link, shown in links.items()
        for named in (str(link), os.path.relpath(link, build))
    }


def _sources(checkout: Checkout) -> Iterator[Path]:
    """Every file that a build may read. Raises GitFailed."""
    for path in source_files(checkout.root):
        if not _idle(path.relative_to(checkout.root)):
            yield path
    for part in checkout.parts.values():
        yield from part_files(part)


def _idle(name: Path) -> bool:
    if name.suffix == ".py" and _RUNNER not in name.parts:
        return name.parts[0] in _EXPORTERS
    of_others = len(name.parts) > 2 and name.parts[0] == "backends"
    of_others = of_others and name.parts[1] not in _BACKENDS
    return name.suffix in _TEXTS or (of_others and name.suffix not in _COMPILED)
