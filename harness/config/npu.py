"""The Ethos-U of a target: which product, how many MACs, and where its memory mode puts what.

``targets/npu/products.yaml`` holds every fact about products and memory modes but one: MAC counts
are a field of the command stream's CONFIG word, and ``formats/ethosu.py`` lists them. A target file
says only ``npu: {product: u55, macs: 128}``; a memory mode other than the product's default is
part of the target's name: ``corstone-300-u55-128@Sram_Only``.

``targets/npu/defects.yaml`` has the programs that Vela compiles wrongly for an Ethos-U.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field

from harness.config.schema import Data, Text, checked_document
from harness.config.strict_yaml import Document, read
from harness.core.errors import Unknown, UsageError
from harness.formats.ethosu import MACS, PRODUCTS
from harness.system.paths import data_root

Product = Annotated[str, Field(pattern=f"^({'|'.join(PRODUCTS)})$")]
DIRECT = ("linux", "host")  # ports where a driver of Linux has the NPU
Place = Literal["SRAM", "DDR"]  # regions of the target


@dataclass(frozen=True, kw_only=True)
class Mode(Data):
    """Where a memory mode puts what."""

    weights: Place
    arena: Place  # planned buffers, and the NPU's scratch
    fast_scratch: Annotated[int, Field(ge=0)] = 0  # bytes of SRAM that only the NPU uses

    @property
    def kind(self) -> str:
        if self.arena == "DDR":
            return "arena_in_ddr"
        return "all_in_sram" if self.weights == "SRAM" else "arena_in_sram"

    @property
    def cmake(self) -> dict[str, str]:
        return {
            "HIL_ETHOSU": "ON",
            "HIL_METHOD_POOL_PLACE": self.arena,
            "HIL_TEMP_POOL_PLACE": self.arena,
            "HIL_FILE_POOL_PLACE": self.weights,
            "HIL_FAST_SCRATCH_PLACE": "SRAM",
            "HIL_ETHOSU_FAST_SCRATCH_BYTES": str(self.fast_scratch),
        }


@dataclass(frozen=True, kw_only=True)
class ProductFacts(Data):
    name: Text
    default_macs: int
    system_config: Text
    second_memory: Literal["flash", "DRAM"]
    memory_mode: Text  # the default
    pools: dict[Text, dict[Text, int]]  # by Mode.kind
    target: dict[Text, Any]  # lies under the target's own file
    direct: dict[Text, dict[Text, Any]] = field(default_factory=dict)  # instead, by port

    @property
    def macs(self) -> tuple[int, ...]:
        """Every count that it comes with."""
        return MACS[self.name.removeprefix("Ethos-").lower()]

    def refuses(self, mode: Mode) -> str | None:
        """Why this product does not have a memory mode."""
        if mode.arena == "DDR" and self.second_memory == "flash":
            return (
                f"it puts the arena into the second memory, and that of {self.system_config} "
                "is flash, which nothing can write to"
            )
        return None


@dataclass(frozen=True, kw_only=True)
class Products(Data):
    """targets/npu/products.yaml."""

    memory_modes: dict[Text, Mode]
    products: dict[Product, ProductFacts]

    def modes_of(self, product: ProductFacts) -> tuple[str, ...]:
        return tuple(n for n, m in self.memory_modes.items() if product.refuses(m) is None)


@dataclass(frozen=True, kw_only=True)
class Npu(Data):
    """A target's NPU, and the options of Vela for it."""

    product: Product
    macs: int
    has_default_macs: bool
    name: Text
    system_config: Text
    memory_mode: Text  # the resolved one
    default_memory_mode: Text
    memory_modes: tuple[Text, ...]  # all that this product has, the default one first
    mode: Mode

    @property
    def description(self) -> str:
        return f"{self.name} with {self.macs} MACs"


def split_mode(name: str) -> tuple[str, str | None]:
    """``TARGET@Mode`` -> the target's name and the mode; None without one."""
    target, at, mode = name.partition("@")
    return target, mode if at else None


@cache
def products_file() -> Document:
    return read(data_root() / "targets" / "npu" / "products.yaml")


@cache
def products() -> Products:
    """TargetError when the file is wrong."""
    return checked_document(Products, products_file())


