"""How ExecuTorch's own module and sample for Zephyr are built from a checkout.

The sample has its program compiled into it, and registers the operators that this program calls
when CMake configures: so each program has a firmware of its own, and a tree is configured again for
each. Its pools are sized for the program.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.config.loading import load_target
from harness.core.errors import UsageError
from harness.core.simulator_name import SimulatorName
from harness.firmware.checkout import Checkout, PartMissing
from harness.firmware.executorch.overlay import Overlay
from harness.firmware.executorch.plan import WITHOUT_LIBRARIES, find_flatc
from harness.firmware.memory import zephyr_pool_sizes
from harness.firmware.operators import needs_of
from harness.firmware.source import BuildRequest
from harness.firmware.step import own_digest
from harness.firmware.zephyr.west import WestJob
from harness.firmware.zephyr.workspace import Workspace, find_workspace
from harness.system import paths
from harness.system.artifact_cache import key_of
from harness.system.files import sha256_of, text_of

_SAMPLES = Path("zephyr/samples")
_SAMPLE = "hello-executorch"
_INCLUDES = [  # by the names of the samples' projects in CMake
    f"CMAKE_PROJECT_{name}_INCLUDE"
    for name in ("executorch_executor_runner", "executorch_mv2_ethosu")
]
# Zephyr's driver for Ethos-U has the first name since 4.3 (modules/hal_ethos_u/Kconfig).
_NAMES = ("ETHOS_U", "ARM_ETHOS_U")


@dataclass(frozen=True)
class SamplePlan:
    """Everything that decides what is built. ``program``: None before it is known. ``npu``: the
    option for it. ``pools``: their sizes."""

    checkout: Checkout
    workspace: Workspace
    sample: str
    program: Path | None
    options: Mapping[str, str]  # without paths
    npu: str
    pools: Mapping[str, str]
    platform_name = "zephyr"  # for CheckoutFacts

    @cached_property
    def program_sha256(self) -> str:
        return sha256_of(self._required())

    def _required(self) -> Path:
        if self.program is None:
            raise UsageError(
                "ExecuTorch's sample for Zephyr has its program compiled into it: there is no "
                "runner without one",
                hint="name a model: `hil run TARGET MODEL --executorch DIR`",
                path=self.checkout.root,
            )
        return self.program

    def key(self) -> str:
        facts = [dict(self.options), self.npu, dict(self.pools), self.sample, self.program_sha256]
        return key_of(
            ["zephyr", self.checkout.identity(), *self.workspace.key(), facts, own_digest()]
        )

    @property
    def notes(self) -> tuple[str, ...]:
        sizes = ", ".join(f"{name}={size}" for name, size in self.pools.items())
        board = self.workspace.board
        return (
            *self.checkout.notes,
            f"ExecuTorch's {self.sample} for {board}, unmodified, with {sizes}",
            "its inputs are set and its outputs read through QEMU's gdb stub",
            *(["linked for QEMU's memory map, not the board's"] if own_overlay(board) else []),
        )

    @property
    def tree_folder(self) -> Path:
        return self._folder / "build"

    @property
    def _folder(self) -> Path:
        """A folder for each NPU, with its own lock: CMake would keep another NPU's option."""
        return self.place() / f"west{self.npu}"

    def place(self) -> Path:
        """The folder of overlay and tree, the same for every program."""
        folders = [self.checkout.root, *(part.folder for part in self.checkout.parts.values())]
        facts = [*map(str, folders), str(self.workspace.base), self.workspace.board, self.sample]
        return paths.cache_dir("executorch") / key_of([facts, dict(self.options)])

    def job(self, sources: Sequence[Path], places: Mapping[str, str]) -> WestJob:
        """Copies the program to where the tree reads it."""
        overlay, program = Overlay(self.place()), self.place() / "program.pte"
        shutil.copyfile(self._required(), program)
        flatc = find_flatc(self.checkout)
        return WestJob(
            self.workspace,
            overlay.checkout / _SAMPLES / self.sample,
            {
                **self.options,
                **({self.npu: "y"} if self.npu else {}),
                **sample_options(self.workspace, overlay.checkout, overlay.sdk),
                "ET_PTE_FILE_PATH": str(program),
                "CMSIS_NN_LOCAL_PATH": str(overlay.sdk / "core_software" / "cmsis-nn"),
                "PYTHON_EXECUTABLE": sys.executable,
                **({"FLATC_EXECUTABLE": str(flatc)} if flatc else {}),
            },
            sources,
            each={**self.pools, "HIL_OPERATORS": ",".join(needs_of(program).operators)},
            environment={"PYTHONDONTWRITEBYTECODE": "1"},
            places=places,
            folder=self._folder,
        )


