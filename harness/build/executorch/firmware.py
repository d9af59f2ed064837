"""A checkout's own runner: built incrementally in a tree of ours, kept by content.

``.hil/cache/executorch/<tree>`` is one build tree for a checkout and a configuration, and stays:
after an edit only what depends on it is built. What comes out is copied to
``.hil/cache/firmware/<key>``, where the key stands for commit, uncommitted changes, parts,
options and toolchain. A tree that a build was killed in is just an unfinished one: ninja goes on
where it was, and nothing was copied.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

from harness.build.executorch.checkout import Checkout, find_checkout
from harness.build.executorch.overlay import Overlay, lay
from harness.build.executorch.plan import CheckoutPlan, configure, make_plan
from harness.build.firmware import Firmware, load_firmware, write_stamp
from harness.build.source import CheckoutFacts, FirmwareSource
from harness.build.step import acquire, clear, run_step
from harness.errors import BuildError, InfraError
from harness.system import paths, toolchain
from harness.system.files import disk_errors, sha256_of, write_whole
from harness.system.progress import Progress, silent
from harness.target.loading import Target
from harness.target.model import SimulatorName

RUNNER = "arm_executor_runner"
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
    return replace(
        firmware, target=target.name, variant=target.default_variant, checkout=facts(plan)
    )


def facts(plan: CheckoutPlan) -> CheckoutFacts:
    """What a record says of the checkout."""
    there = plan.checkout
    return CheckoutFacts(
        path=str(there.root),
        commit=there.revision.commit,
        branch=there.revision.branch,
        dirty=there.revision.dirty,
        diff_sha256=there.revision.changes,
        platform="sdk" if plan.platform is None else "hil",
        notes=plan.notes,
    )


def _build(
    plan: CheckoutPlan, tree: Path, directory: Path, target: Target, progress: Progress
) -> Firmware:
    started = time.monotonic()
    name = f"{target.name} (ExecuTorch {plan.checkout.revision.commit[:10]})"
    overlay = lay(plan.checkout, tree, plan.platform)
    _configure(plan, overlay, tree, name, progress)
    ninja = str(toolchain.require("ninja").path)
    jobs = str(len(os.sched_getaffinity(0)))
    argv = (ninja, "-C", str(tree / "build"), "-j", jobs, RUNNER)
    run_step("build", argv, tree, name, progress, _environment(tree))
    _unchanged(plan)
    return _collect(plan, tree, directory, target, time.monotonic() - started)


def _configure(
    plan: CheckoutPlan, overlay: Overlay, tree: Path, name: str, progress: Progress
) -> None:
    """Once; later ninja asks CMake itself when one of its files has changed. A tree whose
    configuration was killed has no stamp, and starts from nothing."""
    argv = configure(plan, overlay, tree / "build", Path(sys.executable))
    wanted = json.dumps(argv)
    done = tree / _CONFIGURED
    if done.is_file() and done.read_text() == wanted:
        return
    done.unlink(missing_ok=True)
    clear(tree / "build")
    progress(f"{name}: configuring the runner")
    run_step("configure", argv, tree, name, progress, _environment(tree))
    write_whole(done, wanted)


def _environment(tree: Path) -> dict[str, str]:
    """Python writes nothing beside the checkout's generators; equal compilations are shared
    between trees, whose own paths do not count."""
    return {
        "PYTHONDONTWRITEBYTECODE": "1",
        "CCACHE_DIR": str(paths.cache_dir("ccache")),
        "CCACHE_BASEDIR": str(tree),
        "CCACHE_NOHASHDIR": "1",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    }


def _unchanged(plan: CheckoutPlan) -> None:
    before = plan.checkout
    given = {name: part.folder for name, part in before.parts.items()}
    if find_checkout(before.root, given).identity() != before.identity():
        raise CheckoutChanged(before.root)


def _collect(
    plan: CheckoutPlan, tree: Path, directory: Path, target: Target, seconds: float
) -> Firmware:
    """Copies of the products, and the stamp, last."""
    clear(directory)
    directory.mkdir(parents=True)
    for name, found in (("", RUNNER), (".map", f"{RUNNER}.map")):
        source = tree / "build" / found
        if not source.is_file():
            raise BuildError(f"the build ended well but left no {found}", path=tree / "build")
        shutil.copyfile(source, directory / f"executor_runner{name}")
    firmware = Firmware(
        directory=directory,
        target=target.name,
        variant=target.default_variant,
        key=directory.name,
        toolchain_id=plan.toolchain_id,
        build_id="",
        elf_sha256=sha256_of(directory / "executor_runner"),
        seconds=round(seconds, 3),
        options=dict(plan.options),
        source=FirmwareSource.EXECUTORCH,
        checkout=facts(plan),
    )
    write_stamp(firmware)
    return firmware
