"""Programs that Vela compiles wrongly: ``targets/npu/defects.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from harness.config.npu import Product
from harness.config.schema import Data, Rule, Text, checked_document
from harness.config.strict_yaml import read
from harness.system import paths

Operators = Annotated[tuple[Text, ...], Rule(min_length=1)]


@dataclass(frozen=True, kw_only=True)
class Defect(Data):
    """The file explains the fields."""

    products: Annotated[tuple[Product, ...], Rule(min_length=1)]
    macs: tuple[int, ...] = ()
    trouble: Text | None = None
    from_: Operators | None = None
    to: Operators | None = None
    beside: Operators | None = None
    dilation: int = 0
    fill: Literal["other"] | None = None
    what: Text
    instead: Text | None = None

    def _check_names_operators(self) -> None:
        if self.trouble is None and (self.to is None or (self.from_, self.beside) == (None, None)):
            raise ValueError("a defect needs its trouble, or operators: from and to, to and beside")


@dataclass(frozen=True, kw_only=True)
class Defects(Data):
    seen_in: Annotated[tuple[Text, ...], Rule(min_length=1)]
    defects: dict[Text, Defect]


def defects_path() -> Path:
    return paths.data_root() / "targets" / "npu" / "defects.yaml"


@cache
def defects() -> Defects:
    """Raises TargetError when the file is wrong."""
    return checked_document(Defects, read(defects_path()))
