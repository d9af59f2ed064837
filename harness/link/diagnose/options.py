"""Undefined symbols that depend on an option of Zephyr's: its source is compiled only with the
option, its driver is not enabled, or the option was set and did not become y."""

from __future__ import annotations

from collections.abc import Sequence

from harness.link.configure.kconfig import RefusedOption
from harness.link.diagnose.symbols import Undefined
from harness.link.diagnose.tree import Tree
from harness.link.diagnose.zephyr import Gate, ZephyrBuild
from harness.link.failure import LinkCause

# Causes that name no definition: an option that is n may be the reason.
_VAGUE = (
    LinkCause.NO_DEFINITION,
    LinkCause.WEAK_DEFAULT_NOT_COMPILED,
    LinkCause.LIBRARY_NOT_LINKED,
)


def behind_option(gate: Gate, where: str, definition: str, zephyr: ZephyrBuild) -> Undefined:
    """``where`` defines the symbol (``definition``: "it" or "a weak default of it"), and is not
    compiled because an option is not set."""
    option = f"CONFIG_{gate.option}"
    why = (
        f"{where} defines {definition}, and {gate.file}:{gate.line} compiles it only with {option}"
    )
    refused = next((o for o in zephyr.refused_options() if o.symbol == gate.option), None)
    if refused is None:
        return Undefined(
            LinkCause.OPTION_NOT_SET, f"{why}, which is n.", f"Set {option}=y in prj.conf."
        )
    _, file, line = zephyr.requested[gate.option]
    return Undefined(
        LinkCause.OPTION_NOT_TAKEN,
        f"{why}. {file}:{line} sets it to y, but it stayed n: {refused.why}.",
        refused.fix,
    )


def blamed_on_options(cause: Undefined, refused: Sequence[RefusedOption]) -> Undefined:
    """A cause that names no definition, with the option that was set and refused."""
    if not refused or cause.kind not in _VAGUE or cause.definitions:
        return cause
    option = refused[0]
    more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
    return Undefined(
        LinkCause.OPTION_NOT_TAKEN,
        f"{cause.cause} CONFIG_{option.symbol} was set to {option.wanted} and got "
        f"{option.got}{more}; Kconfig only warns: {option.why}. The sources of that option are "
        "not in this link.",
        option.fix,
    )


def of_device(symbol: str, tree: Tree | None) -> Undefined | None:
    """``__device_dts_ord_42``: no source was compiled that defines the device of that node."""
    node = tree.zephyr.device(symbol) if tree is not None and tree.zephyr is not None else None
    if node is None:
        return None
    device = f"It is the device of the devicetree node {node.path}"
    device += f" (compatible {node.compatible})" if node.compatible else ""
    if not node.okay:
        return Undefined(
            LinkCause.NO_DRIVER,
            f"{device}, which is not enabled.",
            f'Give {node.path} `status = "okay"` in an overlay.',
        )
    if not node.drivers:
        return Undefined(
            LinkCause.NO_DRIVER,
            f"{device}, for which no option of this Zephyr has a driver.",
            "Write a driver for it, or take another device.",
        )
    options = " or ".join(f"CONFIG_{name}" for name in node.drivers)
    subsystem = " and that of its subsystem, which it depends on (CONFIG_I2C, CONFIG_SPI, ...),"
    return Undefined(
        LinkCause.NO_DRIVER,
        f"{device}; its driver ({options}) is not enabled.",
        f"Enable {options}{subsystem} in prj.conf.",
    )