def layer(document: Document) -> Document | None:
    """Return the layer below a target file that its NPU's product brings; None without an NPU.

    TargetError: the section ``npu`` of the file is wrong."""
    if "npu" not in document.data:
        return None
    section = document.data["npu"]
    known = ("product", "macs", "system_config")
    if not isinstance(section, dict) or not {"product", "macs"} <= section.keys() <= {*known}:
        raise document.place(("npu",)).error(
            "npu: wanted are product and macs, and nothing else but system_config"
        )
    name = section["product"]
    facts = products().products.get(name) if isinstance(name, str) else None
    if facts is None:
        raise document.place(("npu", "product")).error(
            f"no NPU is called {section['product']!r}",
            hint="there are: " + ", ".join(products().products),
        )
    if section["macs"] not in facts.macs:
        raise document.place(("npu", "macs")).error(
            f"an {facts.name} has {', '.join(map(str, facts.macs))} MACs, not {section['macs']}"
        )
    at: tuple[str, ...] = ("products", section["product"], "target")
    found, port = facts.target, document.data.get("port")
    if port in DIRECT:
        if port not in facts.direct:
            raise document.place(("npu", "product")).error(
                f"no driver of Linux is known that has an {facts.name} (direct drive)",
                hint="under Linux there is an Ethos-U85",
            )
        at, found = (*at[:2], "direct", port), facts.direct[port]
    places = {
        p[len(at) :]: place for p, place in products_file().places.items() if p[: len(at)] == at
    }
    return Document(found, places)


def resolve(data: Mapping[str, Any], target: str, mode: str | None) -> dict[str, Any]:
    """Return the target's data with everything in it that its NPU and memory mode decide.

    UsageError: there is no such mode, or this product does not have it."""
    if "npu" not in data:
        if mode is None:
            return dict(data)
        raise UsageError(
            f"{target} has no NPU, and so no memory mode {mode!r}",
            hint=f"leave @{mode} out; `hil targets` says which targets have modes",
        )
    data = {key: value for key, value in data.items() if key != "lowerings"}  # its compiler's alone
    section = data["npu"]
    facts = products().products[section["product"]]
    name = mode if mode is not None else facts.memory_mode
    chosen = _mode(target, facts, name)
    npu = {
        **section,
        "name": facts.name,
        "has_default_macs": section["macs"] == facts.default_macs,
        "system_config": section.get("system_config", facts.system_config),
        "memory_mode": name,
        "default_memory_mode": facts.memory_mode,
        "memory_modes": sorted(
            products().modes_of(facts), key=lambda mode: mode != facts.memory_mode
        ),
        "mode": chosen,
    }
    compile_target = f"ethos-{section['product']}-{section['macs']}"
    data = {**data, "npu": npu, "compile_target": compile_target}
    if data.get("port") in DIRECT:  # its driver places everything
        return data
    return {
        **data,
        "default_pools": {**data.get("default_pools", {}), **facts.pools[chosen.kind]},
        "cmake": {**data.get("cmake", {}), **chosen.cmake},
    }


def _mode(target: str, facts: ProductFacts, name: str) -> Mode:
    legal = products().modes_of(facts)
    mode = products().memory_modes.get(name)
    if mode is None:
        message = f"{target}@{name}: there is no memory mode {name!r}"
        close = [f"{target}@{near}" for near in difflib.get_close_matches(name, legal, n=1)]
    elif (why := facts.refuses(mode)) is not None:
        message = f"{target}@{name}: an {facts.name} has no memory mode {name}: {why}"
        close = []  # the name is not misspelled
    else:
        return mode
    raise Unknown(message, name, legal, close=close, listing="it has: ")


Operators = Annotated[tuple[Text, ...], Field(min_length=1)]


@dataclass(frozen=True, kw_only=True)
class Defect(Data):
    """The file explains the fields."""

    products: Annotated[tuple[Product, ...], Field(min_length=1)]
    macs: tuple[int, ...] = ()
    trouble: Annotated[tuple[Text, ...], Field(min_length=1)]
    from_: Annotated[Operators | None, Field(alias="from")] = None
    via: Operators | None = None
    dimensions: int = 0
    to: Operators | None = None
    beside: Operators | None = None
    padded: bool = False
    fill: Literal["other"] | None = None
    what: Text
    instead: Text | None = None
    right_in: Text | None = None


@dataclass(frozen=True, kw_only=True)
class Defects(Data):
    seen_in: Annotated[tuple[Text, ...], Field(min_length=1)]
    defects: dict[Text, Defect]


@cache
def defects() -> Defects:
    """Return the table of known defects. Raises TargetError when the file is wrong."""
    return checked_document(Defects, read(data_root() / "targets" / "npu" / "defects.yaml"))
