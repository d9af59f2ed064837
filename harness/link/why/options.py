"""Undefined symbols that an option of Zephyr's decides: a source that is compiled only with it, a
driver, and options that were set and did not become y."""

from __future__ import annotations

from collections.abc import Sequence

from harness.link.failure import LinkCause
from harness.link.stop.kconfig import NotTaken
from harness.link.why.known import Undefined
from harness.link.why.tree import Tree
from harness.link.why.zephyr import Gate, ZephyrBuild

# Causes that name no definition, so that an option that is n may well be behind them.
_VAGUE = (LinkCause.NO_DEFINITION, LinkCause.WEAK_DEFAULT_NOT_COMPILED,
          LinkCause.LIBRARY_NOT_LINKED)  # fmt: skip


def behind_option(gate: Gate, where: str, what: str, zephyr: ZephyrBuild) -> Undefined:
    """``where`` defines ``what``, and is not compiled because an option is not set."""
    option = f"CONFIG_{gate.option}"
    why = f"{where} defines {what}, and {gate.file}:{gate.line} compiles it only with {option}"
    refused = next((o for o in zephyr.not_taken() if o.symbol == gate.option), None)
    if refused is None:
        return Undefined(LinkCause.OPTION_NOT_SET, f"{why}, which is n.",
                         f"Set {option}=y in prj.conf.")  # fmt: skip
    _, file, line = zephyr.asked[gate.option]
    return Undefined(
        LinkCause.OPTION_NOT_TAKEN,
        f"{why}. {file}:{line} sets it to y, but it stayed n: {refused.why}.",
        refused.fix,
    )


def blamed_on_options(cause: Undefined, refused: Sequence[NotTaken]) -> Undefined:
    """A cause that names no definition, with the option that was asked for in vain."""
    if not refused or cause.kind not in _VAGUE or cause.definitions:
        return cause
    option = refused[0]
    more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
    return Undefined(
        LinkCause.OPTION_NOT_TAKEN,
        f"{cause.cause} CONFIG_{option.symbol} was set to {option.asked} and got "
        f"{option.got}{more}, of which Kconfig only warns: {option.why}. What that option compiles "
        "is not in this link.",
        option.fix,
    )


def of_device(symbol: str, tree: Tree | None) -> Undefined | None:
    """``__device_dts_ord_42``: nothing was compiled that makes a device of that node."""
    node = tree.zephyr.device(symbol) if tree is not None and tree.zephyr is not None else None
    if node is None:
        return None
    what = f"It is the device of the devicetree node {node.path}"
    what += f" (compatible {node.compatible})" if node.compatible else ""
    if not node.okay:
        return Undefined(LinkCause.NO_DRIVER, f"{what}, which is not enabled.",
                         f'Give {node.path} `status = "okay"` in an overlay.')  # fmt: skip
    if not node.drivers:
        return Undefined(LinkCause.NO_DRIVER, f"{what}, for which no option of this Zephyr has a "
                         "driver.", "Write a driver for it, or take another device.")  # fmt: skip
    options = " or ".join(f"CONFIG_{name}" for name in node.drivers)
    subsystem = " and that of its subsystem, which it depends on (CONFIG_I2C, CONFIG_SPI, ...),"
    return Undefined(LinkCause.NO_DRIVER, f"{what}; its driver ({options}) is not enabled.",
                     f"Enable {options}{subsystem} in prj.conf.")  # fmt: skip
