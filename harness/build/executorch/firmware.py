"""A checkout's own runner: built incrementally in a tree of ours, kept by content.

``.hil/cache/executorch/<tree>`` is one build tree for a checkout and a configuration, and stays:
after an edit only what depends on it is built. What comes out goes to
``.hil/cache/firmware/<key>``, where the key stands for commit, uncommitted changes, parts,
options and toolchain. A tree in which a build was killed is begun from nothing, which is quick
where there is ccache.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
import uuid
from dataclasses import replace
from pathlib import Path

from harness.build import compiler_cache
from harness.build.executorch import freshness
from harness.build.executorch.checkout import Checkout, find_checkout
from harness.build.executorch.overlay import Overlay, lay
from harness.build.executorch.plan import CheckoutPlan, configure, make_plan
from harness.build.firmware import Firmware, load_firmware, write_stamp
from harness.build.source import CheckoutFacts, FirmwareSource
from harness.build.step import acquire, clear, run_step
from harness.errors import BuildError, InfraError
from harness.system import paths, toolchain
from harness.system.files import disk_errors, sha256_of, write_whole
from harness.system.lease import in_use
from harness.system.progress import Progress, silent
from harness.target.loading import Target
from harness.target.model import SimulatorName

_TOLD = re.compile(r"^\w+ has two values: .+$", re.MULTILINE)
_CONFIGURED = "configured.json"


class CheckoutChanged(InfraError):
    """It was edited while it was built, so that nobody knows what the ELF holds."""

    def __init__(self, root: Path) -> None:
        super().__init__(
            "the checkout changed while its runner was built", hint="run it again", path=root
        )


def build_checkout(
    target: Target,
    simulator: SimulatorName,
    checkout: Checkout,
    *,
    progress: Progress = silent,
) -> Firmware:
    """The runner of ``checkout`` for a target as it is on ``simulator``; from the cache or built
    now. One process builds in a tree, others wait.

    Raises BuildError, LinkError, ToolMissing, InfraError, UsageError (no runner for this board).
    """
    plan = make_plan(target, simulator, checkout)
    key = plan.key()
    cache = paths.cache_dir("firmware")
    if (ready := load_firmware(cache / key)) is not None:
        return _of(ready, target, plan)
    tree = paths.cache_dir("executorch") / plan.tree()
    in_use(tree)
    with disk_errors("preparing the checkout's build"):
        cache.mkdir(parents=True, exist_ok=True)
        tree.mkdir(parents=True, exist_ok=True)
        lock = acquire(tree.with_suffix(".lock"), lambda: progress(f"{target.name}: waiting"))
    try:
        if (ready := load_firmware(cache / key)) is not None:
            return _of(ready, target, plan)
        with disk_errors("building the checkout's runner"):
            return _build(plan, tree, cache / key, target, progress)
    finally:
        lock.release()


def _of(firmware: Firmware, target: Target, plan: CheckoutPlan) -> Firmware:
    """Firmware of equal content may have been made for another target, in another checkout."""
    notes = () if firmware.checkout is None else firmware.checkout.notes
    told = tuple(note for note in notes if _TOLD.search(note))
    variant = target.default_variant
    return replace(firmware, target=target.name, variant=variant, checkout=_facts(plan, told))


def _facts(plan: CheckoutPlan, told: tuple[str, ...]) -> CheckoutFacts:
    """What a record says of the checkout; ``told``: what its configuration had to say."""
    there = plan.checkout
    return CheckoutFacts(
        path=str(there.root),
        commit=there.revision.commit,
        branch=there.revision.branch,
        dirty=there.revision.dirty,
        diff_sha256=there.revision.changes,
        platform="sdk" if plan.platform is None else "hil",
        notes=(*plan.notes, *told),
    )


def _build(
    plan: CheckoutPlan, tree: Path, directory: Path, target: Target, progress: Progress
) -> Firmware:
    started = time.monotonic()
    name = f"{target.name} (ExecuTorch {plan.checkout.revision.commit[:10]})"
    began = freshness.now(tree)
    before = freshness.inputs(plan.checkout)
    # of what the SDK's platform reads besides the parts nobody keeps account
    if plan.platform is None or not freshness.usable(tree, before):
        (tree / _CONFIGURED).unlink(missing_ok=True)
    freshness.unsettle(tree)
    try:
        _steps(plan, tree, name, progress)
    except BuildError as error:
        if not freshness.settle(tree, plan.checkout, before, began):
            raise CheckoutChanged(plan.checkout.root) from error
        raise
    stood_still = freshness.settle(tree, plan.checkout, before, began)
    if not stood_still or not _as_found(plan.checkout):
        raise CheckoutChanged(plan.checkout.root)
    return _collect(plan, tree, directory, target, time.monotonic() - started)


def _steps(plan: CheckoutPlan, tree: Path, name: str, progress: Progress) -> None:
    overlay = lay(plan.checkout, tree, plan.platform)
    places = _places(plan.checkout, overlay, tree / "build")
    argv = configure(plan, overlay, tree / "build", Path(sys.executable))
    done, wanted = tree / _CONFIGURED, json.dumps(argv)
    # Later ninja asks CMake itself when one of its files has changed.
    if not done.is_file() or done.read_text() != wanted:
        done.unlink(missing_ok=True)
        clear(tree / "build")
        progress(f"{name}: configuring the runner")
        run_step("configure", argv, tree, name, progress, _environment(tree), places)
        write_whole(done, wanted)
    ninja = str(toolchain.require("ninja").path)
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
        **compiler_cache.environment(tree),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    }


def _as_found(before: Checkout) -> bool:
    """Whether it is the checkout that the key was made of."""
    given = {name: part.folder for name, part in before.parts.items()}
    return find_checkout(before.root, given).identity() == before.identity()


def _collect(
    plan: CheckoutPlan, tree: Path, directory: Path, target: Target, seconds: float
) -> Firmware:
    """Copies of the products, and the stamp, in a directory that gets its name at last: builds of
    equal content in two checkouts may end at the same time."""
    aside = directory.with_name(f".{directory.name}.{uuid.uuid4().hex[:8]}")
    aside.mkdir()
    try:
        for name, found in plan.products.items():
            source = tree / "build" / found
            if not source.is_file():
                raise BuildError(f"the build ended well but left no {found}", path=tree / "build")
            shutil.copyfile(source, aside / f"executor_runner{name}")
        firmware = Firmware(
            directory=aside,
            target=target.name,
            variant=target.default_variant,
            key=directory.name,
            toolchain_id=plan.toolchain_id,
            build_id="",
            elf_sha256=sha256_of(aside / "executor_runner"),
            seconds=round(seconds, 3),
            options=dict(plan.options),
            source=FirmwareSource.EXECUTORCH,
            checkout=_facts(plan, _told(tree / "configure.log")),
        )
        write_stamp(firmware)
        return _named(firmware, directory, target, plan)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _told(log: Path) -> tuple[str, ...]:
    """What the platform's CMake says of the checkout's (targets/executorch/platform)."""
    return tuple(dict.fromkeys(_TOLD.findall(log.read_text("utf-8", "replace"))))


def _named(firmware: Firmware, directory: Path, target: Target, plan: CheckoutPlan) -> Firmware:
    """Whoever comes second takes the first one's."""
    lock = acquire(directory.with_suffix(".lock"), lambda: None)
    try:
        if (ready := load_firmware(directory)) is not None:
            return _of(ready, target, plan)
        clear(directory)
        firmware.directory.rename(directory)
        return replace(firmware, directory=directory)
    finally:
        lock.release()
