"""ExecuTorch's own sample for Zephyr, ``zephyr/samples/hello-executorch`` of a checkout.

It is not built here yet: its program is compiled into it, so that every model is another firmware.
What can be said before anybody tries is said: which Zephyr it asks for, and which there is.
"""

from __future__ import annotations

import re
from pathlib import Path

from harness.config.loading import Target
from harness.core.errors import UsageError
from harness.firmware.executorch.checkout import Checkout
from harness.firmware.zephyr.workspace import find_zephyr, zephyr_version

SAMPLE = "zephyr/samples/hello-executorch"
# The command that ExecuTorch's own documentation test runs: `west init --manifest-rev v4.4.0`.
_README = "zephyr/README.md"
_ASKED = re.compile(r"west init .*--manifest-rev v(\d+(?:\.\d+)+)")


class ZephyrTooOld(UsageError):
    """``wanted`` and ``found``: versions of Zephyr."""

    def __init__(self, checkout: Checkout, wanted: str, base: Path) -> None:
        self.wanted, self.found = wanted, zephyr_version(base)
        super().__init__(
            f"ExecuTorch's sample for Zephyr asks for Zephyr {wanted}, and the workspace has "
            f"{self.found}",
            hint=f"`west init --manifest-rev v{wanted}` makes a workspace with it "
            f"({checkout.root / _README}); older ones do not know all of the sample's Kconfig "
            "symbols: 4.1 has ARM_ETHOS_U where it sets ETHOS_U. Or --firmware bundled, which runs "
            "on this one",
            path=base,
        )


class SampleNotBuilt(UsageError):
    """Nothing is wrong with the workspace; the harness has no build for it."""

    def __init__(self, target: Target, checkout: Checkout, board: str) -> None:
        self.target = target.name
        super().__init__(
            f"ExecuTorch's sample for Zephyr is not built by this tool for {target.name}: it has "
            "its program compiled into it",
            hint=f"west build -b {board} {checkout.root / SAMPLE} -- -DET_PTE_FILE_PATH=FILE.pte "
            f"-DEXTRA_ZEPHYR_MODULES={checkout.root}; `hil judge LOG --elf zephyr.elf` judges what "
            "it prints. Or --firmware bundled",
            path=checkout.root,
        )


class NoSample(UsageError):
    """A checkout of before there was one."""

    def __init__(self, root: Path) -> None:
        super().__init__(
            f"{root} has no sample for Zephyr ({SAMPLE})",
            hint="take a newer ExecuTorch, or --firmware bundled",
            path=root,
        )


def refuse(target: Target, checkout: Checkout) -> UsageError:
    """Why the sample is not built. Raises UsageError if ``$ZEPHYR_BASE`` names no Zephyr."""
    assert target.zephyr is not None, "only a target for Zephyr has a sample"
    board = target.zephyr.board
    base = find_zephyr()
    if not (checkout.root / SAMPLE / "CMakeLists.txt").is_file():
        return NoSample(checkout.root)
    wanted = _asked(checkout.root / _README)
    if wanted is not None and _older(zephyr_version(base), wanted):
        return ZephyrTooOld(checkout, wanted, base)
    return SampleNotBuilt(target, checkout, board)


def _asked(readme: Path) -> str | None:
    try:
        found = _ASKED.search(readme.read_text("utf-8", "replace"))
    except OSError:
        return None
    return None if found is None else found[1]


def _older(version: str, than: str) -> bool:
    """By major and minor number."""
    numbers = tuple(tuple(map(int, re.findall(r"\d+", text)[:2])) for text in (version, than))
    return numbers[0] < numbers[1]