def make_sample_plan(request: BuildRequest) -> SamplePlan:
    """Raises UsageError without a workspace or a sample, and on a simulator without a gdb stub,
    PartMissing, ToolMissing, MalformedFile."""
    target, checkout = request.target, request.checkout
    assert checkout is not None, "whoever chooses this source names the checkout"
    assert target.zephyr is not None
    if request.simulator is not SimulatorName.QEMU:
        raise UsageError(
            f"ExecuTorch's sample for Zephyr reads no inputs and writes no outputs: they are set "
            f"and read through QEMU's gdb stub, which {request.simulator} does not have",
            hint="--simulator qemu; or build it by hand, and `hil judge LOG` judges what it prints",
            target=target.name,
        )
    name = Path(target.zephyr.application or _SAMPLE).name
    sample = checkout.root / _SAMPLES / name
    if not (sample / "CMakeLists.txt").is_file():
        there = sorted(p.parent.name for p in sample.parent.glob("*/CMakeLists.txt"))
        raise UsageError(
            f"the checkout has no {_SAMPLES / name}, which {target.name} would run",
            hint=f"it has {', '.join(there)}" if there else "take --firmware bundled",
            path=checkout.root,
        )
    if "core_driver" not in checkout.parts:
        raise PartMissing(checkout.root, ["core_driver"])
    # ExecuTorch's samples have overlays for the FVP's boards alone; QEMU runs these, too.
    zephyr = load_target(str(target.file)).zephyr
    assert zephyr is not None
    workspace = find_workspace(zephyr.board)
    npu = ""
    if target.npu is not None:
        name_of_driver = _NAMES[_has_old_names(workspace)]
        npu = f"CONFIG_{name_of_driver}{target.npu.product[1:]}_{target.npu.macs}"
    sizes = {} if request.program is None else zephyr_pool_sizes(request.program, target)
    return SamplePlan(
        checkout,
        workspace,
        name,
        request.program,
        {
            **WITHOUT_LIBRARIES,
            "FETCH_ETHOS_U_CONTENT": "OFF",
            **{n: v for n, v in target.cmake.items() if n.startswith("CONFIG_")},
        },
        npu,
        {f"CONFIG_EXECUTORCH_{p.upper()}_ALLOCATOR_POOL_SIZE": str(n) for p, n in sizes.items()},
    )


def sample_options(workspace: Workspace, root: Path, sdk: Path) -> dict[str, str]:
    """CMake's definitions that build ExecuTorch's samples of the checkout ``root`` in a workspace
    without an ExecuTorch of its own. ``sdk``: the Ethos-U SDK."""
    modules = [root, *([_module()] if _has_old_names(workspace) else [])]
    overlay = own_overlay(workspace.board)
    return {
        # Debian's newlib does not build with Zephyr: it has no retargetable locking
        **({"TOOLCHAIN_HAS_PICOLIBC": "ON"} if workspace.compiler.has_picolibc else {}),
        "EXTRA_ZEPHYR_MODULES": ";".join(map(str, modules)),
        "EXECUTORCH_ROOT": str(root),
        "ETHOS_SDK_PATH": str(sdk),
        # kernels that the program does not call are not compiled
        **dict.fromkeys(_INCLUDES, str(_module().parent / "runner.cmake")),
        **({"EXTRA_DTC_OVERLAY_FILE": str(overlay)} if overlay else {}),
    }


def own_overlay(board: str) -> Path | None:
    """For a board whose memory QEMU has elsewhere."""
    file = _module() / "boards" / f"{board.replace('/', '_')}.overlay"
    return file if file.is_file() else None


def _has_old_names(workspace: Workspace) -> bool:
    """Whether Zephyr's driver for Ethos-U has its options by their names before 4.3."""
    text = text_of(workspace.base / "modules/hal_ethos_u/Kconfig")
    return bool(text) and re.search(rf"^config {_NAMES[0]}$", text, re.MULTILINE) is None


def _module() -> Path:
    return paths.data_root() / "targets" / "executorch" / "zephyr"
