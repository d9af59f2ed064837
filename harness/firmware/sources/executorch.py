"""A checkout's own runner: built incrementally in a tree of the harness, kept by content.

``.hil/cache/executorch/<tree>`` is one build tree for a checkout and a configuration, and stays:
after an edit only what depends on it is built. What comes out goes to
``.hil/cache/firmware/<key>``, where the key stands for commit, uncommitted changes, parts,
options and toolchain. A tree in which a build was killed is started from nothing, which is quick
with ccache.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from harness.config.loading import Target
from harness.core.errors import BuildError, InfraError
from harness.firmware import step
from harness.firmware.executorch import freshness
from harness.firmware.executorch.checkout import Checkout, find_checkout
from harness.firmware.executorch.overlay import Overlay, lay
from harness.firmware.executorch.plan import CheckoutPlan, configure, make_plan
from harness.firmware.firmware import RUNNER, Firmware, obtain
from harness.firmware.source import BuildRequest, CheckoutFacts, FirmwareSource
from harness.firmware.step import run_step
from harness.system import artifact_cache, paths, toolchain
from harness.system.files import sha256_of, write_whole
from harness.system.locks import in_use
from harness.system.progress import Progress, silent

_WARNING = re.compile(r"^\w+ has two values: .+$", re.MULTILINE)
_CONFIGURED = "configured.json"


class CheckoutChanged(InfraError):
    """It was edited while it was built, so that nobody knows what the ELF holds."""

    def __init__(self, root: Path) -> None:
        super().__init__(
            "the checkout changed while its runner was built", hint="run it again", path=root
        )


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

    def tree(self, request: BuildRequest) -> Path:
        return _place(_plan(request)) / "build"

    def build(self, request: BuildRequest, progress: Progress = silent) -> Firmware:
        plan, target = _plan(request), request.target
        firmware = obtain(
            plan.key(), target, lambda folder: _build(plan, folder, target, progress), progress
        )
        # Equal content may have been built in another checkout.
        notes = () if firmware.checkout is None else firmware.checkout.notes
        warnings = tuple(note for note in notes if _WARNING.search(note))
        return replace(firmware, checkout=_facts(plan, warnings))

    def schema_root(self, checkout: Path | None) -> Path:
        assert checkout is not None, "its firmware is built from a checkout"
        return checkout

    def takes_flags(self, port: str | None) -> bool:
        return port == "linux"

    def has_linker_script(self, port: str | None) -> bool:
        return port != "linux"


SOURCE = CheckoutRunner()


def _plan(request: BuildRequest) -> CheckoutPlan:
    assert request.checkout is not None, "whoever chooses this source names the checkout"
    return make_plan(request.target, request.simulator, request.checkout)


def _place(plan: CheckoutPlan) -> Path:
    """The build tree with what belongs to it."""
    return paths.cache_dir("executorch") / plan.tree()


def _facts(plan: CheckoutPlan, warnings: tuple[str, ...]) -> CheckoutFacts:
    """What a record says of the checkout; ``warnings``: those of its configuration."""
    there = plan.checkout
    return CheckoutFacts(
        path=str(there.root),
        commit=there.revision.commit,
        branch=there.revision.branch,
        dirty=there.revision.dirty,
        diff_sha256=there.revision.changes,
        platform="sdk" if plan.platform is None else "hil",
        notes=(*plan.notes, *warnings),
    )


def _build(plan: CheckoutPlan, directory: Path, target: Target, progress: Progress) -> Firmware:
    if not plan.is_linux:
        toolchain.require_libstdcxx()
    tree = _place(plan)
    in_use(tree)
    tree.mkdir(parents=True, exist_ok=True)
    with artifact_cache.locked(tree, on_wait=lambda: progress(f"{target.name}: waiting")):
        _build_in_tree(plan, tree, target, progress)
        return _collect(plan, tree, directory, target)


def _build_in_tree(plan: CheckoutPlan, tree: Path, target: Target, progress: Progress) -> None:
    name = f"{target.name} (ExecuTorch {plan.checkout.revision.commit[:10]})"
    began = freshness.now(tree)
    before = freshness.inputs(plan.checkout)
    # Nothing records what the SDK's platform reads besides the parts.
    if plan.platform is None or not freshness.usable(tree, before):
        (tree / _CONFIGURED).unlink(missing_ok=True)
    freshness.unsettle(tree)
    try:
        _steps(plan, tree, name, progress)
    except BuildError as error:
        if not freshness.settle(tree, plan.checkout, before, began):
            raise CheckoutChanged(plan.checkout.root) from error
        raise
    unchanged = freshness.settle(tree, plan.checkout, before, began)
    if not unchanged or not _as_found(plan.checkout):
        raise CheckoutChanged(plan.checkout.root)


def _steps(plan: CheckoutPlan, tree: Path, name: str, progress: Progress) -> None:
    overlay = lay(plan.checkout, tree, plan.platform)
    places = _places(plan.checkout, overlay, tree / "build")
    argv = configure(plan, overlay, tree / "build", Path(sys.executable))
    done, wanted = tree / _CONFIGURED, json.dumps(argv)
    # Later ninja asks CMake itself when one of its files has changed.
    if not done.is_file() or done.read_text() != wanted:
        done.unlink(missing_ok=True)
        artifact_cache.clear(tree / "build")
        progress(f"{name}: configuring the runner")
        run_step("configure", argv, tree, name, progress, _environment(tree), places)
        write_whole(done, wanted)
    ninja = str(toolchain.locate("ninja"))
    jobs = str(len(os.sched_getaffinity(0)))
    argv = (ninja, "-C", str(tree / "build"), "-j", jobs, plan.runner)
    run_step("build", argv, tree, name, progress, _environment(tree), places)


def _places(checkout: Checkout, overlay: Overlay, build: Path) -> dict[str, str]:
    """Folders of the user as the build names them, by the overlay's links: absolute, and relative
    to the build where ccache has been."""
    links = {
        overlay.checkout / "third-party" / name: checkout.parts[name].folder
        for name in ("flatbuffers", "flatcc", "gflags", "json")
    }
    links |= {
        overlay.sdk / "core_software" / name: checkout.parts[name].folder
        for name in ("core_driver", "cmsis_6", "cmsis-nn")
        if name in checkout.parts
    }
    links[overlay.checkout] = checkout.root
    return {
        named: str(shown)
        for link, shown in links.items()
        for named in (str(link), os.path.relpath(link, build))
    }


def _environment(tree: Path) -> dict[str, str]:
    """Python writes nothing beside the checkout's generators; equal compilations are shared
    between trees, whose own paths do not count."""
    return {
        "PYTHONDONTWRITEBYTECODE": "1",
        **step.environment(tree),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    }


def _as_found(before: Checkout) -> bool:
    """Whether it is the checkout that the key was made of."""
    given = {name: part.folder for name, part in before.parts.items()}
    return find_checkout(before.root, given).identity() == before.identity()


def _collect(plan: CheckoutPlan, tree: Path, directory: Path, target: Target) -> Firmware:
    """Copies the products, which the tree keeps."""
    for name, product in plan.products.items():
        file = tree / "build" / product
        if not file.is_file():
            raise BuildError(f"the build ended well but left no {product}", path=tree / "build")
        shutil.copyfile(file, directory / f"{RUNNER}{name}")
    return Firmware(
        directory=directory,
        target=target.name,
        variant="",
        key=directory.name,
        toolchain_id=plan.toolchain_id,
        build_id="",
        elf_sha256=sha256_of(directory / RUNNER),
        seconds=0.0,
        options=dict(plan.options),
        source=SOURCE,
        checkout=_facts(plan, _warnings(tree / "configure.log")),
    )


def _warnings(log: Path) -> tuple[str, ...]:
    """What the platform's CMake says of the checkout's (targets/executorch/platform)."""
    return tuple(dict.fromkeys(_WARNING.findall(log.read_text("utf-8", "replace"))))
